// Unpacks what the server puts into the details of a status, and knows an advice for each reason.
#include "clients/client/refusal.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "clients/client/printable.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace strata::client {
namespace {

constexpr std::array<std::string_view, 17> kCodeNames = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

struct ReasonAdvice {
  std::string_view reason;
  std::string_view advice;
};

constexpr ReasonAdvice kAdvice[] = {
    {"VERSION_CONFLICT",
     "Somebody else was faster: read the document again (strata get, strata diff) and decide "
     "anew."},
    {"RETRIES_EXHAUSTED", "Many writers change this document: try again in a moment."},
    {"DOCUMENT_EXISTS",
     "To change it use strata update; to write it either way, strata update "
     "--allow-missing."},
    {"COLLECTION_EXISTS", "See its strategy with strata collections show."},
    {"DOCUMENT_NOT_FOUND",
     "strata list shows which documents there are; strata update "
     "--allow-missing creates one."},
    {"DOCUMENT_DELETED",
     "Its history is kept: see strata history; bring it back with strata restore "
     "--version N."},
    {"VERSION_NOT_FOUND", "strata history shows which versions there are."},
    {"TRANSACTION_NOT_FOUND",
     "strata transactions shows which there are; one that ended is forgotten after 24 hours."},
    {"TRANSACTION_APPLIED", "To take it back, write the reverse as a transaction of its own."},
    {"TRANSACTION_CANCELLED", "Nothing of it counts: decide anew, with another request_id."},
    {"COLLECTION_NOT_FOUND", "strata collections shows which there are."},
    {"INVALID_PATH",
     "Write a path as a JSON Pointer: /stock, /authors/0; ~1 stands for / and ~0 for ~ "
     "in a name."},
    {"INVALID_PAGE_TOKEN", "The listing changed under way: start again."},
    {"REQUEST_ID_REUSED", "Choose another --request-id: this one belongs to another change."},
    {"LAYOUT_LIMIT", "Export the collection and import it with another --strategy."},
    {"COLLECTION_LIMIT",
     "Delete collections that nobody needs (strata collections), or have the server's operator "
     "raise --collections-max."},
    {"ENROLLMENT_SHAPE",
     "The document has something else where enrollments are kept: see it with strata get; --set "
     "names another member."},
    {"OVERLOADED", "Try again in a moment."},
    {"QUOTA_EXCEEDED",
     "Try again in a moment, with fewer calls at a time, or have the server's policy allow you "
     "more."},
    {"CREDENTIALS_MISSING",
     "Say who calls: --token-file FILE, or --tls-certificate and --tls-key (with --tls-ca)."},
    {"CREDENTIALS_INVALID",
     "The token in --token-file may have expired or been withdrawn, or be another server's: have "
     "whoever runs the server give you a new one."},
    {"PERMISSION_DENIED",
     "Have the server's policy grant it to you, or call as somebody else (--token-file)."},
    {"ACT_FOR_DENIED",
     "Leave out --actor and --on-behalf-of: you are the actor. To write for others, have the "
     "server's policy name them in acts_for."},
    {"DISK_FULL", "Nothing was written; make room on the server's disk, or delete something."},
    {"COLLECTION_NOT_EMPTY", "--force deletes it with all its documents and their histories."},
    {"INCARNATION_MISMATCH",
     "The collection was deleted and made again: strata collections show tells which there is."},
    {"QUEUE_NOT_FOUND", "strata queue list shows which there are; strata queue create makes one."},
    {"QUEUE_EXISTS", "See it with strata queue get; strata queue update changes it."},
    {"QUEUE_NOT_EMPTY", "--force deletes it with all its messages; strata messages shows them."},
    {"QUEUE_LIMIT", "Delete queues that nobody needs (strata queue list)."},
    {"MESSAGE_NOT_FOUND",
     "It was acknowledged, popped or purged, or never pushed: strata messages shows which there "
     "are."},
    {"MESSAGE_TOO_LARGE", "Keep what is large in a document, and push its name."},
    {"RESERVATION_LOST",
     "It took too long, and somebody else has the message or had it: what was done may be done "
     "twice. Reserve for longer (--timeout), or extend meanwhile (strata extend, strata work)."},
    {"INVALID_SCHEDULE", "Write five fields, in UTC: --cron '0 6 * * 1-5'; or --every 10m."},
    {"SCHEDULE_NOT_FOUND", "strata schedule list shows which there are."},
    {"STORE_UNAVAILABLE", "Nothing was written; try again, and look at the server's log."},
    {"DRAINING", "The server is shutting down; try again when it is back."},
    {"OUTCOME_UNKNOWN",
     "It may or may not be stored: repeat the command with the same --request-id (enroll and "
     "unenroll need none), or look with strata history."},
    {"INTERNAL", "That is a bug in the server: please report it."},
};

}  // namespace

