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

// The write queues of all documents, in parts with a lock each. A document has one while somebody
// runs it. Thread-safe.
class WriteQueues {
 public:
  WriteQueues();
  ~WriteQueues();

  // Puts the write at the end of its document's queue. If that is new, it is returned, and the
  // caller has to run it until Take gives nothing; null if somebody else runs it.
  WriteQueuePtr Add(std::unique_ptr<PendingWrite> write);

 private:
  friend class WriteQueue;
  struct Shard {
    std::mutex mutex;
    std::unordered_map<std::string, WriteQueuePtr> queues;
  };

  static constexpr size_t kShards = 64;
  std::array<std::unique_ptr<Shard>, kShards> shards_;
};

// One document's. Must not outlive its WriteQueues; but for Add, used by one thread at a time: the
// one that runs it.
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

 private:
  friend class WriteQueues;

  const DocumentName name_;
  WriteQueues::Shard& shard_;
  std::list<std::unique_ptr<PendingWrite>> waiting_;  // guarded by the shard's mutex
  std::optional<size_t> next_take_max_;
};

}  // namespace strata::versioning
