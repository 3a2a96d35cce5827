// Queues: messages that are pushed, handed out under a reservation, and acknowledged, rolled back
// or moved.
//
// A message's record is the only truth (message.h); queue_index says where to look (queue_keys.h);
// each step is planned as a pure function (plans.h) and committed under guards (draft.h). A
// dispatcher for each queue combines the steps of this process and knows which message comes next
// (dispatcher.h); several processes over one store only lose races.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/base/executor.h"
#include "schemas/base/stop.h"
#include "schemas/base/waiter.h"
#include "schemas/document/content.h"
#include "schemas/queue/message.h"
#include "schemas/queue/queue_record.h"
#include "schemas/queue/standing_grants.h"
#include "schemas/store/joined_plan.h"
#include "schemas/store/store.h"

namespace strata::queue {

inline constexpr int64_t kQueuesMaxDefault = 10'000;
inline constexpr size_t kBatchMax = 100;  // messages of a push, tokens of a call
inline constexpr int32_t kCreditsMax = 1'000;
inline constexpr std::chrono::microseconds kWaitMax = std::chrono::seconds(20);
// Maximum messages of one replay or purge by state and time.
inline constexpr size_t kSweptMax = 1'000;
inline constexpr std::chrono::microseconds kDelayMax = std::chrono::hours(24 * 3653);
inline constexpr std::chrono::microseconds kEveryMin = std::chrono::seconds(1);
inline constexpr std::chrono::microseconds kEveryMax = std::chrono::hours(24 * 30);
inline constexpr size_t kSchedulesMax = 1'000;  // of one queue

using Deadline = std::chrono::steady_clock::time_point;
inline constexpr Deadline kNoDeadline = Deadline::max();

struct Queue {
  std::string name;
  QueueSettings settings;
  UnixMicros create_time = 0;
};
using QueueCallback = std::function<void(absl::StatusOr<Queue>)>;

struct QueueStatistics {
  int64_t ready = 0;
  int64_t scheduled = 0;
  int64_t reserved = 0;
  int64_t waiting = 0;
  int64_t dead = 0;
  std::chrono::microseconds oldest_ready_age{0};  // 0: none is ready
  std::optional<int64_t> low_watermark;
  // True: the queue was counted, and this process has seen no other one change it since. It notices
  // another process when it meets a change of that one: a message to be handed out, one given to a
  // consumer here, one acknowledged here. From then on it is false, and the figures are those of a
  // count, begun by a request for them at most once a minute, plus the changes made here since.
  bool exact = false;
};

// A message as callers see it.
struct MessageView {
  std::string queue;
  MessageId id;
  State state = State::kReady;
  Message message;    // with its payload
  std::string token;  // of a message that was handed out to the caller
};

struct PushedMessage {
  document::Content payload;
  Headers headers;
  int32_t priority = 0;
  std::string ordering_key;
  std::optional<int64_t> sequence_number;
  std::optional<std::chrono::microseconds> delay;  // at most one of the two
  std::optional<UnixMicros> deliver_time;
  std::optional<UnixMicros> expire_time;
  std::string request_id;
  std::string pusher;  // the principal; empty: not known
};
struct PushRequest {
  std::string queue;
  std::vector<PushedMessage> messages;
  Deadline deadline = kNoDeadline;
};
struct PushResult {
  MessageId id;
  bool replayed = false;
};
// One for each message, in their order. With atomic batches all are OK or none is.
using PushCallback = std::function<void(absl::StatusOr<std::vector<absl::StatusOr<PushResult>>>)>;

struct ReserveRequest {
  std::string queue;
  int32_t count = 1;
  std::optional<std::chrono::microseconds> timeout;  // none: the queue's; not of a pop
  std::chrono::microseconds wait{0};                 // for the first one
  bool pop = false;                                  // finished in the same commit
  bool as_structs = false;                           // how payloads are answered; else as BSON
  Deadline deadline = kNoDeadline;
  const Waiter* waiter = nullptr;  // outlives the callback; nothing is handed to one that is gone
};
using ReserveCallback = std::function<void(absl::StatusOr<std::vector<MessageView>>)>;

// One result for each token, in their order.
using TokensCallback = std::function<void(std::vector<absl::StatusOr<bool>> replayed)>;

struct RollbackRequest {
  std::vector<std::string> tokens;
  std::optional<std::chrono::microseconds> delay;
  bool not_counted = false;
  bool dead = false;
  std::string reason;
  std::optional<Deadline> deadline = kNoDeadline;  // none: no call waits for it
};

struct MoveRequest {
  std::string token;
  std::string queue;
  std::optional<document::Content> payload;
  std::optional<Headers> headers;
  std::chrono::microseconds delay{0};
  std::string mover;  // the principal, whose the payload is from then on, if there is one here
  Deadline deadline = kNoDeadline;
};

struct MessageQuery {
  std::string queue;
  std::optional<State> state{};  // none: every message that is not finished
  std::string after{};           // opaque: resume_after of the page before; empty: from the first
  StopCheck stopped = {};
};
struct MessagePage {
  std::vector<MessageView> messages;
  std::optional<std::string> resume_after;  // none: that was all
};

struct ReplayRequest {
  std::string queue;
  std::vector<std::string> message_ids;  // either these, at most kBatchMax, …
  std::vector<State> states;             // … or FINISHED, DEAD, or both
  std::optional<UnixMicros> start_time;  // of the end of a message; inclusive
  std::optional<UnixMicros> end_time;    // exclusive
  std::string target_queue;              // empty: the same
  Deadline deadline = kNoDeadline;
  StopCheck stopped = {};
};
struct PurgeRequest {
  std::string queue;
  std::vector<std::string> message_ids;
  std::vector<State> states;
  Deadline deadline = kNoDeadline;
  StopCheck stopped = {};
};
struct Swept {
  int64_t messages = 0;  // replayed or purged
  bool more = false;     // there may be more: call again
};
using SweptCallback = std::function<void(absl::StatusOr<Swept>)>;

struct Schedule {
  std::string queue;
  std::string name;
  std::string cron;                    // either this …
  std::chrono::microseconds every{0};  // … or this
  PushedMessage message;               // without times and request id
  UnixMicros next_time = 0;
};
using ScheduleCallback = std::function<void(absl::StatusOr<Schedule>)>;

// What is handed to a stream at once, in bytes as stored, less the last message.
inline constexpr size_t kStreamedBytesMax = size_t{256} << 10;

// The receiver of a stream of messages. Called on any thread, perhaps on several at once; `closed`
// and `full` perhaps with a lock held, so they call nothing of the Receiver.
class ReceiverSink {
 public:
  virtual ~ReceiverSink() = default;
  // The client takes no further messages.
  virtual bool closed() const = 0;
  // The client's backlog is full; nothing is delivered until Receiver::Ready.
  virtual bool full() const { return false; }
  // Whether there is room for kStreamedBytesMax and a message, which is its until Deliver; if not,
  // it is full. Of what is handed out then, KeepRoom says how much it comes to, perhaps 0.
  virtual bool TakeRoom() { return true; }
  virtual void KeepRoom(size_t /*bytes*/) {}
  virtual void Deliver(std::vector<MessageView> messages) = 0;
  // Of one call of the Receiver.
  virtual void Answer(std::vector<std::string> tokens,
                      std::vector<absl::StatusOr<bool>> replayed) = 0;
  // The last call: QUEUE_NOT_FOUND if the queue was deleted, DRAINING, STORE_UNAVAILABLE, ….
  virtual void End(absl::Status status) = 0;
};

struct ReceiveRequest {
  std::string queue;
  int32_t credits = 0;
  std::optional<std::chrono::microseconds> timeout;
};

// A stream's consumer. Thread-safe. Messages of it that are neither acknowledged nor rolled back
// are out; how many may be is its credits. A message that ends otherwise (by Commit, Move or
// another call) gives its credit back too.
class Receiver {
 public:
  virtual ~Receiver() = default;  // as Leave(false)

