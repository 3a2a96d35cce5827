// The errors that name a queue, a message or a reservation: one wording for all callers.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "schemas/queue/message.h"

namespace strata::queue {

// With `field` unless that is empty: the queue that the call is about needs none.
absl::Status QueueNotFound(std::string_view queue, std::string_view field = "");
absl::Status QueueExists(std::string_view queue);
absl::Status QueueNotEmpty(std::string_view queue);
absl::Status MessageNotFound(const MessageId& id);
// The message's delivery is `actual`, and not the token's, or it is not out any more.
absl::Status ReservationLost(const Token& token, const Message& message);
// It was handed out before the store was restored.
absl::Status TimelineLost(const Token& token, int64_t timeline);
// The token's own delivery is finished.
absl::Status AlreadyAcknowledged(const Token& token);
absl::Status PushReused(std::string_view queue);
// A message that nobody could ever be handed.
absl::Status ExpiresTooEarly();
// As errors say it: "1.5 s".
std::string Seconds(std::chrono::microseconds time);
// INVALID_FIELD with the bounds.
absl::Status OutOfRange(std::string_view field, std::string_view is, std::string_view may_be);

}  // namespace strata::queue
