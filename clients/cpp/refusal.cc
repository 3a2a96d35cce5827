// Unpacks what the server puts into the details of a status; the rest of what is known of a reason
// is in error_reason.proto.
#include "clients/cpp/refusal.h"

#include <google/protobuf/descriptor.pb.h>
#include <strata/v1/error_reason.pb.h>
#include <strata/v1/options.pb.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "clients/cpp/printable.h"

namespace strata::client {
namespace {

constexpr std::array<std::string_view, 17> kCodeNames = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

// The reason in error_reason.proto; null: this library does not know it.
const google::protobuf::EnumValueOptions* OptionsOf(const std::string& reason) {
  const auto* const value = v1::ErrorReason_descriptor()->FindValueByName("ERROR_REASON_" + reason);
  return value == nullptr ? nullptr : &value->options();
}

// The details of a status are google.rpc.Status, ErrorInfo and RetryInfo, which are read by hand:
// their generated code is part of many libraries, and a program that has it twice does not start.
struct WireField {
  uint64_t number = 0;
  uint64_t varint = 0;
  std::string_view bytes;
};

bool TakeVarint(std::string_view& rest, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !rest.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    value |= uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// False: there are no more, or what is there is no message.
bool NextField(std::string_view& rest, WireField& field) {
  uint64_t tag = 0;
  if (!TakeVarint(rest, tag)) return false;
  field = {.number = tag >> 3, .varint = 0, .bytes = {}};
  switch (tag & 7) {
    case 0:
      return TakeVarint(rest, field.varint);
    case 2: {
      uint64_t length = 0;
      if (!TakeVarint(rest, length) || length > rest.size()) return false;
      field.bytes = rest.substr(0, length);
      rest.remove_prefix(length);
      return true;
    }
    default:  // None of these messages has one.
      return false;
  }
}

void ReadErrorInfo(std::string_view info, Refusal& refusal) {
  for (WireField field; NextField(info, field);) {
    if (field.number == 1) refusal.reason = field.bytes;
    if (field.number != 3) continue;
    std::string name;
    std::string value;
    for (WireField part; NextField(field.bytes, part);) {
      (part.number == 1 ? name : value) = part.bytes;
    }
    refusal.metadata[name] = value;
  }
}

void ReadRetryInfo(std::string_view info, Refusal& refusal) {
  int64_t seconds = 0;
  int64_t nanos = 0;
  for (WireField field; NextField(info, field);) {
    if (field.number != 1) continue;
    for (WireField part; NextField(field.bytes, part);) {
      (part.number == 1 ? seconds : nanos) = static_cast<int64_t>(part.varint);
    }
  }
  refusal.retry_delay_ms = std::clamp<int64_t>(seconds, 0, 3600) * 1000 +
                           (std::clamp<int64_t>(nanos, 0, 999'999'999) + 999'999) / 1'000'000;
}

// A google.protobuf.Any.
void ReadDetail(std::string_view any, Refusal& refusal) {
  std::string_view type;
  std::string_view value;
  for (WireField field; NextField(any, field);) {
    if (field.number == 1) type = field.bytes;
    if (field.number == 2) value = field.bytes;
  }
  if (type.ends_with("/google.rpc.ErrorInfo")) ReadErrorInfo(value, refusal);
  if (type.ends_with("/google.rpc.RetryInfo")) ReadRetryInfo(value, refusal);
}

}  // namespace

Refusal RefusalOf(const grpc::Status& status) {
  Refusal refusal;
  refusal.code = status.error_code();
  refusal.message = status.error_message();
  const std::string details = status.error_details();
  std::string_view rest = details;
  for (WireField field; NextField(rest, field);) {
    if (field.number == 3) ReadDetail(field.bytes, refusal);
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
  if (const auto* const options = OptionsOf(reason)) return options->GetExtension(v1::cli_advice);
  if (!reason.empty()) return "";
  if (code == grpc::StatusCode::UNAVAILABLE) {
    return "Is the server running? Name it with --server HOST:PORT or STRATA_SERVER. A server with "
           "TLS "
           "needs --tls-ca, and perhaps --tls-certificate and --tls-key.";
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
    case grpc::StatusCode::CANCELLED:
      return reason.empty();
    default:
      // That of LEASE_HELD tells when the lease expires; the call has waited as long as it was to.
      return retry_delay_ms.has_value() && reason != "LEASE_HELD";
  }
}

bool Refusal::IsRetryableOnce() const {
  if (code == grpc::StatusCode::UNAVAILABLE) return reason == "DRAINING";
  const bool refused =
      code == grpc::StatusCode::RESOURCE_EXHAUSTED || code == grpc::StatusCode::ABORTED;
  return refused && IsRetryable();
}

bool Refusal::IsRetryablePart() const {
  const auto* const options = OptionsOf(reason);
  return IsRetryable() || (options != nullptr && options->GetExtension(v1::retry_delay_ms) > 0);
}

bool Refusal::LeavesOutcomeUnknown() const {
  switch (code) {
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::CANCELLED:
      // The server's own words for them say nothing else.
      return true;
    case grpc::StatusCode::UNAVAILABLE:
      return (reason.empty() && !unsent) || reason == "OUTCOME_UNKNOWN";
    case grpc::StatusCode::UNKNOWN:
    case grpc::StatusCode::INTERNAL:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      // gRPC says the last one by itself, of a call that was reset and of an answer too large for
      // it.
      return reason.empty();
    default:
      return reason == "OUTCOME_UNKNOWN";
  }
}

bool Refusal::MayBeOfOwnDoing() const {
  return code == grpc::StatusCode::ALREADY_EXISTS || code == grpc::StatusCode::NOT_FOUND ||
         code == grpc::StatusCode::FAILED_PRECONDITION || code == grpc::StatusCode::ABORTED;
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
