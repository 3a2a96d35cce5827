// Which messages of a queue come next: the first of its due hints, in memory. Internal to this
// folder.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "schemas/queue/draft.h"
#include "schemas/queue/queue_keys.h"
#include "schemas/store/store.h"

namespace strata::queue {

// Knows all hints of each priority up to a place, and the time from which there may be more after
// it. Hints written by this process come in directly; those of others are found after that place,
// or in the next full scan. Messages that are not due yet never stand before those that are. Not
// thread-safe.
class Window {
 public:
  // So many hints of one priority are held; once there are fewer than a quarter, more are fetched.
  static constexpr size_t kHintsMax = 1'024;
  // Suspects (below) of one priority; more of them are left for the next time all is looked at.
  static constexpr size_t kSuspectsMax = 4'096;
  // Hints read at once: after many suspects the fresh ones are found by the next calls.
  static constexpr size_t kFetchedMax = 16'384;
  static constexpr UnixMicros kNever = std::numeric_limits<UnixMicros>::max();

  struct Entry {
    Hint hint;
    bool suspect = false;  // it was handed out before, and nothing was heard
    bool overdue = false;  // its time lies ahead, as another clock said; it has come all the same
  };

  explicit Window(int64_t incarnation) : incarnation_(incarnation) {}

  // Fetches what has become due. STORE_UNAVAILABLE, RECORD_CORRUPT.
  absl::Status Fill(const store::Reader& reader, UnixMicros now);
  // The next Fill begins at the first hint of each priority.
  void LookAnew();
  // Whether suspects were left for then.
  bool left_suspects() const { return left_suspects_; }
  // Gives back its memory, and looks anew.
  void Clear();

  // The first of them, or the first that is no suspect. The entries stay until they are taken.
  std::optional<Entry> First(bool suspects) const;
  // One of the first, by a random number: after a race was lost to another server.
  std::optional<Entry> Any(bool suspects, uint64_t random) const;
  void Take(const Hint& hint);

  // Whether no hint that may not have been fetched yet comes before this one.
  bool Knows(const Hint& hint) const;

  // As a commit of this process left the index.
  void Add(const Hint& hint, bool suspect, UnixMicros now);
  void Remove(const Hint& hint);
  // Its time lies ahead, but is not to be waited for. It comes after those of its priority whose
  // time has come; of too many the last ones are left to their times. False: it is one of those.
  bool AddOverdue(const Hint& hint, bool suspect);
  bool HasOverdue() const;

  // The first time at which there may be more to fetch; kNever.
  UnixMicros NextDue() const;
  // The time of the message that is ready for longest, as far as they have been fetched.
  std::optional<UnixMicros> Oldest() const;

 private:
  // In the order of hint keys of one priority.
  struct Place {
    UnixMicros due = 0;
    MessageId id;
    store::Stamp base = 0;

    friend auto operator<=>(const Place&, const Place&) = default;
  };
  struct Rank {
    std::map<Place, bool> fresh;  // the value says nothing
    std::map<Place, bool> suspects;
    std::map<Place, bool> overdue;  // whether each is a suspect
    std::optional<Place> known_to;  // all up to here were fetched; none: nothing was
    UnixMicros next_due = std::numeric_limits<UnixMicros>::min();  // of the first one after it
  };

  static Place PlaceOf(const Hint& hint) { return {hint.number, hint.id, hint.base}; }
  static Hint HintOf(int32_t priority, const Place& place) {
    return {HintKind::kDue, priority, place.due, place.id, place.base};
  }
  Rank& RankOf(const Hint& hint) { return ranks_[static_cast<size_t>(hint.priority)]; }
  void Insert(Rank& rank, const Place& place, bool suspect);
  absl::Status Fill(const store::Reader& reader, UnixMicros now, int32_t priority);

  const int64_t incarnation_;
  std::array<Rank, kPriorityMax + 1> ranks_;  // by priority
  bool left_suspects_ = false;
};

}  // namespace strata::queue
