// Write queues: the writes and units that wait for a document, in the order of their arrival.
// Internal to this folder.
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

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "schemas/versioning/write_path.h"

namespace strata::versioning {

// A write of one document: one that waits for its answer, or one of a unit's.
struct PendingWrite {
  WriteRequest request;
  Mutator mutate;
  WriteCallback done;  // of a unit's: none
  WriteQueue* queue = nullptr;
  int attempts = 0;           // commits tried
  int64_t lost_against = -1;  // head that the last lost commit was planned on; -1: none lost

  // Of the current round.
  size_t document = 0;                                // index into Round::documents
  std::optional<absl::StatusOr<WriteResult>> answer;  // none: left for the next one
  // The answer holds once the round's commit is done, and fails with it: it makes a version, or
  // joins writes, or it repeats a request before it that does.
  bool planned = false;
  bool makes_version = false;
};

// A unit that waits for its answer.
struct PendingUnit {
  UnitRequest request;               // its changes are in `writes`
  std::vector<PendingWrite> writes;  // one for each change
  UnitCallback done;
  int attempts = 0;
  // In each it has a ticket, or it is in the round that runs them; each once.
  std::vector<WriteQueue*> queues;
  std::vector<WriteQueue*> read_queues;  // one for each read

  // Of the current round; as of a PendingWrite.
  std::vector<size_t> read_documents;  // one for each read
  std::optional<absl::StatusOr<UnitResult>> answer;
  bool planned = false;
  UnixMicros time = 0;  // at which it was decided
};

using PendingUnitPtr = std::shared_ptr<PendingUnit>;

// What stands in a write queue, or takes part in a round: a write, or a unit (in a write queue: its
// ticket).
struct Waiting {
  std::unique_ptr<PendingWrite> write;
  PendingUnitPtr unit;  // set where `write` is not

  // The same as long as it waits, and nobody else's.
  const void* identity() const {
    return unit ? static_cast<const void*>(unit.get()) : static_cast<const void*>(write.get());
  }
  const Waiter* waiter() const { return unit ? unit->request.waiter : write->request.waiter; }
  bool planned() const { return unit ? unit->planned : write->planned; }
  bool answered() const { return unit ? unit->answer.has_value() : write->answer.has_value(); }
  // No commit that it is part of begins later.
  std::chrono::steady_clock::time_point deadline() const {
    return unit ? unit->request.deadline : write->request.deadline;
  }
  int& attempts() { return unit ? unit->attempts : write->attempts; }
  bool removal() const;
  template <typename Do>
  void ForEachWrite(Do action) const {
    if (write) return action(*write);
    for (PendingWrite& part : unit->writes) action(part);
  }
  void Refuse(absl::Status status);
  void Forget();  // the answer, and what was planned for it
  // Calls back with the answer; a unit's has those of its changes. REQUIRES: answered().
  static void Answer(Waiting waiting);
};

// A turn in which parked write queues may go on, still to be asked for.
struct WantedTurn {
  const Waiter* waiter = nullptr;
  const void* line = nullptr;  // null: nobody's, the executor's
  WriteQueuePtrs queues{};     // that who waits there stands in
  // What the waiter lives as long as; the write or unit may be answered meanwhile.
  WriteCallback keeps_waiter{};
  PendingUnitPtr keeps_unit{};
};

// Turns that are wanted together; a unit wants one for all write queues that it stands in.
class WantedTurns {
 public:
  // Of what waits in a parked write queue, unless its line's was asked for there already.
  void Add(const Waiting& entry, const WriteQueuePtr& queue);
  const std::vector<WantedTurn>& all() const { return all_; }
  bool empty() const { return all_.empty(); }

 private:
  std::vector<WantedTurn> all_;
  // Indexes into `all_`. Each write makes turns, and nearly none wants any: empty, this costs
  // nothing.
  absl::flat_hash_map<const PendingUnit*, size_t> of_units_;
};

// What is to be done for a write or unit that now waits.
struct Added {
  // The caller has to run these until TakeRound gives nothing, or Park them: they are new or, where
  // the caller may take long, were parked. The others somebody else runs.
  WriteQueuePtrs to_run{};
  WantedTurns wanted{};
};

// The write queues of all documents, in parts with a lock each. A document has one while a thread
// runs it, it stands still or it is parked. Thread-safe.
//
// The thread that runs a write queue owns its front: others only add to its end. A write queue
// stands still when its front is the ticket of a unit that is not at the front of all its write
// queues; then no thread runs it, until the thread that brings the last ticket runs them all.
//
// Long work is parked, with all write queues that it holds and all that stand still because of a
// unit in a parked one. Each waits for a turn of any caller with a write in it: the first turn runs
// it, with the parked ones that stand in its way, and the others find nothing to do. So no write
// waits for another document's long work.
class WriteQueues {
 public:
  WriteQueues();
  ~WriteQueues();

