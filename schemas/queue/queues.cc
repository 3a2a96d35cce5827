#include "schemas/queue/queues.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/queue/dispatcher.h"
#include "schemas/queue/message_reads.h"
#include "schemas/queue/operations.h"
#include "schemas/queue/queue_admin.h"
#include "schemas/queue/queue_directory.h"
#include "schemas/queue/queue_errors.h"
#include "schemas/queue/queue_keys.h"
#include "schemas/queue/queue_requests.h"
#include "schemas/queue/receiver.h"
#include "schemas/queue/schedules.h"
#include "schemas/queue/unit_steps.h"
#include "schemas/versioning/names.h"

namespace strata::queue {
namespace {

using std::chrono::microseconds;
using Steady = std::chrono::steady_clock::time_point;

// How often the background looks for schedules of other servers, and for what is left to sweep.
constexpr microseconds kLookInterval = std::chrono::seconds(10);
constexpr microseconds kTickMin = std::chrono::milliseconds(20);
// A call that waits is answered a little before its deadline, so that the answer still arrives.
constexpr microseconds kAnswerTime = std::chrono::milliseconds(50);

absl::Status Draining() { return Error(ErrorReason::kDraining, "server is draining"); }

// A call of Reserve or Pop.
class Call final : public Consumer {
 public:
  Call(ReserveRequest request, Deadline until, std::atomic<int64_t>* waiting, ReserveCallback done)
      : request_(std::move(request)), until_(until), waiting_(waiting), done_(std::move(done)) {}

  bool gone() const override { return request_.waiter != nullptr && request_.waiter->gone(); }
  bool pop() const override { return request_.pop; }
  std::optional<microseconds> timeout() const override { return request_.timeout; }
  int32_t wants() const override { return expects_ || answered_ ? 0 : request_.count; }
  bool takes_suspect() const override { return true; }
  void Expect(int32_t /*messages*/, bool /*suspect*/) override { expects_ = true; }
  bool Deliver(Handed handed) override {
    expects_ = false;
    if (handed.messages.empty()) return true;
    Answer(std::move(handed.messages));
    return false;
  }
  Deadline until() const override { return until_; }
  void End(const absl::Status& status) override {
    if (status.ok()) {
      Answer(std::vector<MessageView>());
    } else {
      Answer(status);
    }
  }

 private:
  void Answer(absl::StatusOr<std::vector<MessageView>> answer) {
    if (answered_.exchange(true)) return;
    if (waiting_ != nullptr) --*waiting_;
    done_(std::move(answer));
  }

  const ReserveRequest request_;
  const Deadline until_;
  std::atomic<int64_t>* const waiting_;  // those who wait, if it is one of them
  const ReserveCallback done_;
  std::atomic<bool> expects_ = false;
  std::atomic<bool> answered_ = false;
};

// The results of calls whose tokens are of several queues.
struct TokensCall {
  std::vector<absl::StatusOr<bool>> results;
  std::atomic<size_t> open{1};
  TokensCallback done;

  void End() {
    if (--open == 0) done(std::move(results));
  }
};

absl::Status CheckSwept(const std::vector<std::string>& ids, const std::vector<State>& states) {
  if (ids.empty() == states.empty()) {
    return Error(ErrorReason::kInvalidField, "either message_ids or states are needed")
        .With("field", ids.empty() ? "message_ids" : "states");
  }
  if (ids.size() > kBatchMax) {
    return OutOfRange("message_ids", std::to_string(ids.size()) + " ids",
                      "up to " + std::to_string(kBatchMax));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<MessageId>> ToMessageIds(const std::vector<std::string>& texts) {
  std::vector<MessageId> ids;
  for (size_t i = 0; i < texts.size(); ++i) {
    ASSIGN_OR_RETURN(const MessageId id,
                     ToMessageId("message_ids[" + std::to_string(i) + "]", texts[i]));
    // Twice the same is once.
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }
  return ids;
}

}  // namespace

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
                                          {}}),
        admin_(std::make_shared<QueueAdmin>(environment_, directory_, options.queues_max)),
        schedules_(std::make_shared<Schedules>(environment_, directory_)),
        id_seed_(entropy.Bytes(kSeedBytes)) {
    directory_.SetEnvironment(environment_);
  }

