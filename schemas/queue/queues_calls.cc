// Calls about messages: push, reserve, and what takes tokens.
#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/field_checks.h"
#include "schemas/base/names.h"
#include "schemas/document/struct_codec.h"
#include "schemas/queue/message_reads.h"
#include "schemas/queue/plans.h"
#include "schemas/queue/queue_errors.h"
#include "schemas/queue/queue_requests.h"
#include "schemas/queue/queues_impl.h"

namespace strata::queue {
namespace {

using std::chrono::microseconds;
using Steady = std::chrono::steady_clock::time_point;

// A call that waits is answered a little before its deadline, so that the answer still arrives.
constexpr microseconds kAnswerTime = std::chrono::milliseconds(50);

// What a message takes in an answer, without its payload and headers, at most.
constexpr size_t kMessageRestBytes = size_t{2} << 10;
// Of headers with the limits of labels, and those of a death.
constexpr size_t kHeadersBytesMax = size_t{16} << 10;
// What is popped at once, less the last message: it cannot be given back, so it must fit into the
// answer, of which gRPC's clients take 4 MiB.
constexpr size_t kPoppedBytesMax =
    (size_t{4} << 20) - kPayloadBytesMax - kHeadersBytesMax - 2 * kMessageRestBytes;

// A call of Reserve or Pop.
class Call final : public Consumer {
 public:
  Call(ReserveRequest request, Deadline until, std::atomic<int64_t>* waiting, ReserveCallback done)
      : request_(std::move(request)), until_(until), waiting_(waiting), done_(std::move(done)) {}

  bool gone() const override { return request_.waiter != nullptr && request_.waiter->gone(); }
  bool pop() const override { return request_.pop; }
  std::optional<microseconds> timeout() const override { return request_.timeout; }
  int32_t wants() const override {
    const std::lock_guard lock(mutex_);
    return expects_ || answered_ || over_ ? 0 : request_.count;
  }
  bool takes_suspect() const override { return true; }
  size_t SizeOf(const Message& message) const override {
    return kMessageRestBytes + message.headers.size() +
           (request_.as_structs ? document::StructSize(message.payload) : message.payload.size());
  }
  size_t TakeRoom() override { return request_.pop ? kPoppedBytesMax : kHandedBytesMax; }
  void Expect(int32_t /*messages*/, bool /*suspect*/) override {
    const std::lock_guard lock(mutex_);
    expects_ = true;
  }
  bool Deliver(Handed handed) override {
    std::optional<absl::Status> over;
    {
      const std::lock_guard lock(mutex_);
      expects_ = false;
      over = over_;
    }
    if (!handed.messages.empty()) {
      Answer(std::move(handed.messages));
    } else if (over) {
      EndWith(*over);
    } else {
      return true;
    }
    return false;
  }
  Deadline until() const override { return until_; }
  Deadline deadline() const override { return request_.deadline; }
  // What is under way to it has been handed out, and is not lost for that.
  void End(const absl::Status& status) override {
    {
      const std::lock_guard lock(mutex_);
      over_ = status;
      if (expects_) return;
    }
    EndWith(status);
  }

 private:
  void EndWith(const absl::Status& status) {
    if (status.ok()) {
      Answer(std::vector<MessageView>());
    } else {
      Answer(status);
    }
  }
  void Answer(absl::StatusOr<std::vector<MessageView>> answer) {
    if (answered_.exchange(true)) return;
    if (waiting_ != nullptr) --*waiting_;
    done_(std::move(answer));
  }

  const ReserveRequest request_;
  const Deadline until_;
  std::atomic<int64_t>* const waiting_;  // those who wait, if it is one of them
  const ReserveCallback done_;
  std::atomic<bool> answered_ = false;

