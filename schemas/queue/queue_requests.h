// What requests about queues may say. Internal to this folder.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/queue/operations.h"
#include "schemas/queue/queues.h"
#include "schemas/store/store.h"

namespace strata::queue {

// INVALID_NAME, INVALID_FIELD, MESSAGE_TOO_LARGE, UNSUPPORTED_BY_ENGINE, naming a member of the
// message. What is pushed to `queue`, with an id by its request or by `random_id`.
absl::StatusOr<PreparedPush> Prepare(const QueueRecord& queue, const PushedMessage& message,
                                     const store::Capabilities& capabilities, UnixMicros now,
                                     MessageId random_id);

absl::Status CheckPayload(std::string_view field, const document::Content& payload);
absl::Status CheckHeaders(std::string_view field, const Headers& headers);
absl::Status CheckDelay(std::string_view field, std::chrono::microseconds delay);
absl::Status CheckTimeout(std::string_view field,
                          const std::optional<std::chrono::microseconds>& timeout);
absl::Status CheckReason(std::string_view field, std::string_view reason);
absl::Status CheckCount(std::string_view field, int64_t count, int64_t most);
absl::StatusOr<MessageId> ToMessageId(std::string_view field, std::string_view text);

// The id of the message that a request, or a schedule at a time, pushes to a queue.
MessageId RequestMessageId(int64_t incarnation, std::string_view request);

}  // namespace strata::queue