  void Close() {
    StopWaiting();
    environment_->doors.Close();
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
  void OnTokens(const std::vector<std::string>& tokens, Deadline deadline,
                TokenOperation::Step step, int64_t QueueCounts::*counted, TokensCallback done);
  void Rollback(RollbackRequest request, TokensCallback done);
  void Move(MoveRequest request, std::function<void(absl::StatusOr<MessageView>)> done);
  void Replay(ReplayRequest request, SweptCallback done);
  void Purge(PurgeRequest request, SweptCallback done);
  absl::StatusOr<std::unique_ptr<Receiver>> Receive(ReceiveRequest request,
                                                    std::shared_ptr<ReceiverSink> sink);
  absl::StatusOr<std::unique_ptr<UnitSteps>> PlanUnit(std::vector<std::string> acknowledge,
                                                      std::vector<UnitPush> pushes);
  void StopWaiting();
  void StartBackground() { Tick(); }
  void TickSoon();

 private:
  class StreamReceiver;
  static constexpr size_t kSeedBytes = 6;

  void Tick();
  MessageId DrawId();
  double Jitter() {
    const auto byte = static_cast<uint8_t>(environment_->entropy.Bytes(1)[0]);
    return byte / 127.5 - 1;
  }
  absl::StatusOr<std::vector<MessageId>> ToSweep(const std::string& queue,
                                                 const std::vector<std::string>& ids,
                                                 const std::vector<State>& states,
                                                 std::optional<UnixMicros> start,
                                                 std::optional<UnixMicros> end);

  const QueuesOptions options_;
  QueueDirectory directory_;
  const QueueEnvironmentPtr environment_;
  const std::shared_ptr<QueueAdmin> admin_;
  const std::shared_ptr<Schedules> schedules_;
  const std::string id_seed_;
  std::atomic<uint32_t> next_id_ = 0;
  std::atomic<int64_t> waiting_ = 0;
  std::atomic<bool> draining_ = false;
  std::atomic<uint64_t> tick_ = 0;  // which one counts
};

// Time first, so that messages which live together lie together; then what no other process draws.
MessageId Queues::Impl::DrawId() {
  std::string bytes;
  const auto millis = static_cast<uint64_t>(environment_->clock.Now() / 1000);
  for (int shift = 40; shift >= 0; shift -= 8) bytes += static_cast<char>(millis >> shift);
  bytes += id_seed_;
  const uint32_t number = next_id_++;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift);
  return *MessageId::FromBytes(bytes);
}

void Queues::Impl::Push(PushRequest request, PushCallback done) {
  const auto prepare =
      [&]() -> absl::StatusOr<std::pair<DispatcherPtr, std::vector<PreparedPush>>> {
    RETURN_IF_ERROR(versioning::ValidateName("queue", request.queue));
    RETURN_IF_ERROR(CheckCount("messages", static_cast<int64_t>(request.messages.size()),
                               static_cast<int64_t>(kBatchMax)));
    ASSIGN_OR_RETURN(const QueueRecordPtr queue, directory_.Require(request.queue));
    ASSIGN_OR_RETURN(DispatcherPtr dispatcher, directory_.RequireDispatcher(request.queue));
    const UnixMicros now = dispatcher->Now();
    std::vector<PreparedPush> pushes;
    pushes.reserve(request.messages.size());
    for (size_t i = 0; i < request.messages.size(); ++i) {
      absl::StatusOr<PreparedPush> push =
          Prepare(*queue, request.messages[i], environment_->capabilities, now, DrawId());
      if (!push.ok()) {
        return InField(push.status(), "messages[" + std::to_string(i) + "]");
      }
      pushes.push_back(*std::move(push));
    }
    return std::make_pair(std::move(dispatcher), std::move(pushes));
  };
  auto prepared = prepare();
  if (!prepared.ok()) return done(prepared.status());
  prepared->first->Do(std::make_shared<PushOperation>(std::move(prepared->second), request.deadline,
                                                      environment_->capabilities.atomic_batches,
                                                      std::move(done)));
}

void Queues::Impl::Reserve(ReserveRequest request, ReserveCallback done) {
  const auto check = [&]() -> absl::StatusOr<DispatcherPtr> {
    RETURN_IF_ERROR(versioning::ValidateName("queue", request.queue));
    RETURN_IF_ERROR(CheckCount("count", request.count, static_cast<int64_t>(kBatchMax)));
    RETURN_IF_ERROR(CheckTimeout("timeout", request.timeout));
    if (request.wait.count() < 0 || request.wait > kWaitMax) {
      return OutOfRange("wait", std::to_string(request.wait.count() / 1000) + " ms", "0 s to 20 s");
    }
    return directory_.RequireDispatcher(request.queue);
  };
  absl::StatusOr<DispatcherPtr> dispatcher = check();
  if (!dispatcher.ok()) return done(dispatcher.status());
  const Steady now = environment_->clock.SteadyNow();
  Deadline until = now + request.wait;
  if (request.deadline != kNoDeadline) until = std::min(until, request.deadline - kAnswerTime);
  const bool waits = request.wait.count() > 0;
  if (waits && draining_) {
    // As long as it is answered at all, what is there can be had.
    until = now;
  } else if (waits && ++waiting_ > options_.waiting_max) {
    --waiting_;
    return done(Error(ErrorReason::kOverloaded, std::to_string(options_.waiting_max) +
                                                    " calls wait for messages already; try again"));
  }
  const bool counted = waits && until != now;
  if (waits && !counted && !draining_) --waiting_;
  (*dispatcher)
      ->Add(std::make_shared<Call>(std::move(request), until, counted ? &waiting_ : nullptr,
                                   std::move(done)));
  // StopWaiting may have come in between.
  if (draining_) (*dispatcher)->EndWaiting(Draining());
}

