#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/document/hash.h"
#include "schemas/document/struct_codec.h"
#include "service/rpc/answer_size.h"
#include "service/rpc/handlers/transaction/operations.h"
#include "service/rpc/queue_messages.h"
#include "service/rpc/resources.h"

namespace strata::rpc::transaction_service {
namespace {

// What may come in the writes of one request.
constexpr size_t kWritesBytesMax = size_t{3} << 20;

// What a result takes beside its names and its content, and the answer beside its results.
constexpr size_t kResultBytes = 128;
constexpr size_t kAnswerBytes = 512;
constexpr size_t kMessageIdBytes = 34;

// Whether messages of queues end with it, or begin.
bool ConcernsQueues(const wire::CommitRequest& request) {
  return !request.acknowledge().empty() || !request.pushes().empty();
}

absl::Status CheckSizes(const wire::CommitRequest& request) {
  if (request.writes().empty() && !ConcernsQueues(request)) {
    return FieldError("writes",
                      "is required: 1 to 100 writes, unless there are acknowledgements or pushes");
  }
  RETURN_IF_ERROR(CheckLength("writes", request.writes(), transaction::kWritesMax));
  RETURN_IF_ERROR(CheckLength("reads", request.reads(), transaction::kReadsMax));
  RETURN_IF_ERROR(CheckLength("acknowledge", request.acknowledge(), queue::kBatchMax));
  RETURN_IF_ERROR(CheckLength("pushes", request.pushes(), queue::kBatchMax));
  size_t bytes = 0;
  for (const wire::Write& write : request.writes()) bytes += write.ByteSizeLong();
  for (const wire::QueuePush& push : request.pushes()) bytes += push.ByteSizeLong();
  if (bytes <= kWritesBytesMax) return absl::OkStatus();
  return Error(ErrorReason::kInvalidField, "writes and pushes have " + std::to_string(bytes) +
                                               " bytes together, at most " +
                                               std::to_string(kWritesBytesMax) + " are allowed")
      .With("field", "writes")
      .With("limit", static_cast<int64_t>(kWritesBytesMax));
}

absl::StatusOr<std::optional<transaction::TransactionMode>> ToMode(wire::TransactionMode mode) {
  switch (mode) {
    case wire::TRANSACTION_MODE_UNSPECIFIED:
      return std::nullopt;
    case wire::TRANSACTION_MODE_ONE_COMMIT:
      return transaction::TransactionMode::kOneCommit;
    case wire::TRANSACTION_MODE_TWO_PHASE:
      return transaction::TransactionMode::kTwoPhase;
    default:
      return FieldError("mode", "is " + std::to_string(mode) +
                                    ", which is neither TRANSACTION_MODE_ONE_COMMIT (1) nor "
                                    "TRANSACTION_MODE_TWO_PHASE (2)");
  }
}

absl::StatusOr<std::vector<versioning::ReadCheck>> ToReads(const wire::CommitRequest& request) {
  std::vector<versioning::ReadCheck> made;
  made.reserve(static_cast<size_t>(request.reads_size()));
  for (int i = 0; i < request.reads_size(); ++i) {
    const wire::DocumentVersion& read = request.reads(i);
    if (read.version() < 0) {
      return FieldError(Element("reads", static_cast<size_t>(i)) + ".version",
                        "is negative; 0 says that the document was never written");
    }
    made.push_back({{read.collection(), read.id()}, read.version()});
  }
  return made;
}

// Keeps room for the answer, as it is sent. One that no client takes is refused before anything is
// written.
class AnswerMeter {
 public:
  // The call lives until the transaction is answered.
  AnswerMeter(const Call& call, wire::Encoding encoding, bool omits_content,
              const std::vector<transaction::Operation>& writes, size_t pushes)
      : call_(call),
        encoding_(encoding),
        omits_content_(omits_content),
        contents_(writes.size()),
        other_bytes_(kAnswerBytes + pushes * kMessageIdBytes) {
    for (const transaction::Operation& write : writes) {
      other_bytes_ += kResultBytes + write.name.collection.size() + write.name.id.size();
    }
  }

  // Of an answer without contents. OVERLOADED.
  absl::Status Reserve() const { return Reserve(0); }

  // With this content of a write, in place of what it had before. LAYOUT_LIMIT, OVERLOADED.
  absl::Status Admit(size_t write, const document::Content& content) {
    if (omits_content_) return absl::OkStatus();
    contents_[write] = BytesOf(content);
    const size_t bytes = std::accumulate(contents_.begin(), contents_.end(), size_t{0});
    if (bytes <= kPageBytesMax) return Reserve(bytes);
    return Error(ErrorReason::kLayoutLimit,
                 "the answer's contents would have over " + std::to_string(bytes - 1) +
                     " bytes together, at most " + std::to_string(kPageBytesMax) +
                     " are allowed; set omit_content")
        .With("size", static_cast<int64_t>(bytes))
        .With("limit", static_cast<int64_t>(kPageBytesMax));
  }

