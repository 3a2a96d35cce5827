// The stamps of records that were inserted or replaced lately, for the committer's guards.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "schemas/base/clock.h"
#include "schemas/store/keyspace.h"
#include "schemas/store/record.h"

namespace strata::engines::rocks {

// A message is pushed, and often handed out soon after that; then it is replaced, and soon deleted
// or replaced again: the guards of those writes find the stamp here, instead of looking for the
// record in memtables and files. Of keyspaces whose records are in the record cache nothing is
// kept.
//
// Says what is newest and durable. Used by one committer at a time, so it has no lock.
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

  // Knows at least the last `generation_max` that were set, and at most twice as many.
  explicit RecentStamps(size_t generation_max = kGenerationMax) : generation_max_(generation_max) {}

  // Of the record at a place; nothing where that is not known here.
  std::optional<Stamped> Find(const store::RecordKey& place) const {
    for (const Generation* generation : {&younger_, &older_}) {
      const auto found = generation->find(place);
      if (found != generation->end()) return found->second;
    }
    return std::nullopt;
  }

  // The record was inserted or replaced.
  void Set(const store::RecordKey& place, Stamped stamped) {
    Forget(place);
    if (younger_.size() >= generation_max_) {
      older_ = std::move(younger_);
      younger_.clear();
    }
    younger_.emplace(Key{place.keyspace, std::string(place.key)}, stamped);
  }

  // The record was written in another way, or is gone.
  void Forget(const store::RecordKey& place) {
    younger_.erase(place);
    older_.erase(place);
  }

  size_t size() const { return younger_.size() + older_.size(); }

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

  const size_t generation_max_;
  Generation younger_;
  Generation older_;
};

}  // namespace strata::engines::rocks