void Queues::Impl::OnTokens(const std::vector<std::string>& tokens, Deadline deadline,
                            TokenOperation::Step step, int64_t QueueCounts::*counted,
                            TokensCallback done) {
  const auto call = std::make_shared<TokensCall>();
  call->done = std::move(done);
  call->results.resize(tokens.size(), false);
  struct OfQueue {
    std::vector<Token> tokens;
    std::vector<size_t> places;
  };
  std::map<std::string, OfQueue> queues;
  for (size_t i = 0; i < tokens.size(); ++i) {
    absl::StatusOr<Token> token = Token::FromText("tokens[" + std::to_string(i) + "]", tokens[i]);
    if (!token.ok()) {
      call->results[i] = token.status();
      continue;
    }
    OfQueue& of_queue = queues[token->queue];
    of_queue.tokens.push_back(*std::move(token));
    of_queue.places.push_back(i);
  }
  for (auto& [name, of_queue] : queues) {
    const absl::StatusOr<DispatcherPtr> dispatcher = directory_.RequireDispatcher(name);
    if (!dispatcher.ok()) {
      for (const size_t place : of_queue.places) call->results[place] = dispatcher.status();
      continue;
    }
    ++call->open;
    (*dispatcher)
        ->Do(std::make_shared<TokenOperation>(
            std::move(of_queue.tokens), options_.timeline, deadline, step, counted,
            [call, places = std::move(of_queue.places)](std::vector<absl::StatusOr<bool>> results) {
              for (size_t i = 0; i < places.size(); ++i) {
                call->results[places[i]] = std::move(results[i]);
              }
              call->End();
            }));
  }
  call->End();
}

void Queues::Impl::Rollback(RollbackRequest request, TokensCallback done) {
  strata::queue::Rollback how{request.delay, request.not_counted, request.dead, request.reason,
                              Jitter()};
  OnTokens(
      request.tokens, request.deadline,
      [how = std::move(how)](Draft& draft, const Place& place, const Token& token) {
        return PlanRollback(draft, place, token, how);
      },
      &QueueCounts::rolled_back, std::move(done));
}

void Queues::Impl::Move(MoveRequest request,
                        std::function<void(absl::StatusOr<MessageView>)> done) {
  const auto check = [&]() -> absl::StatusOr<std::pair<Token, DispatcherPtr>> {
    ASSIGN_OR_RETURN(Token token, Token::FromText("token", request.token));
    RETURN_IF_ERROR(versioning::ValidateName("queue", request.queue));
    if (request.payload) RETURN_IF_ERROR(CheckPayload("payload", *request.payload));
    if (request.headers) RETURN_IF_ERROR(CheckHeaders("headers", *request.headers));
    RETURN_IF_ERROR(CheckDelay("delay", request.delay));
    RETURN_IF_ERROR(directory_.Require(request.queue, "queue").status());
    ASSIGN_OR_RETURN(DispatcherPtr dispatcher, directory_.RequireDispatcher(token.queue, "token"));
    return std::make_pair(std::move(token), std::move(dispatcher));
  };
  auto checked = check();
  if (!checked.ok()) return done(checked.status());
  strata::queue::Move how{request.payload, std::nullopt, request.delay};
  if (request.headers) how.headers = ToContent(*request.headers);
  const MessageId id = checked->first.message;
  const std::string target = request.queue;
  auto step = [how = std::move(how), target, &directory = directory_](
                  Draft& draft, const Place& place,
                  const Token& token) -> absl::StatusOr<TokenResult> {
    // Its record may have been changed since the last attempt.
    ASSIGN_OR_RETURN(const QueueRecordPtr queue, directory.FindAnew(target));
    if (queue == nullptr) return QueueNotFound(target, "queue");
    return PlanMove(draft, place, token, *queue, how);
  };
  checked->second->Do(std::make_shared<TokenOperation>(
      std::vector<Token>{checked->first}, options_.timeline, request.deadline, std::move(step),
      nullptr,
      [self = shared_from_this(), id, target,
       done = std::move(done)](const std::vector<absl::StatusOr<bool>>& results) {
        if (!results.front().ok()) return done(results.front().status());
        // As it is now; where it was handed out there and finished meanwhile, all that is known.
        const absl::StatusOr<QueueRecordPtr> queue = self->directory_.Find(target);
        if (queue.ok() && *queue != nullptr) {
          absl::StatusOr<MessageView> view =
              ReadMessage(self->store(), **queue, id, self->environment_->clock.Now());
          if (view.ok()) return done(std::move(view));
        }
        MessageView view;
        view.queue = target;
        view.id = id;
        view.state = State::kFinished;
        done(std::move(view));
      }));
}

