// Whether a batch is begun, and what the guard of a write says about the record that is stored: one
// rule for every engine that decides by itself.
#pragma once

#include <chrono>
#include <optional>

#include "schemas/base/clock.h"
#include "schemas/base/error.h"
#include "schemas/store/store.h"
#include "schemas/store/write_batch.h"

namespace strata::engines {

// Whether a record that expires at `expire_time` (0: never) counts as absent at `now`.
inline bool Expired(UnixMicros expire_time, UnixMicros now) {
  return expire_time != 0 && expire_time <= now;
}

// Whether the batch waited too long to be begun at `now`.
inline bool TooLate(const store::WriteBatch& batch, std::chrono::steady_clock::time_point now) {
  return batch.deadline() <= now;
}

// The result of such a batch.
inline store::CommitResult DroppedTooLate() {
  store::CommitResult result;
  result.status = Error(ErrorReason::kDeadlineExceeded,
                        "The write waited for other commits until its deadline; it was not done.");
  return result;
}

enum class Verdict {
  kApply,   // do the write (nothing, for a check)
  kSkip,    // go on without it: an `ensure` that found its record
  kRefuse,  // stop: the batch lost
};

// `stored` is the stamp of the record under the write's key; nothing if there is none, or an
// expired one.
inline Verdict Judge(const store::Write& write, std::optional<store::Stamp> stored) {
  switch (write.guard) {
    case store::Guard::kAbsent:
      return stored ? Verdict::kRefuse : Verdict::kApply;
    case store::Guard::kStamp:
      return stored == write.stamp ? Verdict::kApply : Verdict::kRefuse;
    case store::Guard::kEnsure:
      return stored ? Verdict::kSkip : Verdict::kApply;
    case store::Guard::kAny:
      return Verdict::kApply;
  }
  return Verdict::kRefuse;
}

}  // namespace strata::engines