  mutable std::mutex mutex_;  // guards what follows
  bool expects_ = false;
  std::optional<absl::Status> over_;  // it ends once what is under way has come
};

using PushResults = absl::StatusOr<std::vector<absl::StatusOr<PushResult>>>;

// Whether all of them were refused because the queue is not there.
bool HadNoQueue(const PushResults& pushed) {
  const auto had_none = [](const auto& result) {
    return ReasonOf(result.status()) == ErrorReason::kQueueNotFound;
  };
  return pushed.ok() ? std::all_of(pushed->begin(), pushed->end(), had_none) : had_none(pushed);
}

// Whether a token is perhaps refused so because it is of another queue of the same name.
bool MayBeOfAnother(const absl::Status& refusal) {
  const std::optional<ErrorReason> reason = ReasonOf(refusal);
  return reason == ErrorReason::kQueueNotFound || reason == ErrorReason::kMessageNotFound ||
         reason == ErrorReason::kReservationLost;
}

}  // namespace

// A call whose tokens are of several queues.
struct Queues::Impl::TokensCall {
  std::optional<Deadline> deadline;
  TokenOperation::Step step;
  int64_t QueueCounts::*counted = nullptr;
  TokensCallback done;
  std::vector<absl::StatusOr<bool>> results;
  std::atomic<size_t> open{1};