absl::StatusOr<std::vector<MessageId>> Queues::Impl::ToSweep(const std::string& queue,
                                                             const std::vector<std::string>& ids,
                                                             const std::vector<State>& states,
                                                             std::optional<UnixMicros> start,
                                                             std::optional<UnixMicros> end) {
  if (!ids.empty()) return ToMessageIds(ids);
  ASSIGN_OR_RETURN(const QueueRecordPtr record, directory_.Require(queue));
  ASSIGN_OR_RETURN(const UnixMicros now, NowIn(queue));
  return FindMessages(environment_->store, *record, states, start, end, now, kSweptMax);
}

void Queues::Impl::Replay(ReplayRequest request, SweptCallback done) {
  const std::string target = request.target_queue.empty() ? request.queue : request.target_queue;
  const auto check = [&]() -> absl::StatusOr<std::vector<MessageId>> {
    RETURN_IF_ERROR(versioning::ValidateName("queue", request.queue));
    if (!request.target_queue.empty()) {
      RETURN_IF_ERROR(versioning::ValidateName("target_queue", request.target_queue));
    }
    RETURN_IF_ERROR(CheckSwept(request.message_ids, request.states));
    for (size_t i = 0; i < request.states.size(); ++i) {
      if (request.states[i] == State::kDead || request.states[i] == State::kFinished) continue;
      return OutOfRange("states[" + std::to_string(i) + "]",
                        "a state of messages that have not ended", "DEAD or FINISHED");
    }
    RETURN_IF_ERROR(directory_.Require(request.queue).status());
    // Before any message is looked for.
    RETURN_IF_ERROR(directory_.Require(target, "target_queue").status());
    return ToSweep(request.queue, request.message_ids, request.states, request.start_time,
                   request.end_time);
  };
  absl::StatusOr<std::vector<MessageId>> ids = check();
  if (!ids.ok()) return done(ids.status());
  const bool more = !request.states.empty() && ids->size() >= kSweptMax;
  if (ids->empty()) return done(Swept{});
  const absl::StatusOr<DispatcherPtr> dispatcher = directory_.RequireDispatcher(request.queue);
  if (!dispatcher.ok()) return done(dispatcher.status());
  auto step = [target, &directory = directory_](Draft& draft, const Place& place, size_t /*index*/,
                                                const MessageId& id) -> absl::StatusOr<bool> {
    ASSIGN_OR_RETURN(const QueueRecordPtr queue, directory.FindAnew(target));
    if (queue == nullptr) return QueueNotFound(target, "target_queue");
    return PlanReplay(draft, place, id, *queue);
  };
  (*dispatcher)
      ->Do(std::make_shared<SweepOperation>(
          *std::move(ids), request.deadline, std::move(step),
          [more, done = std::move(done)](absl::StatusOr<int64_t> messages) {
            if (!messages.ok()) return done(messages.status());
            done(Swept{*messages, more});
          }));
}

void Queues::Impl::Purge(PurgeRequest request, SweptCallback done) {
  const auto check = [&]() -> absl::StatusOr<std::vector<MessageId>> {
    RETURN_IF_ERROR(versioning::ValidateName("queue", request.queue));
    RETURN_IF_ERROR(CheckSwept(request.message_ids, request.states));
    RETURN_IF_ERROR(directory_.Require(request.queue).status());
    return ToSweep(request.queue, request.message_ids, request.states, std::nullopt, std::nullopt);
  };
  absl::StatusOr<std::vector<MessageId>> ids = check();
  if (!ids.ok()) return done(ids.status());
  const bool more = !request.states.empty() && ids->size() >= kSweptMax;
  if (ids->empty()) return done(Swept{});
  const absl::StatusOr<DispatcherPtr> dispatcher = directory_.RequireDispatcher(request.queue);
  if (!dispatcher.ok()) return done(dispatcher.status());
  // What has left the states meanwhile stays.
  auto step = [states = request.states](Draft& draft, const Place& place, size_t /*index*/,
                                        const MessageId& id) -> absl::StatusOr<bool> {
    if (states.empty()) return PlanPurge(draft, place, id, std::nullopt);
    for (const State state : states) {
      ASSIGN_OR_RETURN(const bool purged, PlanPurge(draft, place, id, state));
      if (purged) return true;
    }
    return false;
  };
  (*dispatcher)
      ->Do(std::make_shared<SweepOperation>(
          *std::move(ids), request.deadline, std::move(step),
          [more, done = std::move(done)](absl::StatusOr<int64_t> messages) {
            if (!messages.ok()) return done(messages.status());
            done(Swept{*messages, more});
          }));
}

