// Random commits to a store, and what it must hold after them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "schemas/store/store.h"

namespace strata::engines::rocks {

// A model of one store: the commits that were handed to it, in their order, and what each would
// leave. Since one thread hands them in, their positions are known beforehand.
class StoredCommits {
 public:
  using Place = std::pair<store::Keyspace, std::string>;
  struct Value {
    std::string bytes;
    store::CommitPosition position = 0;
  };
  using State = std::map<Place, Value>;

  explicit StoredCommits(size_t value_bytes_max = size_t{70} << 10)
      : value_bytes_max_(value_bytes_max) {}

  // Hands in `count` random batches at once, some of which lose, and waits for the answers. Each
  // answer is checked against the model. Only for lack of room, or alone, a batch may fail without
  // an end to all writes.
  void CommitSome(store::Store& store, int count, std::mt19937_64& chance);
  // As much in one batch of one keyspace as makes RocksDB flush it.
  void CommitLarge(store::Store& store, std::mt19937_64& chance);

  // The newest position that was acknowledged, and the newest that may be stored.
  store::CommitPosition acknowledged() const { return acknowledged_; }
  store::CommitPosition possible() const { return possible_; }
  bool failed() const { return failed_; }

  // What the commits up to `position` leave. REQUIRES: nothing was acknowledged after it.
  State StateAt(store::CommitPosition position) const;
  // The store was opened anew and holds all up to `position`: the rest never was.
  void RestartAt(store::CommitPosition position);

  // That the store holds all that was acknowledged, and of the rest a beginning, each commit whole.
  void ExpectStored(const store::Store& store) const;

 private:
  struct Change {
    Place place;
    std::optional<std::string> bytes;  // nothing: a deletion
  };
  struct Answer {
    std::vector<Change> changes;  // that the batch asks for
    std::vector<Place> inserts;   // where it asks that nothing be there
    std::optional<store::CommitResult> result;
  };

  // What it asks for goes into the answer.
  store::WriteBatch RandomBatch(std::mt19937_64& chance, Answer& answer) const;
  void Check(Answer& answer, bool alone);
  static void Apply(const std::vector<Change>& changes, store::CommitPosition position,
                    State& state);

  const size_t value_bytes_max_;
  State base_;  // as of base_position_
  store::CommitPosition base_position_ = 0;
  std::vector<std::vector<Change>> commits_;  // after it
  State newest_;                              // after all of them
  store::CommitPosition acknowledged_ = 0;
  store::CommitPosition possible_ = 0;
  bool failed_ = false;           // a write failed: the store takes no more
  mutable uint64_t written_ = 0;  // makes all values different
};

void ExpectSame(const StoredCommits::State& stored, const StoredCommits::State& expected);

// Everything that a store holds but the ledger, read in both ways. Nothing and a status if it
// cannot be read; fails the test if the two ways differ.
absl::StatusOr<StoredCommits::State> ReadAll(const store::Store& store);

}  // namespace strata::engines::rocks