Refusal RefusalOf(const grpc::Status& status) {
  Refusal refusal;
  refusal.code = status.error_code();
  refusal.message = status.error_message();
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) return refusal;
  for (const google::protobuf::Any& detail : details.details()) {
    google::rpc::ErrorInfo info;
    google::rpc::RetryInfo retry;
    if (detail.UnpackTo(&info)) {
      refusal.reason = info.reason();
      refusal.metadata.insert(info.metadata().begin(), info.metadata().end());
    } else if (detail.UnpackTo(&retry)) {
      const auto& delay = retry.retry_delay();
      refusal.retry_delay_ms = std::clamp<int64_t>(delay.seconds(), 0, 3600) * 1000 +
                               (delay.nanos() + 999'999) / 1'000'000;
    }
  }
  return refusal;
}

Refusal RefusalOf(const absl::Status& status) {
  Refusal refusal;
  refusal.code = static_cast<grpc::StatusCode>(status.code());
  refusal.message = std::string(status.message());
  return refusal;
}

std::string CodeName(grpc::StatusCode code) {
  const auto index = static_cast<size_t>(code);
  if (index < kCodeNames.size()) return std::string(kCodeNames[index]);
  return "CODE_" + std::to_string(static_cast<int>(code));
}

std::string Refusal::ToString() const {
  std::string text = (reason.empty() ? CodeName(code) : reason) + ": " + message;
  std::string_view separator = " (";
  for (const auto& [name, value] : metadata) {
    text.append(separator).append(name).append("=").append(value);
    separator = " ";
  }
  if (!metadata.empty()) text += ")";
  return Printable(text);
}

std::string Refusal::Advice() const {
  for (const ReasonAdvice& row : kAdvice) {
    if (row.reason == reason) return std::string(row.advice);
  }
  if (!reason.empty()) return "";
  if (code == grpc::StatusCode::UNAVAILABLE) {
    return "Is the server running? Name it with --server HOST:PORT or STRATA_SERVER. One with TLS "
           "wants --tls-ca, and perhaps --tls-certificate and --tls-key.";
  }
  if (code == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return "No answer in time. A write may still take effect: repeat it with the same "
           "--request-id (enroll and unenroll need none); --timeout gives it longer.";
  }
  if (code == grpc::StatusCode::UNIMPLEMENTED) return "The server is older than this command.";
  return "";
}

bool Refusal::IsRetryable() const {
  switch (code) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return true;
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return retry_delay_ms.has_value();
    default:
      return false;
  }
}

int64_t RetryDelayMs(const Refusal& refusal, int attempt, double random) {
  constexpr int64_t kFirstMs = 100;
  constexpr int64_t kLongestMs = 5000;
  const int doublings = std::clamp(attempt - 1, 0, 10);
  const int64_t longest = std::min(kLongestMs, kFirstMs << doublings);
  const auto jittered = static_cast<int64_t>(static_cast<double>(longest) * (0.5 + random / 2));
  return std::max(jittered, refusal.retry_delay_ms.value_or(0));
}

}  // namespace strata::client