class Queues::Impl::StreamReceiver final : public Receiver {
 public:
  StreamReceiver(std::shared_ptr<Impl> impl, DispatcherPtr dispatcher,
                 std::shared_ptr<StreamConsumer> consumer, std::shared_ptr<ReceiverSink> sink)
      : impl_(std::move(impl)),
        dispatcher_(std::move(dispatcher)),
        consumer_(std::move(consumer)),
        sink_(std::move(sink)) {}
  ~StreamReceiver() override { Leave(false); }

  void Acknowledge(std::vector<std::string> tokens) override {
    impl_->OnTokens(
        tokens, kNoDeadline,
        [](Draft& draft, const Place& place, const Token& token) {
          return PlanAcknowledge(draft, place, token, false);
        },
        &QueueCounts::acknowledged, Answer(tokens));
  }
  void Rollback(RollbackRequest request) override {
    auto answer = Answer(request.tokens);
    impl_->Rollback(std::move(request), std::move(answer));
  }
  void Extend(std::vector<std::string> tokens, std::optional<microseconds> timeout) override {
    impl_->OnTokens(tokens, kNoDeadline, ExtendStep(timeout), nullptr, Answer(tokens));
  }
  absl::Status AddCredits(int32_t credits) override {
    RETURN_IF_ERROR(consumer_->AddCredits(credits));
    dispatcher_->Look();
    return absl::OkStatus();
  }
  void Ready() override { dispatcher_->Look(); }
  void Leave(bool orderly) override {
    dispatcher_->Remove(*consumer_);
    consumer_->Leave(orderly);
  }

  static TokenOperation::Step ExtendStep(std::optional<microseconds> timeout) {
    return [timeout](Draft& draft, const Place& place, const Token& token) {
      return PlanExtend(draft, place, token,
                        timeout.value_or(place.queue.settings.reservation_timeout));
    };
  }

 private:
  TokensCallback Answer(std::vector<std::string> tokens) {
    return [tokens = std::move(tokens), sink = sink_, consumer = consumer_,
            dispatcher = dispatcher_](std::vector<absl::StatusOr<bool>> replayed) mutable {
      // What is not its any more gives the credit back, however that came about.
      for (size_t i = 0; i < tokens.size(); ++i) {
        if (replayed[i].ok() || ReasonOf(replayed[i].status()) == ErrorReason::kInvalidField) {
          continue;
        }
        const ErrorReason reason = ReasonOf(replayed[i].status()).value_or(ErrorReason::kInternal);
        if (reason != ErrorReason::kReservationLost && reason != ErrorReason::kMessageNotFound) {
          continue;
        }
        const absl::StatusOr<Token> token = Token::FromText("", tokens[i]);
        if (token.ok()) consumer->Released(token->message, token->delivery);
      }
      sink->Answer(std::move(tokens), std::move(replayed));
      dispatcher->Look();
    };
  }

  const std::shared_ptr<Impl> impl_;
  const DispatcherPtr dispatcher_;
  const std::shared_ptr<StreamConsumer> consumer_;
  const std::shared_ptr<ReceiverSink> sink_;
};

