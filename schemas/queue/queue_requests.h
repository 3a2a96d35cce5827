// What requests about queues may say. Internal to this folder.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/queue/operations.h"
#include "schemas/queue/queues.h"
#include "schemas/store/store.h"

namespace strata::queue {

// INVALID_NAME, INVALID_FIELD, MESSAGE_TOO_LARGE, naming a member of the message inside `field`;
// what is wrong with it in any queue.
absl::Status CheckMessage(std::string_view field, const PushedMessage& message);
// What is pushed to `queue`, with an id by its request or by `random_id`. INVALID_FIELD,
// UNSUPPORTED_BY_ENGINE. REQUIRES: CheckMessage.
absl::StatusOr<PreparedPush> Prepare(std::string_view field, const QueueRecord& queue,
                                     const PushedMessage& message,
                                     const store::Capabilities& capabilities, UnixMicros now,
                                     MessageId random_id);

absl::Status CheckReserve(const ReserveRequest& request);
absl::Status CheckReceive(const ReceiveRequest& request);
absl::Status CheckMove(const MoveRequest& request);
// Of a stream's message `field`; empty: of a call.
absl::Status CheckRollback(std::string_view field, const RollbackRequest& request);
absl::Status CheckTimeout(std::string_view field,
                          const std::optional<std::chrono::microseconds>& timeout);
absl::StatusOr<MessageId> ToMessageId(std::string_view field, std::string_view text);
// Each once.
absl::StatusOr<std::vector<MessageId>> ToMessageIds(const std::vector<std::string>& texts);
// Exactly one of the two may be set.
absl::Status CheckEither(const std::vector<std::string>& message_ids,
                         const std::vector<State>& states);
absl::Status CheckReplay(const ReplayRequest& request);

// The id of the message that a request, or a schedule at a time, pushes to a queue.
MessageId RequestMessageId(int64_t incarnation, std::string_view request);

}  // namespace strata::queue