  void End() {
    if (--open == 0) done(std::move(results));
  }
};

void Queues::Impl::Push(PushRequest request, PushCallback done) {
  TryToPush(std::make_shared<const PushRequest>(std::move(request)), /*again=*/false,
            std::move(done));
}

void Queues::Impl::TryToPush(std::shared_ptr<const PushRequest> request, bool again,
                             PushCallback done) {
  const auto prepare =
      [&]() -> absl::StatusOr<std::pair<DispatcherPtr, std::vector<PreparedPush>>> {
    RETURN_IF_ERROR(ValidateName("queue", request->queue));
    for (size_t i = 0; i < request->messages.size(); ++i) {
      RETURN_IF_ERROR(CheckMessage(Element("messages", i), request->messages[i]));
    }
    ASSIGN_OR_RETURN(const QueueRecordPtr queue, directory_.RequireKnown(request->queue));
    ASSIGN_OR_RETURN(DispatcherPtr dispatcher, directory_.RequireDispatcher(request->queue));
    const UnixMicros now = dispatcher->Now();
    std::vector<PreparedPush> pushes;
    pushes.reserve(request->messages.size());
    for (size_t i = 0; i < request->messages.size(); ++i) {
      ASSIGN_OR_RETURN(PreparedPush push,
                       Prepare(Element("messages", i), *queue, request->messages[i],
                               environment_->capabilities, now, DrawId()));
      pushes.push_back(std::move(push));
    }
    return std::make_pair(std::move(dispatcher), std::move(pushes));
  };
  auto prepared = prepare();
  if (!prepared.ok()) return done(prepared.status());
  const Deadline deadline = request->deadline;
  auto ended = [self = shared_from_this(), request = std::move(request), again,
                incarnation = prepared->first->incarnation(),
                done = std::move(done)](PushResults pushed) {
    // Another process has deleted the queue, and perhaps made it anew.
    if (!again && HadNoQueue(pushed) && self->directory_.IsMadeAnew(request->queue, incarnation)) {
      return self->TryToPush(request, /*again=*/true, done);
    }
    done(std::move(pushed));
  };
  prepared->first->Do(std::make_shared<PushOperation>(std::move(prepared->second), deadline,
                                                      environment_->capabilities.atomic_batches,
                                                      std::move(ended)));
}

void Queues::Impl::Reserve(ReserveRequest request, ReserveCallback done) {
  const auto check = [&]() -> absl::StatusOr<DispatcherPtr> {
    RETURN_IF_ERROR(CheckReserve(request));
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

void Queues::Impl::OnTokens(const std::vector<std::string>& tokens,
                            std::optional<Deadline> deadline, TokenOperation::Step step,
                            int64_t QueueCounts::*counted, TokensCallback done) {
  const auto call = std::make_shared<TokensCall>();
  call->done = std::move(done);
  call->results.resize(tokens.size(), false);
  call->deadline = deadline;
  call->step = std::move(step);
  call->counted = counted;
  std::map<std::string, TokensOfQueue> queues;
  for (size_t i = 0; i < tokens.size(); ++i) {
    absl::StatusOr<Token> token = Token::FromText(Element("tokens", i), tokens[i]);
    if (!token.ok()) {
      call->results[i] = token.status();
      continue;
    }
    TokensOfQueue& of_queue = queues[token->queue];
    of_queue.tokens.push_back(*std::move(token));
    of_queue.places.push_back(i);
  }
  for (auto& [name, of_queue] : queues) {
    OnTokensOf(name, std::move(of_queue), call, /*again=*/false);
  }
  call->End();
}

// Those of the queue that are refused are tried once more where another process has made the queue
// anew: no guard says that they are of the new one.
void Queues::Impl::OnTokensOf(const std::string& name, TokensOfQueue of_queue,
                              const std::shared_ptr<TokensCall>& call, bool again) {
  const absl::StatusOr<DispatcherPtr> dispatcher = directory_.RequireDispatcher(name);
  if (!dispatcher.ok()) {
    for (const size_t place : of_queue.places) call->results[place] = dispatcher.status();
    return;
  }
  ++call->open;
  std::vector<Token> tokens = of_queue.tokens;
  auto ended = [self = shared_from_this(), name, call, again,
                incarnation = (*dispatcher)->incarnation(),
                of_queue = std::move(of_queue)](std::vector<absl::StatusOr<bool>> results) mutable {
    TokensOfQueue refused;
    for (size_t i = 0; i < of_queue.places.size(); ++i) {
      if (!again && MayBeOfAnother(results[i].status())) {
        refused.tokens.push_back(std::move(of_queue.tokens[i]));
        refused.places.push_back(of_queue.places[i]);
      }
      call->results[of_queue.places[i]] = std::move(results[i]);
    }
    if (!refused.tokens.empty() && self->directory_.IsMadeAnew(name, incarnation)) {
      self->OnTokensOf(name, std::move(refused), call, /*again=*/true);
    }
    call->End();
  };
  (*dispatcher)
      ->Do(std::make_shared<TokenOperation>(std::move(tokens), options_.timeline, call->deadline,
                                            call->step, call->counted, std::move(ended)));
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
  const auto check = [&]() -> absl::StatusOr<MessageId> {
    ASSIGN_OR_RETURN(const Token token, Token::FromText("token", request.token));
    RETURN_IF_ERROR(CheckMove(request));
    RETURN_IF_ERROR(directory_.RequireKnown(request.queue, "queue").status());
    RETURN_IF_ERROR(directory_.RequireKnown(token.queue, "token").status());
    return token.message;
  };
  const absl::StatusOr<MessageId> checked = check();
  if (!checked.ok()) return done(checked.status());
  strata::queue::Move how{request.payload, request.mover, std::nullopt, request.delay};
  if (request.headers) how.headers = ToContent(*request.headers);
  const MessageId id = *checked;
  const std::string target = request.queue;
  auto step = [how = std::move(how), target, &directory = directory_](
                  Draft& draft, const Place& place,
                  const Token& token) -> absl::StatusOr<TokenResult> {
    // Its record may have been changed since the last attempt.
    ASSIGN_OR_RETURN(const QueueRecordPtr queue, directory.FindAnew(target));
    if (queue == nullptr) return QueueNotFound(target, "queue");
    return PlanMove(draft, place, token, *queue, how);
  };
  OnTokens({request.token}, request.deadline, std::move(step), nullptr,
           [self = shared_from_this(), id, target,
            done = std::move(done)](const std::vector<absl::StatusOr<bool>>& results) {
             if (!results.front().ok()) return done(results.front().status());
             // As it is now; where it was handed out there and finished meanwhile, all that is
             // known.
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
           });
}

}  // namespace strata::queue