absl::StatusOr<std::unique_ptr<Receiver>> Queues::Impl::Receive(
    ReceiveRequest request, std::shared_ptr<ReceiverSink> sink) {
  RETURN_IF_ERROR(versioning::ValidateName("queue", request.queue));
  RETURN_IF_ERROR(CheckCount("credits", request.credits, kCreditsMax));
  RETURN_IF_ERROR(CheckTimeout("timeout", request.timeout));
  if (draining_) return Draining();
  ASSIGN_OR_RETURN(DispatcherPtr dispatcher, directory_.RequireDispatcher(request.queue));
  const auto give_back = [weak = weak_from_this()](std::vector<std::string> tokens, bool orderly) {
    const std::shared_ptr<Impl> self = weak.lock();
    if (self == nullptr) return;
    const Doors::Visit visit(self->environment_->doors);
    if (!visit.let_in()) return;
    const auto nobody = [](const std::vector<absl::StatusOr<bool>>&) {};
    if (!orderly) {
      return self->OnTokens(tokens, kNoDeadline, StreamReceiver::ExtendStep(microseconds(0)),
                            nullptr, nobody);
    }
    RollbackRequest rollback;
    rollback.tokens = std::move(tokens);
    rollback.delay = microseconds(0);
    rollback.not_counted = true;
    self->Rollback(std::move(rollback), nobody);
  };
  auto consumer =
      std::make_shared<StreamConsumer>(sink, request.credits, request.timeout, give_back);
  auto receiver =
      std::make_unique<StreamReceiver>(shared_from_this(), dispatcher, consumer, std::move(sink));
  // The sink gets nothing before the caller has its receiver.
  environment_->executor.Schedule([weak = weak_from_this(), dispatcher, consumer] {
    const std::shared_ptr<Impl> self = weak.lock();
    if (self == nullptr) return;
    const Doors::Visit visit(self->environment_->doors);
    if (!visit.let_in()) return;
    dispatcher->Add(consumer);
    if (self->draining_) dispatcher->EndWaiting(Draining());
  });
  return receiver;
}

absl::StatusOr<std::unique_ptr<UnitSteps>> Queues::Impl::PlanUnit(
    std::vector<std::string> acknowledge, std::vector<UnitPush> pushes) {
  if (!environment_->capabilities.atomic_batches) {
    return Error(ErrorReason::kUnsupportedByEngine,
                 "acknowledge and pushes need atomic batches, which the engine has not")
        .With("field", acknowledge.empty() ? "pushes" : "acknowledge")
        .With("capability", "atomic_batches");
  }
  std::vector<QueueUnitSteps::Acknowledgement> tokens;
  for (size_t i = 0; i < acknowledge.size(); ++i) {
    const std::string field = "acknowledge[" + std::to_string(i) + "]";
    ASSIGN_OR_RETURN(Token token, Token::FromText(field, acknowledge[i]));
    const auto twice = std::find_if(tokens.begin(), tokens.end(), [&](const auto& other) {
      return other.token.message == token.message;
    });
    if (twice != tokens.end()) {
      return Error(ErrorReason::kInvalidField, "names a message that stands here already")
          .With("field", field);
    }
    ASSIGN_OR_RETURN(DispatcherPtr dispatcher, directory_.RequireDispatcher(token.queue, field));
    tokens.push_back({std::move(dispatcher), std::move(token)});
  }
  std::vector<QueueUnitSteps::Push> prepared;
  for (size_t i = 0; i < pushes.size(); ++i) {
    const std::string field = "pushes[" + std::to_string(i) + "]";
    RETURN_IF_ERROR(versioning::ValidateName(field + ".queue", pushes[i].queue));
    ASSIGN_OR_RETURN(const QueueRecordPtr queue,
                     directory_.Require(pushes[i].queue, field + ".queue"));
    ASSIGN_OR_RETURN(DispatcherPtr dispatcher,
                     directory_.RequireDispatcher(pushes[i].queue, field + ".queue"));
    absl::StatusOr<PreparedPush> push =
        Prepare(*queue, pushes[i].message, environment_->capabilities, dispatcher->Now(), DrawId());
    if (!push.ok()) return InField(push.status(), field + ".message");
    prepared.push_back({std::move(dispatcher), *std::move(push)});
  }
  return std::make_unique<QueueUnitSteps>(environment_, directory_, std::move(tokens),
                                          std::move(prepared));
}

void Queues::Impl::StopWaiting() {
  draining_ = true;
  for (const DispatcherPtr& dispatcher : directory_.dispatchers()) {
    dispatcher->EndWaiting(Draining());
  }
}

void Queues::Impl::TickSoon() {
  if (tick_ != 0) Tick();
}

void Queues::Impl::Tick() {
  const uint64_t tick = ++tick_;
  const auto turn = [weak = weak_from_this(), tick] {
    const std::shared_ptr<Impl> self = weak.lock();
    if (self == nullptr || self->tick_ != tick) return;
    UnixMicros next = 0;
    UnixMicros now = 0;
    {
      const Doors::Visit visit(self->environment_->doors);
      if (!visit.let_in()) return;
      now = self->environment_->clock.Now();
      next = now + kLookInterval.count();
      // What fails is tried again at the next turn.
      const absl::StatusOr<UnixMicros> due = self->schedules_->Fire(next);
      if (due.ok()) next = *due;
      const absl::StatusOr<bool> more = self->admin_->Sweep();
      if (more.ok() && *more) next = now;
    }
    self->environment_->executor.Schedule(std::max(kTickMin, microseconds(next - now)),
                                          [weak, tick] {
                                            const std::shared_ptr<Impl> again = weak.lock();
                                            if (again != nullptr && again->tick_ == tick)
                                              again->Tick();
                                          });
  };
  environment_->executor.Schedule(turn);
}

