// The dispatcher of one queue in this process: it combines what is asked of the queue into batches,
// and hands messages out. Internal to this folder.
//
// While a batch is in flight the next is gathered. A batch takes operations first, in the order of
// their calls, and then hands out what is ready to whoever waits, what the batch itself pushed
// included: so a message that somebody waits for costs one commit, not two. With atomic batches all
// of it is one commit; without, each step is one, and they run side by side. Nothing is decided
// here that a guard does not decide again: a batch that lost a race is planned anew on what is
// stored.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/base/doors.h"
#include "schemas/base/executor.h"
#include "schemas/queue/draft.h"
#include "schemas/queue/holders.h"
#include "schemas/queue/known_messages.h"
#include "schemas/queue/plans.h"
#include "schemas/queue/queues.h"
#include "schemas/queue/tally.h"
#include "schemas/queue/window.h"
#include "schemas/store/guarded_commit.h"
#include "schemas/store/store.h"

namespace strata::queue {

using QueueRecordPtr = std::shared_ptr<const QueueRecord>;

// What became of the messages of several queues with a commit.
struct Changes {
  std::vector<IndexChange> index;
  std::vector<Written> written;
  store::CommitPosition position = 0;
};

// The queues there are, as dispatchers need to know them. Thread-safe.
class Directory {
 public:
  virtual ~Directory() = default;
  // Null: there is none. What was read before will do: guards see to it that it still holds.
  virtual absl::StatusOr<QueueRecordPtr> Find(std::string_view name) = 0;
  // Reads it again.
  virtual absl::StatusOr<QueueRecordPtr> FindAnew(std::string_view name) = 0;
  // A commit of the dispatcher of queue `by` has changed more than that queue.
  virtual void Tell(const Changes& changes, int64_t by) = 0;
};

// What dispatchers work with. Once the doors are closed only the executor is left.
struct QueueEnvironment {
  // For commits of `owner`.
  store::CommitGround GroundOf(const std::shared_ptr<void>& owner) {
    return {store, executor, {owner, &doors}};
  }

  store::Store& store;
  const store::Capabilities capabilities;
  const Clock& clock;
  Executor& executor;
  Entropy& entropy;
  Directory& directory;
  const int64_t timeline;
  const StandingGrants* grants;  // null: everything is granted
  Doors doors;
  std::atomic<size_t> known_bytes = 0;  // of messages that dispatchers know
};
using QueueEnvironmentPtr = std::shared_ptr<QueueEnvironment>;

// Something asked of a queue, in steps that concern a message each. Used by one thread at a time;
// without atomic batches several of its steps may be planned at once.
class Operation {
 public:
  virtual ~Operation() = default;

  virtual size_t steps() const = 0;
  // About what its steps write.
  virtual size_t bytes() const { return 0; }
  virtual Deadline deadline() const { return kNoDeadline; }
  // No call waits for it, or what it does is right at any time: so it needs no deadline.
  virtual bool background() const { return false; }
  // Whether its steps make room, in a queue with that record: sooner or later the messages that
  // they are about take less. So they are still done where an engine refuses writes because its
  // disk is nearly full.
  virtual bool makes_room(const QueueRecord& /*queue*/) const { return false; }
  // The message that the step is about, if that is known before it is planned.
  virtual std::optional<MessageId> Concerns(size_t /*step*/) const { return std::nullopt; }
  // Before the steps, where they commit together: an error refuses them all.
  virtual absl::Status Check(Draft& /*draft*/, const Place& /*place*/) { return absl::OkStatus(); }
  // Keeps the step's answer, which holds once it is committed. An error refuses the step alone and
  // leaves the draft as it was. Called again after a lost race.
  virtual absl::Status Plan(size_t step, Draft& draft, const Place& place) = 0;
  // The step's answer is this, after all.
  virtual void Fail(size_t step, const absl::Status& status) = 0;
  // What it has done.
  virtual void Count(QueueCounts& /*counts*/) const {}
  // Calls back. The last call.
  virtual void End() = 0;
};
using OperationPtr = std::shared_ptr<Operation>;

// What is handed at once to a call, less the last message: its answer is a message of 4 MiB.
inline constexpr size_t kHandedBytesMax = size_t{2} << 20;

// Who takes messages: a call, or a stream. All but `gone` are called by one thread at a time.
class Consumer {
 public:
  virtual ~Consumer() = default;