 private:
  // At least what it takes: small ones are not worth measuring.
  size_t BytesOf(const document::Content& content) const {
    if (encoding_ == wire::ENCODING_BSON) return content.size();
    const size_t at_most = content.size() * document::kStructGrowthMax;
    return at_most * contents_.size() <= kSmallAnswerBytes ? at_most
                                                           : document::StructSize(content);
  }

  absl::Status Reserve(size_t content_bytes) const {
    const size_t bytes = other_bytes_ + content_bytes;
    return bytes <= kSmallAnswerBytes ? absl::OkStatus() : call_.Reserve(bytes);
  }

  const Call& call_;
  const wire::Encoding encoding_;
  const bool omits_content_;
  std::vector<size_t> contents_;  // of each write
  size_t other_bytes_;
};

// Which of the modes it is where the request leaves that to the engine.
bool IsTwoPhase(const wire::CommitRequest& request, const Context& context) {
  if (request.mode() != wire::TRANSACTION_MODE_UNSPECIFIED) {
    return request.mode() == wire::TRANSACTION_MODE_TWO_PHASE;
  }
  return !context.services.documents.capabilities().atomic_batches;
}

// In two phases what is read is held by a version of its own, made in the name of whoever changes:
// that is a write.
absl::Status AuthorizeHeldReads(const wire::CommitRequest& request, const Context& context) {
  security::Access& access = context.services.access;
  const server::CallInfo& info = context.call.info();
  security::Demands demands;
  const int reads = std::min(request.reads_size(), static_cast<int>(transaction::kReadsMax));
  for (int i = 0; i < reads; ++i) {
    AddDemand(OnCollection(security::Permission::kWrite, request.reads(i).collection()), demands);
  }
  if (!demands.empty()) RETURN_IF_ERROR(access.Authorize(*info.identity, demands, info.peer));
  for (const security::Demand& demand : demands) {
    RETURN_IF_ERROR(ToChangeInfo(request.change(), demand.resource.name, access, info).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<queue::Queues::UnitPush>> ToPushes(const wire::CommitRequest& request,
                                                              const std::string& principal) {
  std::vector<queue::Queues::UnitPush> made;
  made.reserve(static_cast<size_t>(request.pushes_size()));
  for (int i = 0; i < request.pushes_size(); ++i) {
    const std::string field = Element("pushes", static_cast<size_t>(i));
    ASSIGN_OR_RETURN(queue::PushedMessage message,
                     ToPushedMessage(field + ".message", request.pushes(i).message()));
    message.pusher = principal;
    made.push_back({request.pushes(i).queue(), std::move(message)});
  }
  return made;
}

// Equal iff what is acknowledged and pushed is: contents and times as they were understood.
std::string FingerprintOf(const std::vector<std::string>& acknowledge,
                          const std::vector<queue::Queues::UnitPush>& pushes) {
  document::PartHasher hasher;
  hasher.Add(static_cast<int64_t>(acknowledge.size()));
  for (const std::string& token : acknowledge) hasher.Add(token);
  const auto add = [&](const std::optional<int64_t>& number) {
    hasher.Add(static_cast<int64_t>(number.has_value())).Add(number.value_or(0));
  };
  for (const auto& [queue, message] : pushes) {
    hasher.Add(queue).Add(message.payload.bytes());
    hasher.Add(static_cast<int64_t>(message.headers.size()));
    for (const auto& [name, value] : message.headers) hasher.Add(name).Add(value);
    hasher.Add(message.priority).Add(message.ordering_key).Add(message.request_id);
    add(message.sequence_number);
    add(message.delay ? std::optional<int64_t>(message.delay->count()) : std::nullopt);
    add(message.deliver_time);
    add(message.expire_time);
  }
  return std::string(document::HashBytes(hasher.Finish()));
}

// Has messages end and begin with it. What it answers is told what becomes of that; null: nothing
// of it is the queues'.
using StepsPtr = std::shared_ptr<queue::UnitSteps>;
absl::StatusOr<StepsPtr> JoinSteps(const wire::CommitRequest& request, const Context& context,
                                   transaction::CommitRequest& commit) {
  if (!ConcernsQueues(request)) return nullptr;
  if (IsTwoPhase(request, context)) {
    return Error(ErrorReason::kUnsupportedByEngine,
                 "messages are acknowledged and pushed by a transaction in one commit; this one "
                 "is in two phases")
        .With("capability", "atomic_batches");
  }
  ASSIGN_OR_RETURN(std::vector<queue::Queues::UnitPush> pushes,
                   ToPushes(request, context.call.info().identity->principal));
  std::vector<std::string> tokens(request.acknowledge().begin(), request.acknowledge().end());
  if (!request.request_id().empty()) commit.joined_fingerprint = FingerprintOf(tokens, pushes);
  ASSIGN_OR_RETURN(StepsPtr steps,
                   context.services.queues.PlanUnit(std::move(tokens), std::move(pushes)));
  commit.joined.push_back(steps->plan());
  for (const queue::MessageId& id : steps->pushed()) commit.joined_answer += id.bytes();
  return steps;
}

absl::StatusOr<transaction::CommitRequest> ToCommit(const wire::CommitRequest& request,
                                                    const Context& context) {
  RETURN_IF_ERROR(CheckSizes(request));
  RETURN_IF_ERROR(CheckEncoding(request.encoding()));
  transaction::CommitRequest made;
  ASSIGN_OR_RETURN(made.mode, ToMode(request.mode()));
  ASSIGN_OR_RETURN(made.max_attempts, ToMaxAttempts("max_attempts", request.max_attempts()));
  made.writes.reserve(static_cast<size_t>(request.writes_size()));
  for (int i = 0; i < request.writes_size(); ++i) {
    ASSIGN_OR_RETURN(transaction::Operation write,
                     ToOperation(i, request.writes(i), request.change(), context));
    made.writes.push_back(std::move(write));
  }
  ASSIGN_OR_RETURN(made.reads, ToReads(request));
  if (request.has_lease()) RETURN_IF_ERROR(JoinFence(request.lease(), context, made.joined));
  // The caller was asked for it on each write's collection, and is the same for all of them.
  const std::string_view collection =
      made.writes.empty() ? security::kEvery : made.writes.front().name.collection;
  ASSIGN_OR_RETURN(made.change, ToChangeInfo(request.change(), collection, context.services.access,
                                             context.call.info()));
  made.request_id = request.request_id();
  made.principal = context.call.info().identity->principal;
  made.validate_only = request.validate_only();
  made.deadline = context.call.deadline();
  made.waiter = &context.call;
  made.brief = !context.call.at_length();
  const auto answer =
      std::make_shared<AnswerMeter>(context.call, request.encoding(), request.omit_content(),
                                    made.writes, static_cast<size_t>(request.pushes_size()));
  RETURN_IF_ERROR(answer->Reserve());
  made.admit_content = [answer](size_t write, const document::Content& content) {
    return answer->Admit(write, content);
  };
  return made;
}

// Of a repeated call there may be no more than the name and the version.
void FillResultDocument(const versioning::WriteResult& result, const wire::CommitRequest& request,
                        wire::Document& document) {
  if (result.version.header.commit_time != 0) {
    FillDocument(result.name.collection, result.name.id, result.version, document);
  } else {
    document.set_collection(result.name.collection);
    document.set_id(result.name.id);
    document.set_version(result.version.header.version);
  }
  if (result.version.content && !request.omit_content()) {
    FillContent(*result.version.content, request.encoding(), *document.mutable_content());
  }
}

void FillCommitted(const transaction::Committed& committed, const wire::CommitRequest& request,
                   wire::CommitResponse& response) {
  response.set_transaction_id(committed.transaction_id);
  for (size_t i = 0; i < committed.results.size(); ++i) {
    const versioning::WriteResult& result = committed.results[i];
    wire::CommitResult& filled = *response.add_results();
    FillResultDocument(result, request, *filled.mutable_document());
    filled.set_changed(result.changed);
    filled.set_stale(result.stale);
    const wire::Write& write = request.writes(static_cast<int>(i));
    if (write.has_enroll() || write.has_unenroll()) {
      filled.set_enrollment(static_cast<wire::EnrollmentResult>(result.note));
    }
  }
  response.set_commit_position(committed.position);
  response.set_attempts(committed.attempts);
  response.set_replayed(committed.replayed);
}

// `ids` is what JoinSteps has had remembered.
void FillPushed(std::string_view ids, wire::CommitResponse& response) {
  constexpr size_t kBytes = queue::MessageId::kBytes;
  for (; ids.size() >= kBytes; ids.remove_prefix(kBytes)) {
    response.add_message_ids(queue::MessageId::FromBytes(ids.substr(0, kBytes))->ToText());
  }
}

}  // namespace

absl::Status Commit(const Context& context, const wire::CommitRequest& request,
                    Reply<wire::CommitResponse> reply) {
  if (IsTwoPhase(request, context)) RETURN_IF_ERROR(AuthorizeHeldReads(request, context));
  ASSIGN_OR_RETURN(transaction::CommitRequest commit, ToCommit(request, context));
  ASSIGN_OR_RETURN(StepsPtr steps, JoinSteps(request, context, commit));
  std::string pushed = commit.joined_answer;
  context.services.transactions.Commit(
      std::move(commit),
      [reply = std::move(reply), &request, steps = std::move(steps),
       pushed = std::move(pushed)](const absl::StatusOr<transaction::Committed>& result) {
        if (!result.ok()) return reply.Fail(result.status());
        FillCommitted(*result, request, reply.response());
        if (result->replayed) {
          FillPushed(result->joined_answer, reply.response());
        } else if (steps != nullptr && !request.validate_only()) {
          steps->Committed(result->position);
          FillPushed(pushed, reply.response());
        }
        reply.Ok();
      });
  return absl::OkStatus();
}

}  // namespace strata::rpc::transaction_service
