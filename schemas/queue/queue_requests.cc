#include "schemas/queue/queue_requests.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "schemas/base/error.h"
#include "schemas/base/names.h"
#include "schemas/base/sha256.h"
#include "schemas/base/status_macros.h"
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

}  // namespace

absl::Status CheckPayload(std::string_view field, const document::Content& payload) {
  if (payload.size() <= kPayloadBytesMax) return absl::OkStatus();
  return Error(ErrorReason::kMessageTooLarge, absl::StrCat("the payload has ", payload.size(),
                                                           " bytes, more than ", kPayloadBytesMax))
      .With("field", field)
      .With("size", static_cast<int64_t>(payload.size()))
      .With("limit", static_cast<int64_t>(kPayloadBytesMax));
}

// As labels of a change, whose limits they have.
absl::Status CheckHeaders(std::string_view field, const Headers& headers) {
  versioning::ChangeInfo change;
  change.labels = headers;
  const absl::Status checked = versioning::ValidateChange(change);
  if (checked.ok()) return checked;
  Error error = Error::Of(checked);
  error.Without("field").With("field", field);
  return error;
}

absl::Status CheckDelay(std::string_view field, microseconds delay) {
  if (delay.count() >= 0 && delay <= kDelayMax) return absl::OkStatus();
  return OutOfRange(field, Seconds(delay), "0 s to 10 years");
}

absl::Status CheckTimeout(std::string_view field, const std::optional<microseconds>& timeout) {
  if (!timeout || (*timeout >= kTimeoutMin && *timeout <= kTimeoutMax)) return absl::OkStatus();
  return OutOfRange(field, Seconds(*timeout), "1 s to 12 h");
}

absl::Status CheckReason(std::string_view field, std::string_view reason) {
  versioning::ChangeInfo change;
  change.reason = reason;
  const absl::Status checked = versioning::ValidateChange(change);
  if (checked.ok()) return checked;
  return OutOfRange(field, absl::StrCat(reason.size(), " bytes, or no UTF-8 without zero bytes"),
                    absl::StrCat("up to ", kReasonBytesMax, " bytes of UTF-8"));
}

absl::Status CheckCount(std::string_view field, int64_t count, int64_t most) {
  if (count >= 1 && count <= most) return absl::OkStatus();
  return OutOfRange(field, std::to_string(count), absl::StrCat("1 to ", most));
}

absl::StatusOr<MessageId> ToMessageId(std::string_view field, std::string_view text) {
  const std::optional<MessageId> id = MessageId::FromText(text);
  if (id) return *id;
  return Error(ErrorReason::kInvalidField,
               "is no id of a message: 32 hexadecimal digits in lower case")
      .With("field", field);
}

MessageId RequestMessageId(int64_t incarnation, std::string_view request) {
  Sha256 hash;
  hash.Update(std::to_string(incarnation)).Update("/").Update(request);
  const Hash all = hash.Finish();
  return *MessageId::FromBytes(HashBytes(all).substr(0, MessageId::kBytes));
}

absl::StatusOr<PreparedPush> Prepare(const QueueRecord& queue, const PushedMessage& message,
                                     const store::Capabilities& capabilities, UnixMicros now,
                                     MessageId random_id) {
  RETURN_IF_ERROR(CheckPayload("payload", message.payload));
  RETURN_IF_ERROR(CheckHeaders("headers", message.headers));
  if (message.priority < 0 || message.priority > kPriorityMax) {
    return OutOfRange("priority", std::to_string(message.priority), "0 to 9; 9 comes first");
  }
  if (!message.ordering_key.empty()) {
    RETURN_IF_ERROR(ValidateName("ordering_key", message.ordering_key));
    if (!capabilities.atomic_batches || !capabilities.commit_positions) {
      return Error(ErrorReason::kUnsupportedByEngine,
                   "an ordering_key needs atomic batches and commit positions, which the engine "
                   "does not have")
          .With("field", "ordering_key")
          .With("capability", capabilities.atomic_batches ? "commit_positions" : "atomic_batches");
    }
  }
  if (message.delay && message.deliver_time) {
    return Error(ErrorReason::kInvalidField, "at most one of delay and deliver_time may be set")
        .With("field", "deliver_time");
  }
  UnixMicros due = now;
  if (message.delay) {
    RETURN_IF_ERROR(CheckDelay("delay", *message.delay));
    due += message.delay->count();
  }
  if (message.deliver_time) {
    if (*message.deliver_time > now + kDelayMax.count()) {
      return OutOfRange("deliver_time", "more than 10 years ahead", "up to 10 years ahead");
    }
    due = std::max(due, *message.deliver_time);
  }
  // A repetition may come later than that; PlanPush looks whether it is one.
  if (message.expire_time && *message.expire_time <= due && message.request_id.empty()) {
    return ExpiresTooEarly();
  }
  if (absl::Status id = ValidateRequestId(message.request_id); !id.ok()) return id;
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
