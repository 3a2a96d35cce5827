// How many messages of a queue are in which state, kept by what commits do to its index. Internal
// to this folder.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/queue/draft.h"
#include "schemas/store/store.h"

namespace strata::queue {

// First counts the index, some keys at a time, between the commits of its queue; meanwhile a change
// counts if it is about a key that was passed. What is not due yet is counted by the second of its
// time, beyond a day by the hour, so that time makes messages ready without anybody looking. Not
// thread-safe.
class Tally {
 public:
  struct Counts {
    int64_t ready = 0;
    int64_t scheduled = 0;
    int64_t reserved = 0;
    int64_t waiting = 0;
    int64_t dead = 0;
    bool exact = false;
  };

  // Hours are told from seconds as of `now`.
  Tally(int64_t incarnation, UnixMicros now);

  // Sees what is counted.
  using Visit = std::function<void(std::string_view key, std::string_view value)>;
  // Counts up to `keys_max` keys more; whether there are any left. STORE_UNAVAILABLE,
  // RECORD_CORRUPT.
  absl::StatusOr<bool> CountOn(const store::Reader& reader, size_t keys_max, const Visit& visit);
  bool counted() const { return !passed_; }

  void Apply(const IndexChange& change);

  // What a store may show already, and Apply is yet to be told of.
  struct UnderWay {
    std::vector<const std::vector<IndexChange>*> changes;
    store::CommitPosition after = 0;  // what was committed later; 0: commits have no positions
  };
  // As of `now`, which never goes back, and of the changes that were applied. What becomes due
  // within this very second is looked for in the index. STORE_UNAVAILABLE, RECORD_CORRUPT.
  absl::StatusOr<Counts> Report(const store::Reader& reader, UnixMicros now,
                                const UnderWay& under_way);

  // Count anew: an hour has come near that holds messages, and is to be counted by the second; or
  // the clock was set back, and what was due is not.
  bool stale(UnixMicros now) const;

 private:
  struct Bucket {
    int64_t open = 0;
    int64_t reserved = 0;
  };
  void Count(std::string_view key, HintState state, int64_t by);
  void CountDue(UnixMicros due, bool reserved, int64_t by);
  void Advance(UnixMicros now);
  // How many of the present second are due, as far as it could be seen.
  struct Seen {
    Bucket due;
    bool all = true;
  };
  absl::StatusOr<Seen> LookAtPresent(const store::Reader& reader, UnixMicros now,
                                     const UnderWay& under_way) const;

  const int64_t incarnation_;
  const UnixMicros hours_from_;        // dues from here on are counted by the hour
  std::optional<std::string> passed_;  // all up to this key are counted; none: all are
  UnixMicros ready_to_ = 0;            // a whole second; dues before it are ready
  int64_t ready_ = 0;
  std::map<int64_t, Bucket> seconds_;  // from ready_to_ on
  std::map<int64_t, Bucket> hours_;
  int64_t members_ = 0;  // of ordering keys
  int64_t orders_ = 0;   // ordering keys: one member of each is not WAITING
  int64_t dead_ = 0;
};

}  // namespace strata::queue