  virtual void Acknowledge(std::vector<std::string> tokens) = 0;
  // INVALID_FIELD: nothing is answered.
  virtual absl::Status Rollback(RollbackRequest request) = 0;
  virtual absl::Status Extend(std::vector<std::string> tokens,
                              std::optional<std::chrono::microseconds> timeout) = 0;
  // More messages may be out at once. INVALID_FIELD past kCreditsMax.
  virtual absl::Status AddCredits(int32_t credits) = 0;
  // The sink is no longer full.
  virtual void Ready() = 0;
  // Its messages are rolled back: uncounted if its client said so or the server ends it, else as if
  // the reservation had expired.
  virtual void Leave(bool orderly) = 0;
};

// Steps of queues that commit with a unit. They get the unit's outcome once.
class UnitSteps {
 public:
  virtual ~UnitSteps() = default;
  virtual store::JoinedPlan plan() = 0;
  // The unit has committed at `position`.
  virtual void Committed(store::CommitPosition position) = 0;
  // The ids of the messages pushed, in order.
  virtual std::vector<MessageId> pushed() const = 0;
};

// The actions of this process on one queue.
struct QueueCounts {
  int64_t pushed = 0;
  int64_t handed_out = 0;
  int64_t acknowledged = 0;
  int64_t rolled_back = 0;
  int64_t died = 0;
  int64_t races_lost = 0;
  int64_t commits = 0;     // of the queue's own, not of units
  int64_t operations = 0;  // in them
};

// Called once for each schedule that cannot be read and so does not fire. On any thread.
using DamagedSchedule = std::function<void(std::string_view queue, std::string_view schedule,
                                           const absl::Status& status)>;

struct QueuesOptions {
  int64_t queues_max = kQueuesMaxDefault;
  int64_t waiting_max = 10'000;  // Reserve and Pop that wait, of all queues
  document::Limits payload_limits = {.bytes_max = kPayloadBytesMax};
  int64_t timeline = 0;                    // how often the store was restored
  const StandingGrants* grants = nullptr;  // outlives the queues; null: everything is granted
  DamagedSchedule damaged_schedule = nullptr;
};

// Thread-safe. Each callback comes once, on any thread, perhaps before the call returns, with no
// lock held. All: INVALID_NAME and INVALID_FIELD naming the request's field, QUEUE_NOT_FOUND,
// RETRIES_EXHAUSTED, DEADLINE_EXCEEDED, OUTCOME_UNKNOWN, STORE_UNAVAILABLE, OVERLOADED, DISK_FULL,
// RECORD_CORRUPT.
class Queues {
 public:
  // All must outlive it, and the executor the work in flight.
  Queues(store::Store& store, const Clock& clock, Entropy& entropy, Executor& executor,
         QueuesOptions options = {});
  ~Queues();

