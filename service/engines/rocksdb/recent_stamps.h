// The stamps of records that were inserted, replaced or read lately, for the committer's guards.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "schemas/base/clock.h"
#include "schemas/store/keyspace.h"
#include "schemas/store/record.h"

namespace strata::engines::rocks {

// A message is pushed, read to be handed out, then replaced, and soon deleted or replaced again:
// the guards of those writes find the stamp here, instead of looking for the record in memtables
// and files. Of keyspaces whose records are in the record cache nothing is kept.
//
// Says what is newest and durable. Any thread may tell what it read; all else is for one committer
// at a time.
class RecentStamps {
 public:
  struct Stamped {
    store::Stamp stamp = 0;
    UnixMicros expire_time = 0;  // 0: never
  };

  // Some 100 bytes each, so at most some 3 MiB.
  static constexpr size_t kGenerationMax = 16'384;

  static bool Keeps(store::Keyspace keyspace) {
    return store::TraitsOf(keyspace).replaced_in_steps;
  }

  // Knows at least the last `generation_max` that it was told, and at most twice as many.
  explicit RecentStamps(size_t generation_max = kGenerationMax) : generation_max_(generation_max) {}

  // Of the record at a place; nothing where that is not known here.
  std::optional<Stamped> Find(const store::RecordKey& place) const {
    const std::lock_guard lock(mutex_);
    return FindLocked(place);
  }

  // What a reader found in the database, if nothing was written since: `read_at` is the position of
  // the last commit that was visible before it read. What it finds beside a commit is put right by
  // that commit's Set, and no guard is decided before.
  void Learn(const store::RecordKey& place, Stamped stamped, store::CommitPosition read_at) {
    const std::lock_guard lock(mutex_);
    if (last_set_ > read_at || FindLocked(place)) return;
    SetLocked(place, stamped);
  }

  // What a commit, or a group of them, has made of the records that it wrote, in their order; its
  // last position.
  struct Written {
    store::RecordKey place;
    std::optional<Stamped> stamped;  // none: it is gone, or nothing is to be kept of it
  };
  void Set(const std::vector<Written>& all, store::CommitPosition position) {
    const std::lock_guard lock(mutex_);
    for (const Written& written : all) {
      if (written.stamped) {
        SetLocked(written.place, *written.stamped);
      } else {
        ForgetLocked(written.place);
      }
    }
    last_set_ = position;
  }

  size_t size() const {
    const std::lock_guard lock(mutex_);
    return younger_.size() + older_.size();
  }

 private:
  struct Key {
    store::Keyspace keyspace;
    std::string key;
    operator store::RecordKey() const {  // NOLINT(google-explicit-constructor)
      return {keyspace, key};
    }
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(const store::RecordKey& place) const {
      return absl::Hash<store::RecordKey>()(place);
    }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const store::RecordKey& one, const store::RecordKey& other) const {
      return one == other;
    }
  };
  using Generation = absl::flat_hash_map<Key, Stamped, Hash, Equal>;

  std::optional<Stamped> FindLocked(const store::RecordKey& place) const {
    for (const Generation* generation : {&younger_, &older_}) {
      const auto found = generation->find(place);
      if (found != generation->end()) return found->second;
    }
    return std::nullopt;
  }
  void SetLocked(const store::RecordKey& place, Stamped stamped) {
    ForgetLocked(place);
    if (younger_.size() >= generation_max_) {
      older_ = std::move(younger_);
      younger_.clear();
    }
    younger_.emplace(Key{place.keyspace, std::string(place.key)}, stamped);
  }
  void ForgetLocked(const store::RecordKey& place) {
    younger_.erase(place);
    older_.erase(place);
  }

  const size_t generation_max_;

  mutable std::mutex mutex_;  // guards what follows
  Generation younger_;
  Generation older_;
  store::CommitPosition last_set_ = 0;
};

}  // namespace strata::engines::rocks
