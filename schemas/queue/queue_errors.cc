#include "schemas/queue/queue_errors.h"

#include "absl/strings/str_cat.h"
#include "schemas/base/error.h"
#include "schemas/base/strings.h"

namespace strata::queue {
namespace {

Error WithDelivery(ErrorReason reason, const Token& token, std::string_view problem) {
  return Error(reason, absl::StrCat("message ", token.message.ToText(), " of queue ",
                                    ToAbsl(token.queue), ": ", ToAbsl(problem)))
      .With("queue", token.queue)
      .With("message_id", token.message.ToText())
      .With("delivery", token.delivery);
}

}  // namespace

absl::Status QueueNotFound(std::string_view queue, std::string_view field) {
  Error error(ErrorReason::kQueueNotFound,
              absl::StrCat("queue ", ToAbsl(queue), " does not exist"));
  error.With("queue", queue);
  if (!field.empty()) error.With("field", field);
  return error;
}

absl::Status QueueExists(std::string_view queue) {
  return Error(ErrorReason::kQueueExists, absl::StrCat("queue ", ToAbsl(queue), " exists"))
      .With("queue", queue);
}

absl::Status QueueNotEmpty(std::string_view queue) {
  return Error(ErrorReason::kQueueNotEmpty,
               absl::StrCat("queue ", ToAbsl(queue),
                            " holds messages that are neither finished nor purged; `force` "
                            "deletes them too"))
      .With("queue", queue);
}

absl::Status MessageNotFound(const MessageId& id) {
  return Error(ErrorReason::kMessageNotFound,
               absl::StrCat("message ", id.ToText(), " does not exist, or no longer exists"))
      .With("message_id", id.ToText());
}

absl::Status ReservationLost(const Token& token, const Message& message) {
  std::string problem;
  if (message.delivery != token.delivery) {
    problem = absl::StrCat("the token is of delivery ", token.delivery,
                           "; the message was handed out again since, delivery ", message.delivery);
  } else {
    problem =
        absl::StrCat("delivery ", token.delivery,
                     " has ended: it was acknowledged, rolled back, moved or replayed, or it died");
  }
  return WithDelivery(ErrorReason::kReservationLost, token, problem)
      .With("actual", message.delivery);
}

absl::Status TimelineLost(const Token& token, int64_t timeline) {
  return WithDelivery(ErrorReason::kReservationLost, token,
                      "the message was handed out before the store was restored")
      .With("timeline", token.timeline)
      .With("actual_timeline", timeline);
}

absl::Status AlreadyAcknowledged(const Token& token) {
  return WithDelivery(ErrorReason::kAlreadyAcknowledged, token,
                      absl::StrCat("delivery ", token.delivery, " is acknowledged already"));
}

absl::Status PushReused(std::string_view queue) {
  return Error(ErrorReason::kRequestIdReused,
               absl::StrCat("the request id was used for another message of queue ", ToAbsl(queue)))
      .With("field", "request_id");
}

absl::Status ExpiresTooEarly() {
  return OutOfRange("expire_time", "not after the time of delivery",
                    "any time after the message may be handed out");
}

std::string Seconds(std::chrono::microseconds time) {
  return absl::StrCat(static_cast<double>(time.count()) / 1e6, " s");
}

absl::Status OutOfRange(std::string_view field, std::string_view is, std::string_view may_be) {
  return Error(ErrorReason::kInvalidField,
               absl::StrCat("is ", ToAbsl(is), "; may be ", ToAbsl(may_be)))
      .With("field", field);
}

}  // namespace strata::queue
