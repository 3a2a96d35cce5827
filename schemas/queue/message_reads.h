// Messages are looked at without touching them. Internal to this folder.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "schemas/queue/queues.h"
#include "schemas/store/store.h"

namespace strata::queue {

// MESSAGE_NOT_FOUND.
absl::StatusOr<MessageView> ReadMessage(const store::Reader& reader, const QueueRecord& queue,
                                        const MessageId& id, UnixMicros now);

// As Queues::ListMessages.
absl::StatusOr<MessagePage> ListMessages(const store::Reader& reader, const QueueRecord& queue,
                                         const MessageQuery& query, UnixMicros now, size_t most);

// The ids of up to `most` messages that are in one of the states, and ended in [start, end) where
// they are FINISHED or DEAD; fewer than `most`: that was all.
absl::StatusOr<std::vector<MessageId>> FindMessages(
    const store::Reader& reader, const QueueRecord& queue, const std::vector<State>& states,
    std::optional<UnixMicros> start, std::optional<UnixMicros> end, UnixMicros now, size_t most);

// As Queues::LowWatermark.
absl::StatusOr<std::optional<int64_t>> ReadWatermark(const store::Reader& reader,
                                                     const QueueRecord& queue);

}  // namespace strata::queue