  // Nothing is to be handed to it any more.
  virtual bool gone() const = 0;
  virtual bool pop() const { return false; }
  virtual std::optional<std::chrono::microseconds> timeout() const = 0;
  // How many messages it takes now.
  virtual int32_t wants() const = 0;
  // Whether it may be given a message whose last consumer was not heard of again.
  virtual bool takes_suspect() const = 0;
  // How much may be handed to it at once, in bytes, less the last message; 0: nothing now. It is
  // its until Deliver, as far as KeepRoom keeps it.
  virtual size_t TakeRoom() { return kHandedBytesMax; }
  virtual void KeepRoom(size_t /*bytes*/) {}
  // How much of it the message takes.
  virtual size_t SizeOf(const Message& message) const {
    return message.headers.size() + message.payload.size();
  }
  // So many are under way to it; a suspect among them.
  virtual void Expect(int32_t messages, bool suspect) = 0;
  // … and have come, or fewer of them. True: it takes more later.
  struct Handed {
    std::vector<MessageView> messages;
    std::vector<bool> suspects;
    int32_t expected = 0;
  };
  virtual bool Deliver(Handed handed) = 0;
  // Its time is over at this moment, unless it got something; kNoDeadline: never.
  virtual Deadline until() const { return kNoDeadline; }
  // From this moment on nothing is handed to it; kNoDeadline: always, as to a stream.
  virtual Deadline deadline() const { return kNoDeadline; }
  // The last call: it gets nothing (more). OK: its time is over.
  virtual void End(const absl::Status& status) = 0;
  // Whether it wants to hear when a message that it was given is not its any more: it has ended,
  // somebody else has it, or its reservation has run out.
  virtual bool holds() const { return false; }
  virtual void Released(const MessageId& /*id*/, int64_t /*delivery*/) {}
};
using ConsumerPtr = std::shared_ptr<Consumer>;

// Thread-safe. Kept in a shared_ptr: work in flight holds it.
class Dispatcher : public std::enable_shared_from_this<Dispatcher> {
 public:
  Dispatcher(QueueEnvironmentPtr environment, QueueRecordPtr queue);

  int64_t incarnation() const { return incarnation_; }
  const std::string& name() const { return name_; }

  void Do(OperationPtr operation);
  // The consumer gets messages in the order in which consumers came, until its end.
  void Add(ConsumerPtr consumer);
  // From now on nothing is looked for it; what is under way to it still comes.
  void Remove(const Consumer& consumer);
  // Forgets what was not needed for a while, and would be read again.
  void Rest();
  // Those die whose last try has run out without a word.
  void Bury();
  // Something about a consumer has changed: it wants more.
  void Look();
  // The queue's record is this now.
  void Know(QueueRecordPtr queue);
  // A commit that was not this dispatcher's.
  void Apply(const Changes& changes);
  // For a plan of such a commit: what the message was when this dispatcher met it last.
  void TellKnown(const MessageId& id, Draft& draft) const;
  // Asked about a hint whose message has not come: whether it was asked about before, so long ago
  // that no push takes longer. One hint is remembered.
  bool HasWaitedLong(const Hint& hint);
  // What such a commit did.
  void Count(int64_t pushed, int64_t acknowledged);
  // Nothing is done any more: all who wait, now and later, get this.
  void Close(const absl::Status& status);
  // The consumers end with it; what is asked else goes on.
  void EndConsumers(const absl::Status& status);
  // Those of them who wait for what is not there yet.
  void EndWaiting(const absl::Status& status);

  absl::StatusOr<QueueStatistics> Statistics();
  QueueCounts counts() const;
  // The present, in this queue: goes back only where the clock is set, not where it is adjusted.
  UnixMicros Now();
  // The same, and another one each time, so that what comes later stands later.
  UnixMicros NextTime();

 private:
  class HandOutOperation;
  struct Group;
  struct Round;
  using RoundPtr = std::shared_ptr<Round>;
  using GroupPtr = std::shared_ptr<Group>;
  // Of those made ahead, and of last tries.
  static constexpr size_t kReservationsKept = 4'096;

  struct Waiting {
    ConsumerPtr consumer;
    bool looked = false;  // something was looked for it
  };
  struct Release {
    ConsumerPtr consumer;
    MessageId message;
    int64_t delivery = 0;
  };

