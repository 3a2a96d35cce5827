// Queues: messages that are pushed, handed out under a reservation, and acknowledged.
#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "strata/client/range.h"
#include "strata/client/value.h"

namespace strata::client {

class Core;

enum class MessageState {
  kUnspecified = 0,  // in a filter: all that are not finished
  kScheduled = 1,
  kReady = 2,
  kReserved = 3,
  kWaiting = 4,
  kDead = 5,
  kFinished = 6,
};

// A message as it stands.
struct QueueMessage {
  std::string message_id = {};
  std::string queue = {};
  std::optional<Value> payload = {};
  std::map<std::string, std::string> headers = {};
  int32_t priority = 0;
  std::string ordering_key = {};
  std::optional<int64_t> sequence_number = {};
  absl::Time push_time = absl::InfinitePast();
  absl::Time due = absl::InfinitePast();
  int32_t tries = 0;
  int64_t delivery = 0;
  MessageState state = MessageState::kUnspecified;
  std::string token = {};  // proves this delivery; only from Reserve and Receive
  std::string reason = {};
  std::optional<absl::Time> expire_time = {};
};

// A message to be pushed. Without `request_id` it gets a random one.
struct PushedMessage {
  std::optional<Value> payload = {};
  std::map<std::string, std::string> headers = {};
  int32_t priority = 0;
  std::string ordering_key = {};
  std::optional<int64_t> sequence_number = {};
  std::optional<absl::Duration> delay = {};
  std::optional<absl::Time> deliver_time = {};
  std::optional<absl::Time> expire_time = {};
  std::string request_id = {};
};

struct EnrollmentSink {
  std::string collection = {};
  std::string set = {};
  int32_t max_in_flight = 0;
};

struct QueueSettings {
  std::optional<absl::Duration> reservation_timeout = {};
  std::optional<int32_t> max_tries = {};
  std::string dead_letter_queue = {};
  std::optional<absl::Duration> retry_delay = {};
  std::optional<absl::Duration> retry_delay_max = {};
  std::optional<absl::Duration> history_retention = {};
  std::optional<absl::Duration> message_lifetime = {};
  bool paused = false;
  std::optional<EnrollmentSink> enrollments = {};
};

struct QueueStatistics {
  int64_t ready = 0;
  int64_t scheduled = 0;
  int64_t reserved = 0;
  int64_t waiting = 0;
  int64_t dead = 0;
  std::optional<absl::Duration> oldest_ready_age = {};
  std::optional<int64_t> low_watermark = {};
  bool exact = false;
};

struct QueueCounts {
  int64_t pushed = 0;
  int64_t handed_out = 0;
  int64_t acknowledged = 0;
  int64_t rolled_back = 0;
  int64_t died = 0;
  int64_t races_lost = 0;
  int64_t commits = 0;
  int64_t operations = 0;
};

struct Queue {
  std::string name = {};
  QueueSettings settings = {};
  absl::Time create_time = absl::InfinitePast();
  std::optional<QueueStatistics> statistics = {};  // only from Get
  std::optional<QueueCounts> counts = {};          // only from Get
};

// The result for one message of a push.
struct PushResult {
  std::string message_id = {};
  bool replayed = false;
  absl::Status status = {};  // not OK: why it was not pushed (on engines without atomic batches)
};

// The result for one token.
struct TokenResult {
  bool replayed = false;
  absl::Status status = {};  // not OK: it was not done
};

struct PopOptions {
  int32_t count = 0;
  std::optional<absl::Duration> wait = {};
};

struct ReserveOptions {
  int32_t count = 0;
  std::optional<absl::Duration> timeout = {};
  std::optional<absl::Duration> wait = {};
};

struct RollbackOptions {
  std::optional<absl::Duration> delay = {};
  bool not_counted = false;
  bool dead = false;
  std::string reason = {};
};

struct ExtendOptions {
  std::optional<absl::Duration> timeout = {};
};

struct MoveOptions {
  std::optional<Value> payload = {};
  std::map<std::string, std::string> headers = {};
  std::optional<absl::Duration> delay = {};
};

struct ReceiveOptions {
  int32_t credits = 100;  // maximum number of messages out
  std::optional<absl::Duration> timeout = {};
};

struct DeleteQueueOptions {
  bool force = false;
};

struct ListQueuesOptions {
  int32_t page_size = 0;
};

struct ListMessagesOptions {
  MessageState state = MessageState::kUnspecified;
  int32_t page_size = 0;
};

// Either `message_ids` or `states`.
struct ReplayOptions {
  std::vector<std::string> message_ids = {};
  std::vector<MessageState> states = {};
  std::optional<absl::Time> start_time = {};
  std::optional<absl::Time> end_time = {};
  std::string target_queue = {};
};

struct PurgeMessagesOptions {
  std::vector<std::string> message_ids = {};
  std::vector<MessageState> states = {};
};

struct Swept {
  int64_t messages = 0;
  bool more = false;  // call again
};

// Takes a queue's messages as they come, over broken connections too. Thread-safe: several threads
// may work on the messages that one thread takes.
class Receiver {
 public:
  Receiver(std::shared_ptr<Core> core, const std::string& queue, const ReceiveOptions& options);
  Receiver(Receiver&&) noexcept;
  Receiver& operator=(Receiver&&) noexcept;
  // As Close.
  ~Receiver();

