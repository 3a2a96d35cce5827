// The implementation of the facade: it checks requests and turns them into operations of
// dispatchers. Private to it. queues_calls.cc has the calls about messages, queues_sweeps.cc those
// about many of them, queues_streams.cc the streams and the units.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "schemas/base/status_macros.h"
#include "schemas/queue/message_reads.h"
#include "schemas/queue/operations.h"
#include "schemas/queue/queue_admin.h"
#include "schemas/queue/queue_directory.h"
#include "schemas/queue/queues.h"
#include "schemas/queue/schedules.h"

namespace strata::queue {

class Queues::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(store::Store& store, const Clock& clock, Entropy& entropy, Executor& executor,
       QueuesOptions options)
      : options_(options),
        directory_(store),
        environment_(new QueueEnvironment{store,
                                          store.capabilities(),
                                          clock,
                                          executor,
                                          entropy,
                                          directory_,
                                          options.timeline,
                                          options.grants,
                                          {},
                                          {}}),
        admin_(std::make_shared<QueueAdmin>(environment_, directory_, options.queues_max)),
        schedules_(std::make_shared<Schedules>(environment_, directory_, options.damaged_schedule)),
        id_seed_(entropy.Bytes(kSeedBytes)) {
    directory_.SetEnvironment(environment_);
  }

  void Close() {
    StopWaiting();
    environment_->doors.Close();
    directory_.Clear();
  }

  QueueAdmin& admin() { return *admin_; }
  Schedules& schedules() { return *schedules_; }
  QueueDirectory& directory() { return directory_; }
  const QueueEnvironment& environment() const { return *environment_; }
  store::Store& store() { return environment_->store; }

  absl::StatusOr<UnixMicros> NowIn(const std::string& queue) {
    ASSIGN_OR_RETURN(const DispatcherPtr dispatcher, directory_.RequireDispatcher(queue));
    return dispatcher->Now();
  }

  void Push(PushRequest request, PushCallback done);
  void Reserve(ReserveRequest request, ReserveCallback done);
  void OnTokens(const std::vector<std::string>& tokens, std::optional<Deadline> deadline,
                TokenOperation::Step step, int64_t QueueCounts::*counted, TokensCallback done);
  void Rollback(RollbackRequest request, TokensCallback done);
  void Move(MoveRequest request, std::function<void(absl::StatusOr<MessageView>)> done);
  void Replay(ReplayRequest request, SweptCallback done);
  void Purge(PurgeRequest request, SweptCallback done);
  absl::StatusOr<std::unique_ptr<Receiver>> Receive(ReceiveRequest request,
                                                    std::shared_ptr<ReceiverSink> sink);
  absl::StatusOr<std::unique_ptr<UnitSteps>> PlanUnit(std::vector<std::string> acknowledge,
                                                      std::vector<UnitPush> pushes);
  absl::StatusOr<std::optional<int64_t>> ReadWatermark(const store::Reader& reader,
                                                       const QueueRecord& queue);
  // Has hints dropped that were met and can no more come true.
  void Clean(const std::string& queue, UntrueHints untrue) {
    if (!untrue.empty()) directory_.Clean(queue, std::move(untrue), [] {});
  }
  void StopWaiting();
  void StartBackground() { ScheduleTick(std::chrono::microseconds(0)); }
  // Begins a background turn, or another one after the running one.
  void TickSoon();

 private:
  class StreamReceiver;
  struct TokensCall;
  struct TokensOfQueue {
    std::vector<Token> tokens;
    std::vector<size_t> places;  // in the call
  };
  static constexpr size_t kSeedBytes = 6;

  // What another process has made anew is tried `again`, once.
  void TryToPush(std::shared_ptr<const PushRequest> request, bool again, PushCallback done);
  void OnTokensOf(const std::string& name, TokensOfQueue of_queue,
                  const std::shared_ptr<TokensCall>& call, bool again);
  void ScheduleTick(std::chrono::microseconds delay);
  void Tick(uint64_t tick);
  // The time until the next turn; nothing: there is none.
  std::optional<std::chrono::microseconds> RunTick();
  MessageId DrawId();
  double Jitter() {
    const auto byte = static_cast<uint8_t>(environment_->entropy.Bytes(1)[0]);
    return byte / 127.5 - 1;
  }
  absl::StatusOr<FoundMessages> ToSweep(const std::string& queue,
                                        const std::vector<std::string>& ids,
                                        const std::vector<State>& states, const HintTimes& ended,
                                        const StopCheck& stopped);

  const QueuesOptions options_;
  QueueDirectory directory_;
  const QueueEnvironmentPtr environment_;
  const std::shared_ptr<QueueAdmin> admin_;
  const std::shared_ptr<Schedules> schedules_;
  const std::string id_seed_;
  std::atomic<uint32_t> next_id_ = 0;
  std::atomic<int64_t> waiting_ = 0;
  std::atomic<bool> draining_ = false;
  std::mutex tick_mutex_;    // guards what follows
  uint64_t tick_ = 0;        // the turn that counts; 0: there is no background
  bool ticking_ = false;     // a turn runs
  bool tick_again_ = false;  // there is something to do since it began
};

}  // namespace strata::queue
