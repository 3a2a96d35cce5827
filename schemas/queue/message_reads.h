// Messages are looked at without touching them. Internal to this folder.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "schemas/queue/queue_keys.h"
#include "schemas/queue/queues.h"
#include "schemas/store/store.h"

namespace strata::queue {

// MESSAGE_NOT_FOUND.
absl::StatusOr<MessageView> ReadMessage(const store::Reader& reader, const QueueRecord& queue,
                                        const MessageId& id, UnixMicros now);

// Hints that were met and can no more come true, to be cleaned (PlanCleaning): the first of them.
inline constexpr size_t kUntrueMax = 256;
using UntrueHints = std::vector<Hint>;

// As Queues::ListMessages.
absl::StatusOr<MessagePage> ListMessages(const store::Reader& reader, const QueueRecord& queue,
                                         const MessageQuery& query, UnixMicros now, size_t most,
                                         UntrueHints& untrue);

struct FoundMessages {
  std::vector<MessageId> ids;
  bool more = false;  // there may be more
};
// Up to `most` messages that are in one of the states, and ended at these times where they are
// FINISHED or DEAD; fewer where their payloads are so large that they had better not be written
// again in one commit. What it walks over without finding are RESERVED ones where SCHEDULED ones
// are asked for, SCHEDULED where RESERVED are.
absl::StatusOr<FoundMessages> FindMessages(const store::Reader& reader, const QueueRecord& queue,
                                           const std::vector<State>& states, const HintTimes& ended,
                                           const StopCheck& stopped, UnixMicros now, size_t most,
                                           UntrueHints& untrue);

// As Queues::LowWatermark, of one queue.
struct Watermark {
  std::optional<int64_t> least;
  // It is the number of a message that has not come (yet).
  std::optional<Hint> awaited;
};
absl::StatusOr<Watermark> ReadWatermark(const store::Reader& reader, const QueueRecord& queue,
                                        UntrueHints& untrue);

// Whether the queue holds a message that is neither finished nor purged, or one may be under way to
// it. False with `untrue`: there may be more after those.
absl::StatusOr<bool> HoldsMessages(const store::Reader& reader, const QueueRecord& queue,
                                   UnixMicros now, UntrueHints& untrue);

}  // namespace strata::queue
