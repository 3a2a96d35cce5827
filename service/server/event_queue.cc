#include "service/server/event_queue.h"

#include <grpc/grpc_security_constants.h>

#include <algorithm>
#include <utility>

#include "schemas/base/error.h"
#include "service/server/send_coalescer.h"
#include "service/server/standby.h"
#include "service/server/unary_call.h"

namespace strata::server {
namespace {

// A few calls registered ahead of each method are enough, as each is replaced when it is matched,
// and gRPC keeps what arrives meanwhile. Many cost: where gRPC is built with assertions, as
// Debian's is, each event is looked for among all that is registered.
constexpr int kUnaryCallsAhead = 2;
constexpr int kStreamCallsAhead = 2;
constexpr int kUnknownCallsAhead = 2;

// While commits wait. An event costs some 10 us.
constexpr int kEventsBeforeCommit = 64;
// How soon the owner gets its queue back.
constexpr std::chrono::milliseconds kStandbyWait{1};

constexpr std::chrono::seconds kCallsLookInterval{1};

gpr_timespec ToGpr(Call::Time time) {
  if (time == Call::Time::max()) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  if (time == Call::Time::min()) return gpr_time_0(GPR_CLOCK_MONOTONIC);
  const auto since_start = time.time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_start);
  gpr_timespec result;
  result.clock_type = GPR_CLOCK_MONOTONIC;
  result.tv_sec = seconds.count();
  result.tv_nsec = static_cast<int32_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(since_start - seconds).count());
  return result;
}

// Of what a call's context holds, as long as it lives.
std::string_view ToView(grpc::string_ref text) { return {text.data(), text.size()}; }

CallInfo::Time ToSteady(gpr_timespec deadline) {
  if (deadline.tv_sec == gpr_inf_future(deadline.clock_type).tv_sec) return CallInfo::Time::max();
  const gpr_timespec steady = gpr_convert_clock_type(deadline, GPR_CLOCK_MONOTONIC);
  return CallInfo::Time(std::chrono::seconds(steady.tv_sec) +
                        std::chrono::nanoseconds(steady.tv_nsec));
}

}  // namespace

int RawService::Add(const char* path, bool stream) {
  using grpc::internal::RpcMethod;
  AddMethod(new grpc::internal::RpcServiceMethod(
      path, stream ? RpcMethod::BIDI_STREAMING : RpcMethod::NORMAL_RPC, nullptr));
  MarkMethodRaw(methods_);
  return methods_++;
}

Arrival EventQueue::Describe(const grpc::ServerContext& context) {
  Arrival arrival{.peer = context.peer(), .deadline = ToSteady(context.raw_deadline())};
  security::Credentials credentials;
  // Each costs something with every call.
  if (state_->parts.access.reads_tokens()) {
    const auto [first, last] = context.client_metadata().equal_range("authorization");
    for (auto it = first; it != last; ++it) credentials.authorization.push_back(ToView(it->second));
  }
  std::shared_ptr<const grpc::AuthContext> connection;
  if (state_->options.credentials != nullptr) {
    connection = context.auth_context();
    for (const grpc::string_ref& uri :
         connection->FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME)) {
      credentials.uris.push_back(ToView(uri));
    }
    for (const grpc::string_ref& dns :
         connection->FindPropertyValues(GRPC_PEER_DNS_PROPERTY_NAME)) {
      credentials.dns_names.push_back(ToView(dns));
    }
  }
  arrival.recognized = callers_seen_.Of(arrival.peer, credentials);
  return arrival;
}

EventQueue::EventQueue(std::shared_ptr<LoopState> state, grpc::AsyncGenericService& unknown_methods,
                       std::unique_ptr<grpc::ServerCompletionQueue> queue)
    : state_(std::move(state)), unknown_methods_(unknown_methods), queue_(std::move(queue)) {}

void EventQueue::Start() {
  for (const std::unique_ptr<Endpoint>& endpoint : state_->endpoints) {
    const bool stream = endpoint->method.streams();
    for (int i = 0; i < (stream ? kStreamCallsAhead : kUnaryCallsAhead); ++i) {
      stream ? RegisterStreamCall(*this, *endpoint) : RegisterUnaryCall(*this, *endpoint);
    }
  }
  for (int i = 0; i < kUnknownCallsAhead; ++i) RegisterUnknownCall(*this);
  thread_ = std::thread([this] { Run(); });
}