Queues::Queues(store::Store& store, const Clock& clock, Entropy& entropy, Executor& executor,
               QueuesOptions options)
    : impl_(std::make_shared<Impl>(store, clock, entropy, executor, options)) {}

Queues::~Queues() { impl_->Close(); }

void Queues::Create(const std::string& name, const QueueSettings& settings, QueueCallback done) {
  absl::Status checked = versioning::ValidateName("name", name);
  if (checked.ok()) checked = Validate(name, settings);
  if (!checked.ok()) return done(checked);
  impl_->admin().Create(name, settings, std::move(done));
}

absl::StatusOr<Queue> Queues::Get(const std::string& name) const {
  RETURN_IF_ERROR(versioning::ValidateName("name", name));
  ASSIGN_OR_RETURN(const QueueRecordPtr queue, impl_->directory().FindAnew(name));
  if (queue == nullptr) return QueueNotFound(name);
  return ToQueue(*queue);
}

absl::StatusOr<QueueStatistics> Queues::Statistics(const std::string& name) {
  ASSIGN_OR_RETURN(const DispatcherPtr dispatcher, impl_->directory().RequireDispatcher(name));
  ASSIGN_OR_RETURN(QueueStatistics statistics, dispatcher->Statistics());
  ASSIGN_OR_RETURN(statistics.low_watermark, LowWatermark({name}));
  return statistics;
}

absl::StatusOr<std::vector<Queue>> Queues::List(const std::string& after_name, size_t most) const {
  std::vector<Queue> queues;
  store::Range range;
  if (!after_name.empty()) range.begin = after_name + '\0';
  const auto cursor = impl_->store().Scan(store::Keyspace::kQueues, range);
  for (; cursor->Valid() && queues.size() < most; cursor->Next()) {
    if (IsScheduleKey(cursor->key())) continue;
    ASSIGN_OR_RETURN(const QueueRecord queue,
                     QueueRecord::Decode(cursor->key(), {store::Bytes(std::string(cursor->value())),
                                                         cursor->stamp(), cursor->position()}));
    if (!queue.delete_time) queues.push_back(ToQueue(queue));
  }
  RETURN_IF_ERROR(cursor->status());
  return queues;
}

void Queues::Update(const std::string& name, std::function<absl::Status(QueueSettings&)> change,
                    QueueCallback done) {
  if (absl::Status checked = versioning::ValidateName("name", name); !checked.ok()) {
    return done(checked);
  }
  impl_->admin().Update(name, std::move(change), std::move(done));
}

void Queues::Delete(const std::string& name, bool force, std::function<void(absl::Status)> done) {
  if (absl::Status checked = versioning::ValidateName("name", name); !checked.ok()) {
    return done(checked);
  }
  impl_->admin().Delete(name, force, [impl = impl_, done = std::move(done)](absl::Status status) {
    impl->TickSoon();
    done(std::move(status));
  });
}

void Queues::Push(PushRequest request, PushCallback done) {
  impl_->Push(std::move(request), std::move(done));
}

void Queues::Reserve(ReserveRequest request, ReserveCallback done) {
  impl_->Reserve(std::move(request), std::move(done));
}

void Queues::Acknowledge(std::vector<std::string> tokens, Deadline deadline, TokensCallback done) {
  impl_->OnTokens(
      tokens, deadline,
      [](Draft& draft, const Place& place, const Token& token) {
        return PlanAcknowledge(draft, place, token, false);
      },
      &QueueCounts::acknowledged, std::move(done));
}

void Queues::Rollback(RollbackRequest request, TokensCallback done) {
  impl_->Rollback(std::move(request), std::move(done));
}

void Queues::Extend(std::vector<std::string> tokens, std::optional<microseconds> timeout,
                    Deadline deadline, TokensCallback done) {
  impl_->OnTokens(
      tokens, deadline,
      [timeout](Draft& draft, const Place& place, const Token& token) {
        return PlanExtend(draft, place, token,
                          timeout.value_or(place.queue.settings.reservation_timeout));
      },
      nullptr, std::move(done));
}

void Queues::Move(MoveRequest request, std::function<void(absl::StatusOr<MessageView>)> done) {
  impl_->Move(std::move(request), std::move(done));
}