  void Run();
  bool Step();
  void TakeRound(Round& round);
  void PutBack(Round& round, const Group& group);
  void FindConsumers(Round& round);
  void StartCount();
  void Meet(std::string_view key, std::string_view value);
  void TakeOverdue();
  void JudgeUntoldLocked(Steady now);
  void FindRunOut(std::vector<Release>& released);
  void EndThoseInTime(const Round& round);
  absl::Status FindQueues(Group& group);
  Place PlaceOf(const Group& group);
  void Plan(const GroupPtr& group);
  absl::Status PlanAll(Group& group);
  void HandOutReady(const RoundPtr& round, const GroupPtr& group);
  std::optional<Window::Entry> TakeNext(const GroupPtr& group, bool suspects,
                                        std::deque<Hint>& drafted);
  bool Commit(const RoundPtr& round, const GroupPtr& group);
  void GoOn(const RoundPtr& round, const GroupPtr& group, const store::CommitResult& result);
  bool EndCommit(const GroupPtr& group, const store::CommitResult& result);
  void LandLocked(const GroupPtr& group);
  bool Keep(const GroupPtr& group, const absl::Status& refusal);
  bool EndAnnouncement(const GroupPtr& group, const store::CommitResult& result);
  bool LoseRace(const GroupPtr& group);
  void RemovePayloads(const GroupPtr& group);
  int64_t DrawStep();
  bool IsOutdated(Draft& draft, const std::optional<MessageId>& id);
  static void Fail(Group& group, const absl::Status& status);
  void EndRound(const RoundPtr& round);
  void EndHandOut(HandOutOperation& hand_out);
  absl::Status Confirm(const std::string& queue, int64_t incarnation);
  void ApplyLocked(Changes changes, std::vector<Release>& released);
  static void Tell(const std::vector<Release>& released);
  void ArmTimer();
  void CountOn();
  void CountLater();
  absl::Status CountSomeLocked();
  UnixMicros NowLocked();
  Steady EndOf(const Message& message);
  void RememberTry(Steady end, const MessageId& id);
  UnixMicros NextTimeLocked();
  UnixMicros StepTime();
  bool atomic() const { return environment_->capabilities.atomic_batches; }

  const QueueEnvironmentPtr environment_;
  const int64_t incarnation_;
  const std::string name_;
  const std::string index_prefix_;

  mutable std::mutex mutex_;  // guards what follows
  QueueRecordPtr queue_;
  std::deque<OperationPtr> operations_;
  std::deque<Waiting> consumers_;
  Steady consumers_end_at_ = Steady::max();  // the first of them
  bool running_ = false;                     // somebody runs rounds, or one is in flight
  bool look_again_ = false;
  std::optional<absl::Status> closed_;
  UnixMicros latest_ = 0;  // the latest time that was given out
  bool set_back_ = false;  // the clock was, and what waits in memory was ordered by another one
  Window window_;
  // What was stored by a clock that was ahead is looked for in the index: by whom this process
  // follows at its start, and by its own when it was set back.
  bool look_through_ = true;
  bool looking_through_ = false;
  bool all_ahead_kept_ = true;              // what was met so far had room in memory
  std::multimap<Steady, Hint> made_ahead_;  // reservations, by when their own timeouts are over
  std::multimap<Steady, MessageId> last_tries_;  // and those that may be the last, by their ends
  KnownMessages known_;
  Holders holders_;  // of what streams were given
  bool statistics_asked_ = false;
  std::unique_ptr<Tally> tally_;                 // null: nobody needs it
  std::unique_ptr<Tally> recount_;               // null: none is under way
  bool counting_ = false;                        // somebody counts on, in the background
  std::vector<std::weak_ptr<Group>> in_flight_;  // whose changes the store may show already
  store::CommitPosition applied_at_ = 0;         // the last commit whose changes are known here
  store::CommitPosition committed_at_ = 0;       // the last commit of a round
  store::CommitPosition counted_at_ = 0;         // of the last part of a count
  bool disturbed_ = false;  // a commit of others may be in the count twice, or not at all
  Steady recounted_at_;
  bool others_ = false;  // another server works on the queue too: something of its was met
  // What was met in the store before any news of it: another server's, unless a commit of this
  // process brings them soon.
  std::optional<Hint> untold_;
  Steady untold_since_;
  bool lost_race_ = false;
  std::optional<Hint> awaited_;  // whose message has not come
  Steady awaited_since_;
  Steady used_at_;  // the last round with anything in it
  Steady looked_anew_at_;
  store::CommitPosition looked_anew_position_ = -1;
  uint64_t timer_ = 0;               // which one counts
  Steady timer_at_ = Steady::max();  // max: none is armed
  QueueCounts counts_;
};

}  // namespace strata::queue