// Commits between its events: when none is there right now, or after a few, so that a stream of
// reads cannot keep writes waiting. However slow the disk is then, the events do not wait for it.
void EventQueue::Run() {
  store::CooperativeCommitter* const committer = state_->parts.committer;
  if (committer == nullptr) return ServeAll();
  committer->Join();
  Standby standby([this] {
    SendCoalescer sends;
    Serve(std::chrono::steady_clock::now() + kStandbyWait, sends);
  });
  standby.TakeBaton();
  SendCoalescer sends;
  int events_left = kEventsBeforeCommit;
  for (bool serving = true; serving;) {
    const bool commits_wait = committer->WorkWaits();
    if (!commits_wait) {
      events_left = kEventsBeforeCommit;
    } else if (events_left <= 0) {
      sends.Flush();  // a commit may take long
      standby.AwayFor([&] {
        const SendCoalescer::Scope answering(sends);
        committer->CommitOneGroup();
      });
      sends.Flush();
      events_left = kEventsBeforeCommit;
      continue;
    }
    switch (Serve(commits_wait ? Call::Time::min() : Call::Time::max(), sends)) {
      case grpc::CompletionQueue::SHUTDOWN:
        serving = false;
        break;
      case grpc::CompletionQueue::GOT_EVENT:
        --events_left;
        break;
      case grpc::CompletionQueue::TIMEOUT:
        events_left = 0;
        break;
    }
  }
  standby.PutBatonDown();
  committer->Leave();
}

void EventQueue::ServeAll() {
  SendCoalescer sends;
  while (Serve(Call::Time::max(), sends) != grpc::CompletionQueue::SHUTDOWN) continue;
}

// One event, or none until the deadline, and what is due besides. Does not wait while sends are
// kept.
grpc::CompletionQueue::NextStatus EventQueue::Serve(Call::Time deadline, SendCoalescer& sends) {
  void* tag = nullptr;
  bool ok = false;
  const Call::Time until = sends.Holds() ? Call::Time::min() : std::min(deadline, NextSweep());
  const grpc::CompletionQueue::NextStatus next = queue_->AsyncNext(&tag, &ok, ToGpr(until));
  if (next == grpc::CompletionQueue::GOT_EVENT) {
    const SendCoalescer::Scope answering(sends);
    static_cast<Event*>(tag)->Proceed(ok);
    sends.FlushIfDue();
  } else {
    sends.Flush();
  }
  if (next != grpc::CompletionQueue::SHUTDOWN) Sweep();
  return next;
}

Call::Time EventQueue::NextSweep() const {
  Call::Time next = Call::Time::max();
  if (!waiting_.empty()) next = waiting_.front()->expiry();
  if (!late_.empty()) {
    next = std::min(next, late_.front()->expiry() + state_->options.late_answer_max);
  }
  if (state_->live_calls() > 0) next = std::min(next, next_look_);
  return next;
}

// All calls have the same time to live, so the oldest expires first. (Callers' own, shorter
// deadlines are gRPC's to enforce.)
void EventQueue::Sweep() {
  const Call::Time next = NextSweep();
  if (next == Call::Time::max()) return;
  const Call::Time now = std::chrono::steady_clock::now();
  if (now < next) return;
  while (!waiting_.empty() && waiting_.front()->expiry() <= now) waiting_.front()->Expire();
  while (!late_.empty() && late_.front()->expiry() + state_->options.late_answer_max <= now) {
    late_.front()->Cancel();
  }
  if (next_look_ > now) return;
  next_look_ = now + kCallsLookInterval;
  state_->LookAtCalls(now);
}

// On the queue's thread, which alone knows them.
void EventQueue::EndUnaryCalls() {
  CallBegins();  // so that the queue is there when the event comes
  end_unary_alarm_.Set(queue_.get(), ToGpr(Call::Time::min()), &end_unary_event_);
}

void EventQueue::OnEndUnaryCalls(bool /*ok*/) {
  while (!waiting_.empty()) waiting_.front()->Drain();
  CallEnds();
}

void EventQueue::CallEnds() {
  LoopState& state = *state_;  // the queue may be gone when its last call is
  if (--calls_ != 0) return;
  const std::lock_guard lock(state.mutex);
  state.changed.notify_all();
}

void EventQueue::Stop() {
  {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [this] { return calls_ == 0; });
  }
  queue_->Shutdown();
  thread_.join();
}

}  // namespace strata::server