absl::StatusOr<MessageView> Queues::GetMessage(const std::string& queue,
                                               const std::string& id) const {
  RETURN_IF_ERROR(versioning::ValidateName("queue", queue));
  ASSIGN_OR_RETURN(const MessageId message, ToMessageId("message_id", id));
  ASSIGN_OR_RETURN(const QueueRecordPtr record, impl_->directory().Require(queue));
  ASSIGN_OR_RETURN(const UnixMicros now, impl_->NowIn(queue));
  return ReadMessage(impl_->store(), *record, message, now);
}

absl::StatusOr<MessagePage> Queues::ListMessages(const MessageQuery& query, size_t most) const {
  RETURN_IF_ERROR(versioning::ValidateName("queue", query.queue));
  ASSIGN_OR_RETURN(const QueueRecordPtr record, impl_->directory().Require(query.queue));
  ASSIGN_OR_RETURN(const UnixMicros now, impl_->NowIn(query.queue));
  return strata::queue::ListMessages(impl_->store(), *record, query, now, most);
}

void Queues::Replay(ReplayRequest request, SweptCallback done) {
  impl_->Replay(std::move(request), std::move(done));
}

void Queues::Purge(PurgeRequest request, SweptCallback done) {
  impl_->Purge(std::move(request), std::move(done));
}

void Queues::CreateSchedule(Schedule schedule, ScheduleCallback done) {
  impl_->schedules().Create(std::move(schedule), [impl = impl_, done = std::move(done)](
                                                     absl::StatusOr<Schedule> created) {
    impl->TickSoon();
    done(std::move(created));
  });
}

absl::StatusOr<std::vector<Schedule>> Queues::ListSchedules(const std::string& queue,
                                                            const std::string& after_name,
                                                            size_t most) const {
  RETURN_IF_ERROR(versioning::ValidateName("queue", queue));
  return impl_->schedules().List(queue, after_name, most);
}

void Queues::DeleteSchedule(const std::string& queue, const std::string& name,
                            std::function<void(absl::Status)> done) {
  absl::Status checked = versioning::ValidateName("queue", queue);
  if (checked.ok()) checked = versioning::ValidateName("name", name);
  if (!checked.ok()) return done(checked);
  impl_->schedules().Delete(queue, name, std::move(done));
}

absl::StatusOr<std::unique_ptr<Receiver>> Queues::Receive(ReceiveRequest request,
                                                          std::shared_ptr<ReceiverSink> sink) {
  return impl_->Receive(std::move(request), std::move(sink));
}

absl::StatusOr<std::unique_ptr<UnitSteps>> Queues::PlanUnit(std::vector<std::string> acknowledge,
                                                            std::vector<UnitPush> pushes) {
  return impl_->PlanUnit(std::move(acknowledge), std::move(pushes));
}

absl::StatusOr<std::optional<int64_t>> Queues::LowWatermark(
    const std::vector<std::string>& queues) const {
  std::vector<QueueRecordPtr> records;
  for (size_t i = 0; i < queues.size(); ++i) {
    const std::string field = "queues[" + std::to_string(i) + "]";
    RETURN_IF_ERROR(versioning::ValidateName(field, queues[i]));
    ASSIGN_OR_RETURN(QueueRecordPtr record, impl_->directory().Require(queues[i], field));
    records.push_back(std::move(record));
  }
  // As of one moment; else twice, so that a message that moves from one of them to another that was
  // looked at before is found there.
  const std::unique_ptr<store::Reader> reader = impl_->store().Snapshot();
  const int looks = impl_->environment().capabilities.snapshots ? 1 : 2;
  std::optional<int64_t> least;
  for (int look = 0; look < looks; ++look) {
    for (const QueueRecordPtr& record : records) {
      ASSIGN_OR_RETURN(const std::optional<int64_t> low, ReadWatermark(*reader, *record));
      if (low && (!least || *low < *least)) least = low;
    }
  }
  return least;
}

std::vector<std::pair<std::string, QueueCounts>> Queues::counts() const {
  std::vector<std::pair<std::string, QueueCounts>> all;
  for (const DispatcherPtr& dispatcher : impl_->directory().dispatchers()) {
    all.emplace_back(dispatcher->name(), dispatcher->counts());
  }
  return all;
}

std::vector<std::pair<std::string, QueueStatistics>> Queues::statistics() const {
  std::vector<std::pair<std::string, QueueStatistics>> all;
  for (const DispatcherPtr& dispatcher : impl_->directory().dispatchers()) {
    const absl::StatusOr<QueueStatistics> statistics = dispatcher->Statistics();
    if (statistics.ok()) all.emplace_back(dispatcher->name(), *statistics);
  }
  return all;
}

void Queues::StopWaiting() { impl_->StopWaiting(); }

void Queues::StartBackground() { impl_->StartBackground(); }

}  // namespace strata::queue