  // QUEUE_EXISTS, QUEUE_LIMIT.
  void Create(const std::string& name, const QueueSettings& settings, Deadline deadline,
              QueueCallback done);
  absl::StatusOr<Queue> Get(const std::string& name) const;
  absl::StatusOr<QueueStatistics> Statistics(const std::string& name);
  absl::StatusOr<QueueCounts> Counts(const std::string& name);
  // Up to `most` in the byte order of their names, after `after_name`.
  absl::StatusOr<std::vector<Queue>> List(const std::string& after_name, size_t most) const;
  // `change` is called at each attempt; a non-OK answer of it ends the call.
  void Update(const std::string& name, std::function<absl::Status(QueueSettings&)> change,
              Deadline deadline, QueueCallback done);
  // QUEUE_NOT_EMPTY without `force` while there are messages that are neither finished nor purged.
  void Delete(const std::string& name, bool force, Deadline deadline,
              std::function<void(absl::Status)> done);

  // REQUEST_ID_REUSED, MESSAGE_TOO_LARGE; UNSUPPORTED_BY_ENGINE for an ordering key without atomic
  // batches and commit positions.
  void Push(PushRequest request, PushCallback done);
  // The answer is empty if no message came in time. DRAINING if the call waits when the server
  // ends.
  void Reserve(ReserveRequest request, ReserveCallback done);
  // MESSAGE_NOT_FOUND, RESERVATION_LOST of a token.
  void Acknowledge(std::vector<std::string> tokens, Deadline deadline, TokensCallback done);
  // INVALID_FIELD is the result, and `done` is not called.
  absl::Status Rollback(RollbackRequest request, TokensCallback done);
  absl::Status Extend(std::vector<std::string> tokens,
                      std::optional<std::chrono::microseconds> timeout, Deadline deadline,
                      TokensCallback done);
  // The message as it is then.
  void Move(MoveRequest request, std::function<void(absl::StatusOr<MessageView>)> done);

  // MESSAGE_NOT_FOUND.
  absl::StatusOr<MessageView> GetMessage(const std::string& queue, const std::string& id) const;
  // In the order of their hints; live ones by priority and time.
  absl::StatusOr<MessagePage> ListMessages(const MessageQuery& query, size_t most) const;
  void Replay(ReplayRequest request, SweptCallback done);
  void Purge(PurgeRequest request, SweptCallback done);

  // INVALID_SCHEDULE. A schedule of the same name is replaced.
  void CreateSchedule(Schedule schedule, Deadline deadline, ScheduleCallback done);
  absl::StatusOr<std::vector<Schedule>> ListSchedules(const std::string& queue,
                                                      const std::string& after_name,
                                                      size_t most) const;
  // SCHEDULE_NOT_FOUND.
  void DeleteSchedule(const std::string& queue, const std::string& name, Deadline deadline,
                      std::function<void(absl::Status)> done);

  // The sink gets nothing before this has returned.
  absl::StatusOr<std::unique_ptr<Receiver>> Receive(ReceiveRequest request,
                                                    std::shared_ptr<ReceiverSink> sink);

  struct UnitPush {
    std::string queue;
    PushedMessage message;
  };
  // Errors name "acknowledge[i]" or "pushes[i].…". Needs atomic batches. Also MESSAGE_NOT_FOUND,
  // RESERVATION_LOST, ALREADY_ACKNOWLEDGED, from the plan.
  absl::StatusOr<std::unique_ptr<UnitSteps>> PlanUnit(std::vector<std::string> acknowledge,
                                                      std::vector<UnitPush> pushes);

  // The least sequence number among the messages of these queues that have one and are not
  // finished. Errors name "queues[i]".
  absl::StatusOr<std::optional<int64_t>> LowWatermark(const std::vector<std::string>& queues) const;

  // Ends all waiting: Reserve is answered with nothing, streams end with DRAINING.
  void StopWaiting();
  // Fires schedules, sweeps deleted queues and drops expired messages, until it is destroyed.
  void StartBackground();

 private:
  class Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace strata::queue
