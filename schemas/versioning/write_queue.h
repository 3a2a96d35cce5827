// Write queues: the writes that wait for a document, in the order of their arrival. Internal to
// this folder.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "schemas/versioning/write_path.h"

namespace strata::versioning {

// One write that waits for its answer.
struct PendingWrite {
  WriteRequest request;
  Mutator mutate;
  WriteCallback done;
  int attempts = 0;           // commits tried
  int64_t lost_against = -1;  // head that the last lost commit was planned on; -1: none lost

  // Of the current round; no answer: left for the next one.
  std::optional<absl::StatusOr<WriteResult>> answer;
  // Index into Round::planned of the version that this request makes, itself or as the repetition
  // of a request before it: the answer holds once that is committed, and fails with it.
  std::optional<size_t> planned;
};

using PendingWrites = std::vector<std::unique_ptr<PendingWrite>>;

// A turn in which a parked write queue may go on, still to be asked for.
struct WantedTurn {
  const Waiter* waiter = nullptr;
  const void* line = nullptr;  // null: nobody's, the executor's
  WriteCallback keeps_waiter;  // which outlives the callback; the write may be answered meanwhile
};

// The write queues of all documents, in parts with a lock each. A document has one while somebody
// runs it or it is parked. Thread-safe.
class WriteQueues {
 public:
  WriteQueues();
  ~WriteQueues();

  struct Added {
    WriteQueuePtr queue{};
    // The caller has to run it until Take gives nothing, or Park it: it is new or, where the caller
    // may take long, was parked. Otherwise somebody else does.
    bool to_run = false;
    std::optional<WantedTurn> wanted{};
  };
  // Puts the write at the end of its document's queue.
  Added Add(std::unique_ptr<PendingWrite> write, bool at_length);

 private:
  friend class WriteQueue;
  struct Shard {
    std::mutex mutex;
    std::unordered_map<std::string, WriteQueuePtr> queues;
  };

  static constexpr size_t kShards = 64;
  std::array<std::unique_ptr<Shard>, kShards> shards_;
};

// One document's. Must not outlive its WriteQueues; but for Add and Resume, used by one thread at a
// time: the one that runs it.
//
// Parked, it waits for a turn of any of those whose writes wait in it: whoever comes first runs it,
// and the others find nothing to do. So nobody waits for what else its neighbours wait for.
class WriteQueue {
 public:
  WriteQueue(DocumentName name, WriteQueues::Shard& shard);

  const DocumentName& name() const { return name_; }
  size_t size() const;

  // Takes the writes at the front, as many as there are up to `writes_max` and what LimitNextTake
  // said. None: the queue is over.
  PendingWrites Take(size_t writes_max);

  // Puts writes that have no answer yet back to the front, in their order, to be decided anew.
  void PutBack(PendingWrites& writes);

  // The next Take, and only that, takes no more writes than that.
  void LimitNextTake(size_t writes_max) { next_take_max_ = writes_max; }
  const std::optional<size_t>& next_take_max() const { return next_take_max_; }

  // From now on nobody runs it. REQUIRES: writes wait. Whoever parks it asks for these turns, and
  // in each of them, or when it is refused, calls Resume or ResumeWithoutTurn.
  std::vector<WantedTurn> Park();
  // It is the line's turn. True: the caller runs the write queue now.
  bool Resume(const void* line);
  // The line gets no turn. True: nobody else does either, and the caller runs the write queue.
  bool ResumeWithoutTurn(const void* line);

 private:
  friend class WriteQueues;

  std::optional<WantedTurn> WantTurn(const PendingWrite& write);

  const DocumentName name_;
  WriteQueues::Shard& shard_;
  std::optional<size_t> next_take_max_;
  // Guarded by the shard's mutex.
  std::list<std::unique_ptr<PendingWrite>> waiting_;
  bool parked_ = false;
  std::set<const void*> lines_;  // whose turn was asked for and has not come
};

}  // namespace strata::versioning
