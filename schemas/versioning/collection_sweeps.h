// What a deleted collection leaves to do: its documents' records are swept, and a day later its
// tombstone goes, where nobody can mistake a successor for it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "schemas/base/clock.h"
#include "schemas/base/executor.h"
#include "schemas/store/store.h"
#include "schemas/versioning/collection_record.h"

namespace strata::versioning {

// How long a tombstone stays after its sweep.
inline constexpr std::chrono::hours kTombstoneLifetime{24};

// Works in the background, a chunk of records a task of the executor. Each sweep goes on where its
// last chunk ended, so its cost grows with the records that it deletes; only after a restart it
// begins at the incarnation's first key once more. What the store refuses is tried again after a
// delay that doubles from 100 ms to a minute.
//
// A tombstone is removed only on engines with commit positions. Stamps are positions there and
// never come back, so that whoever read the collection, or its tombstone, loses against the missing
// record as against a changed one. Elsewhere tombstones stay.
//
// Thread-safe. Keep it in a shared_ptr: work in flight holds it.
class CollectionSweeps : public std::enable_shared_from_this<CollectionSweeps> {
 public:
  // All must outlive the work that is in flight.
  CollectionSweeps(store::Store& store, const Clock& clock, Executor& executor);

  // Sweeps an incarnation that was deleted. Its SweepRecord is stored already.
  void Begin(std::string collection, int64_t incarnation);

  // Goes on with all that the stored SweepRecords tell of, and takes up tombstones that have none.
  // Call once after start.
  void Resume();

 private:
  struct Sweep;
  using Step = void (CollectionSweeps::*)(Sweep sweep);

  void Next(Step step, Sweep sweep);
  void Later(Step step, Sweep sweep);
  void After(std::chrono::microseconds delay, Step step, Sweep sweep);

  void AdoptTombstones();
  void CheckDeleted(Sweep sweep);
  void SweepChunk(Sweep sweep);
  void EndPass(Sweep sweep);
  void RemoveTombstone(Sweep sweep);

  store::Store& store_;
  const Clock& clock_;
  Executor& executor_;
  const store::Capabilities capabilities_;
};

}  // namespace strata::versioning