  // The next message, waited for. Nothing: it was closed, has failed (status()), or `patience` is
  // over.
  std::optional<QueueMessage> Next(absl::Duration patience = absl::InfiniteDuration());
  // Finishes the message. The future may be dropped: without an answer the message comes again. The
  // request is repeated over a new connection and, within retry_for, after a refusal for a
  // repeatable reason; "there is no such message" then counts as OK. Requests about one message are
  // sent one after the other.
  std::future<absl::StatusOr<TokenResult>> Acknowledge(const QueueMessage& message);
  std::future<absl::StatusOr<TokenResult>> Rollback(const QueueMessage& message,
                                                    const RollbackOptions& options = {});
  std::future<absl::StatusOr<TokenResult>> Extend(const QueueMessage& message,
                                                  const ExtendOptions& options = {});
  // Messages that are still out go to other consumers at once, and the attempt is not counted.
  void Close();
  absl::Status status() const;

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

// A message that is pushed again and again: either `cron` or `every`.
struct Schedule {
  std::string queue = {};
  std::string name = {};
  std::optional<std::string> cron = {};
  std::optional<absl::Duration> every = {};
  std::optional<PushedMessage> message = {};
  std::optional<absl::Time> next_time = {};
};

struct CreateScheduleOptions {
  std::optional<std::string> cron = {};
  std::optional<absl::Duration> every = {};
  std::optional<PushedMessage> message = {};
};

struct ListSchedulesOptions {
  int32_t page_size = 0;
};

// Thread-safe.
class Schedules {
 public:
  explicit Schedules(std::shared_ptr<Core> core) : core_(std::move(core)) {}

  absl::StatusOr<Schedule> Create(const std::string& queue, const std::string& name,
                                  const CreateScheduleOptions& options) const;
  Range<Schedule> List(const std::string& queue, const ListSchedulesOptions& options = {}) const;
  absl::Status Delete(const std::string& queue, const std::string& name) const;

 private:
  std::shared_ptr<Core> core_;
};

// Thread-safe. Pop, Reserve, Move, Replay and Purge are not repeated when their answer is lost, as
// they could then take effect twice: the error says outcome_unknown.
class Queues {
 public:
  explicit Queues(std::shared_ptr<Core> core) : core_(std::move(core)) {}

  absl::StatusOr<Queue> Create(const std::string& name, const QueueSettings& settings = {}) const;
  absl::StatusOr<Queue> Get(const std::string& name) const;
  Range<Queue> List(const ListQueuesOptions& options = {}) const;
  // Sets the members of `settings` that `members` names ("paused", "max_tries"); an unset one
  // returns to the server's default.
  absl::StatusOr<Queue> Update(const std::string& name, const QueueSettings& settings,
                               const std::vector<std::string>& members) const;
  absl::Status Delete(const std::string& name, const DeleteQueueOptions& options = {}) const;

  absl::StatusOr<std::vector<PushResult>> Push(const std::string& queue,
                                               std::vector<PushedMessage> messages) const;
  absl::StatusOr<PushResult> Push(const std::string& queue, PushedMessage message) const;
  absl::StatusOr<std::vector<QueueMessage>> Pop(const std::string& queue,
                                                const PopOptions& options = {}) const;
  absl::StatusOr<std::vector<QueueMessage>> Reserve(const std::string& queue,
                                                    const ReserveOptions& options = {}) const;
  absl::StatusOr<std::vector<TokenResult>> Acknowledge(
      const std::vector<std::string>& tokens) const;
  absl::StatusOr<std::vector<TokenResult>> Rollback(const std::vector<std::string>& tokens,
                                                    const RollbackOptions& options = {}) const;
  absl::StatusOr<std::vector<TokenResult>> Extend(const std::vector<std::string>& tokens,
                                                  const ExtendOptions& options = {}) const;
  absl::StatusOr<QueueMessage> Move(const std::string& token, const std::string& queue,
                                    const MoveOptions& options = {}) const;
  Receiver Receive(const std::string& queue, const ReceiveOptions& options = {}) const;
  absl::StatusOr<QueueMessage> Message(const std::string& queue,
                                       const std::string& message_id) const;
  Range<QueueMessage> Messages(const std::string& queue,
                               const ListMessagesOptions& options = {}) const;
  absl::StatusOr<Swept> Replay(const std::string& queue, const ReplayOptions& options) const;
  absl::StatusOr<Swept> Purge(const std::string& queue, const PurgeMessagesOptions& options) const;

  Schedules schedules() const { return Schedules(core_); }

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace strata::client
