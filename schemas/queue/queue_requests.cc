#include "schemas/queue/queue_requests.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "schemas/base/error.h"
#include "schemas/base/field_checks.h"
#include "schemas/base/names.h"
#include "schemas/base/sha256.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"
#include "schemas/queue/queue_errors.h"
#include "schemas/versioning/version.h"

namespace strata::queue {
namespace {

using std::chrono::microseconds;

constexpr size_t kFingerprintBytes = 8;

void AddPart(std::string_view part, Sha256& hash) {
  hash.Update(std::to_string(part.size())).Update(":").Update(part);
}

// Equal iff what was asked for is equal; the headers are sorted by their names.
std::string FingerprintOf(const PushedMessage& message, const document::Content& headers) {
  Sha256 hash;
  AddPart(message.payload.bytes(), hash);
  AddPart(headers.bytes(), hash);
  AddPart(message.ordering_key, hash);
  const auto number = [&](const std::optional<int64_t>& value) {
    AddPart(value ? std::to_string(*value) : "", hash);
  };
  number(message.priority);
  number(message.sequence_number);
  number(message.delay ? std::optional(message.delay->count()) : std::nullopt);
  number(message.deliver_time);
  number(message.expire_time);
  const Hash all = hash.Finish();
  return std::string(HashBytes(all).substr(0, kFingerprintBytes));
}

absl::Status CheckPayload(std::string_view field, const document::Content& payload) {
  if (payload.size() <= kPayloadBytesMax) return absl::OkStatus();
  return Error(ErrorReason::kMessageTooLarge, absl::StrCat("the payload has ", payload.size(),
                                                           " bytes, more than ", kPayloadBytesMax))
      .With("field", field)
      .With("size", static_cast<int64_t>(payload.size()))
      .With("limit", static_cast<int64_t>(kPayloadBytesMax));
}

// What a header's name or value may be. A zero byte would end a name where it is stored.
absl::Status CheckHeaderText(std::string_view field, std::string_view what, std::string_view text,
                             size_t bytes_max) {
  if (text.size() > bytes_max) {
    return Error(ErrorReason::kInvalidField,
                 absl::StrCat(ToAbsl(field), " has a ", ToAbsl(what), " of ", text.size(),
                              " bytes, at most ", bytes_max, " are allowed"))
        .With("field", field)
        .With("limit", static_cast<int64_t>(bytes_max));
  }
  if (text.find('\0') == std::string_view::npos) return absl::OkStatus();
  return FieldError(field, absl::StrCat("has a ", ToAbsl(what), " with a zero byte"));
}

absl::Status CheckHeaders(std::string_view field, const Headers& headers) {
  RETURN_IF_ERROR(CheckCount(field, headers.size(), kHeadersMax));
  for (const auto& [name, value] : headers) {
    if (name.empty()) return FieldError(field, "has an entry without a name");
    RETURN_IF_ERROR(CheckHeaderText(field, "name", name, kLabelNameBytesMax));
    RETURN_IF_ERROR(CheckHeaderText(field, "value", value, kNameBytesMax));
  }
  // What the names of labels may be besides.
  versioning::ChangeInfo change;
  change.labels = headers;
  const absl::Status checked = versioning::ValidateChange(change);
  if (checked.ok()) return checked;
  Error error = Error::Of(checked);
  error.Without("field").With("field", field);
  return error;
}

absl::Status CheckDelay(std::string_view field, microseconds delay) {
  return CheckRange(field, delay, microseconds(0), kDelayMax);
}

absl::Status CheckTimes(std::string_view field, const PushedMessage& message) {
  if (message.delay && message.deliver_time) {
    return FieldError(Inside(field, "deliver_time"),
                      "is set beside delay, and only one of the two can say when");
  }
  if (message.delay) RETURN_IF_ERROR(CheckDelay(Inside(field, "delay"), *message.delay));
  if (message.deliver_time && message.expire_time &&
      *message.expire_time <= *message.deliver_time) {
    return FieldError(Inside(field, "expire_time"),
                      "is not after deliver_time, so the message would never be handed out");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckMessage(std::string_view field, const PushedMessage& message) {
  RETURN_IF_ERROR(CheckPayload(Inside(field, "payload"), message.payload));
  RETURN_IF_ERROR(CheckHeaders(Inside(field, "headers"), message.headers));
  RETURN_IF_ERROR(CheckRange(Inside(field, "priority"), message.priority, 0, kPriorityMax));
  if (!message.ordering_key.empty()) {
    RETURN_IF_ERROR(ValidateName(Inside(field, "ordering_key"), message.ordering_key));
  }
  if (message.sequence_number) {
    RETURN_IF_ERROR(CheckLeast(Inside(field, "sequence_number"), *message.sequence_number, 1));
  }
  RETURN_IF_ERROR(CheckTimes(field, message));
  const absl::Status id = ValidateRequestId(message.request_id);
  return id.ok() || field.empty() ? id : InField(id, field);
}

absl::Status CheckReserve(const ReserveRequest& request) {
  RETURN_IF_ERROR(ValidateName("queue", request.queue));
  RETURN_IF_ERROR(CheckRange("count", request.count, 1, int64_t{kBatchMax}));
  RETURN_IF_ERROR(CheckTimeout("timeout", request.timeout));
  return CheckRange("wait", request.wait, microseconds(0), kWaitMax);
}

absl::Status CheckReceive(const ReceiveRequest& request) {
  RETURN_IF_ERROR(ValidateName("open.queue", request.queue));
  RETURN_IF_ERROR(CheckRange("open.credits", request.credits, 1, kCreditsMax));
  return CheckTimeout("open.timeout", request.timeout);
}

absl::Status CheckMove(const MoveRequest& request) {
  RETURN_IF_ERROR(ValidateName("queue", request.queue));
  if (request.payload) RETURN_IF_ERROR(CheckPayload("payload", *request.payload));
  if (request.headers) RETURN_IF_ERROR(CheckHeaders("headers", *request.headers));
  return CheckDelay("delay", request.delay);
}

absl::Status CheckRollback(std::string_view field, const RollbackRequest& request) {
  if (request.delay) RETURN_IF_ERROR(CheckDelay(Inside(field, "delay"), *request.delay));
  if (request.dead && (request.delay || request.not_counted)) {
    return FieldError(Inside(field, request.delay ? "delay" : "not_counted"),
                      "is set beside dead, which ends the message");
  }
  return CheckBytes(Inside(field, "reason"), request.reason.size(), kReasonBytesMax);
}

absl::Status CheckTimeout(std::string_view field, const std::optional<microseconds>& timeout) {
  return timeout ? CheckRange(field, *timeout, kTimeoutMin, kTimeoutMax) : absl::OkStatus();
}

absl::StatusOr<MessageId> ToMessageId(std::string_view field, std::string_view text) {
  const std::optional<MessageId> id = MessageId::FromText(text);
  if (id) return *id;
  return FieldError(field, text.empty() ? "is required: the id of a message"
                                        : "is no id of a message: 32 hexadecimal digits, in lower "
                                          "case");
}

absl::StatusOr<std::vector<MessageId>> ToMessageIds(const std::vector<std::string>& texts) {
  std::vector<MessageId> ids;
  for (size_t i = 0; i < texts.size(); ++i) {
    ASSIGN_OR_RETURN(const MessageId id, ToMessageId(Element("message_ids", i), texts[i]));
    // Twice the same is once.
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }
  return ids;
}

absl::Status CheckEither(const std::vector<std::string>& message_ids,
                         const std::vector<State>& states) {
  if (message_ids.empty() && states.empty()) {
    return FieldError("message_ids", "is required, or states");
  }
  if (message_ids.empty() || states.empty()) return absl::OkStatus();
  return FieldError("states", "is set beside message_ids, and only one of the two can say which");
}

absl::Status CheckReplay(const ReplayRequest& request) {
  RETURN_IF_ERROR(ValidateName("queue", request.queue));
  if (!request.target_queue.empty()) {
    RETURN_IF_ERROR(ValidateName("target_queue", request.target_queue));
  }
  RETURN_IF_ERROR(CheckEither(request.message_ids, request.states));
  for (size_t i = 0; i < request.states.size(); ++i) {
    if (request.states[i] == State::kFinished || request.states[i] == State::kDead) continue;
    return FieldError(Element("states", i),
                      "is neither MESSAGE_STATE_FINISHED nor MESSAGE_STATE_DEAD, and no other "
                      "message can be replayed");
  }
  if (request.states.empty() && (request.start_time || request.end_time)) {
    return FieldError(request.start_time ? "start_time" : "end_time", "needs states");
  }
  if (!request.start_time || !request.end_time || *request.start_time < *request.end_time) {
    return absl::OkStatus();
  }
  return FieldError("end_time", "is not after start_time");
}

MessageId RequestMessageId(int64_t incarnation, std::string_view request) {
  Sha256 hash;
  hash.Update(std::to_string(incarnation)).Update("/").Update(request);
  const Hash all = hash.Finish();
  return *MessageId::FromBytes(HashBytes(all).substr(0, MessageId::kBytes));
}

absl::StatusOr<PreparedPush> Prepare(std::string_view field, const QueueRecord& queue,
                                     const PushedMessage& message,
                                     const store::Capabilities& capabilities, UnixMicros now,
                                     MessageId random_id) {
  if (!message.ordering_key.empty() &&
      (!capabilities.atomic_batches || !capabilities.commit_positions)) {
    return Error(ErrorReason::kUnsupportedByEngine,
                 "an ordering_key needs atomic batches and commit positions, which the engine "
                 "does not have")
        .With("field", Inside(field, "ordering_key"))
        .With("capability", capabilities.atomic_batches ? "commit_positions" : "atomic_batches");
  }
  UnixMicros due = now + message.delay.value_or(microseconds(0)).count();
  if (message.deliver_time) {
    if (*message.deliver_time > now + kDelayMax.count()) {
      return OutOfRange(Inside(field, "deliver_time"), "more than 10 years ahead",
                        "up to 10 years ahead");
    }
    due = std::max(due, *message.deliver_time);
  }
  // A repetition may come later than that; PlanPush looks whether it is one.
  if (message.expire_time && *message.expire_time <= due && message.request_id.empty()) {
    return field.empty() ? ExpiresTooEarly() : InField(ExpiresTooEarly(), field);
  }
  PreparedPush push;
  push.message.id = message.request_id.empty()
                        ? random_id
                        : RequestMessageId(queue.incarnation, message.request_id);
  push.message.drawn = message.request_id.empty();
  push.message.payload = message.payload;
  push.message.headers = ToContent(message.headers);
  push.message.priority = message.priority;
  push.message.pusher = message.pusher;
  push.message.ordering_key = message.ordering_key;
  push.message.sequence_number = message.sequence_number;
  if (!message.request_id.empty()) {
    push.message.request = FingerprintOf(message, push.message.headers);
  }
  push.delay = message.delay;
  push.deliver_time = message.deliver_time;
  push.expire_time = message.expire_time;
  return push;
}

}  // namespace strata::queue