  // Puts the write at the end of its document's queue.
  Added Add(std::unique_ptr<PendingWrite> write, bool at_length);

  // Puts a ticket of the unit at the end of the queue of each of its documents, in one step as seen
  // by other units; a unit without documents does not wait.
  Added Add(const PendingUnitPtr& unit, bool at_length);

  struct Limits {
    size_t entries_max = 1;
    size_t documents_max = 1;
  };
  struct Taken {
    std::vector<Waiting> entries;
    WriteQueuePtrs queues;  // held; the first is the one that was asked for
    WantedTurns wanted;     // nothing is taken, and the write queue is parked
  };
  // Takes the entries at the front, with all write queues that they need: writes, and units whose
  // other write queues are all held or stand still before them. The caller runs all of them.
  // Nothing: the caller no longer runs the write queue; it has ended, stands still or is parked.
  Taken TakeRound(const WriteQueuePtr& queue, const Limits& limits);

  // Puts the entries without an answer back to the fronts, in their order, to be decided anew.
  // REQUIRES: the caller runs all its write queues.
  void PutBack(std::vector<Waiting>& entries);

  // Suspends these queues. The caller asks for these turns, and in each of them calls Resume, or
  // ResumeWithoutTurn when the turn is refused. REQUIRES: the caller runs them, and an entry waits
  // in each.
  WantedTurns Park(const WriteQueuePtrs& queues);
  // It is the line's turn. The caller runs these now: those that are parked, with the queues that
  // stand in their way.
  WriteQueuePtrs Resume(const void* line, const WriteQueuePtrs& queues);
  // The line gets no turn. The caller runs these now: those that no other turn resumes.
  WriteQueuePtrs ResumeWithoutTurn(const void* line, const WriteQueuePtrs& queues);

  struct Withdrawn {
    std::optional<Waiting> entry;
    WriteQueuePtrs to_run;  // that stood still for it
  };
  // Takes the entry at the front away, if there is any; a unit from all its write queues. REQUIRES:
  // the caller runs the write queue.
  Withdrawn Withdraw(const WriteQueuePtr& queue);

 private:
  friend class WriteQueue;
  struct Shard {
    std::mutex mutex;
    std::unordered_map<std::string, WriteQueuePtr> queues;
  };
  class RoundTaker;

  static bool StandsAtAllFronts(const PendingUnit& unit);
  Shard& ShardOf(const std::string& key);
  WriteQueuePtr AddTicket(const PendingUnitPtr& unit, std::string key, const DocumentName& name,
                          bool at_length, Added& added);
  static bool IsParked(const Shard& shard, const std::string& key);
  static Added AddWrite(Waiting entry, std::string key, Shard& shard);
  static void Park(WriteQueuePtrs queues, WantedTurns& wanted);
  static void Unpark(WriteQueuePtr queue, WriteQueuePtrs& to_run);
  static bool IsBehindParked(const PendingUnit& unit);
  static bool HasTurn(const WriteQueue& queue);
  static bool IsBroughtAlong(const WriteQueue& queue);

  static constexpr size_t kShards = 64;
  std::array<std::unique_ptr<Shard>, kShards> shards_;
  // Taken before a shard's by whoever adds, takes or withdraws tickets: so units stand in the same
  // order in all write queues, and who is last at the front is seen by one.
  std::mutex units_mutex_;
};

// One document's; of a unit without documents, its own. Must not outlive its WriteQueues; used by
// one thread at a time: the one that runs it.
class WriteQueue : public std::enable_shared_from_this<WriteQueue> {
 public:
  WriteQueue(std::string key, DocumentName name, WriteQueues::Shard& shard);

  // Empty: of a unit without documents.
  const DocumentName& name() const { return name_; }
  // Which of the round's it is, for whoever runs it.
  void set_place(size_t place) { place_ = place; }
  size_t place() const { return place_; }
  size_t size() const;

  // The next round, and only that, takes no more entries than that.
  void LimitNextTake(size_t entries_max) { next_take_max_ = entries_max; }
  const std::optional<size_t>& next_take_max() const { return next_take_max_; }

 private:
  friend class WriteQueues;
  friend class WantedTurns;

  const std::string key_;  // in the shard
  const DocumentName name_;
  WriteQueues::Shard& shard_;
  std::optional<size_t> next_take_max_;
  size_t place_ = 0;
  // Whose ticket is at the front, as far as whoever ran the queue last looked; guarded by the
  // units' mutex. It stands still or is parked, unless it is being looked at.
  const PendingUnit* front_ = nullptr;
  size_t tickets_ = 0;  // guarded by the shard's mutex, as what follows
  std::list<Waiting> waiting_;
  bool parked_ = false;          // changed with the units' mutex too
  std::set<const void*> lines_;  // whose turn was asked for and has not come
};

}  // namespace strata::versioning
