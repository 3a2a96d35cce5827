#include "service/server/loop_state.h"

#include <algorithm>
#include <random>

#include "schemas/base/error.h"
#include "service/server/stream_call.h"
#include "service/server/unary_call.h"

namespace strata::server {

const Endpoint* LoopState::Find(std::string_view path) const {
  const auto found = std::find_if(endpoints.begin(), endpoints.end(),
                                  [&](const auto& endpoint) { return endpoint->path == path; });
  return found == endpoints.end() ? nullptr : found->get();
}

CallInfo::Time LoopState::OldAt(CallInfo::Time arrival) const {
  thread_local std::minstd_rand spread{std::random_device{}()};
  const std::chrono::milliseconds age = options.connection_age_max;
  if (age.count() == 0) return CallInfo::Time::max();
  return arrival + age +
         std::chrono::milliseconds(
             std::uniform_int_distribution<int64_t>(0, age.count() / 10)(spread));
}

void LoopState::UnaryEnds() {
  if (unary_in_progress_.fetch_sub(1) != 1 || !admission.draining()) return;
  // Under the lock, so that the waiter is either before its look at the number or asleep.
  const std::lock_guard lock(mutex);
  changed.notify_all();
}

void LoopState::AwaitUnaryCalls(std::chrono::milliseconds at_most) {
  std::unique_lock lock(mutex);
  changed.wait_for(lock, at_most, [this] { return unary_in_progress_ == 0; });
}

void LoopState::Add(StreamCall& stream) {
  const std::lock_guard lock(calls_mutex_);
  streams_.push_back(&stream);
  ++streams_open_;
}

void LoopState::Remove(StreamCall& stream) {
  const std::lock_guard lock(calls_mutex_);
  streams_.remove(&stream);
  --streams_open_;
}

void LoopState::Add(UnaryCall& call) {
  const std::lock_guard lock(calls_mutex_);
  unary_.push_back(&call);
}

void LoopState::Remove(UnaryCall& call) {
  const std::lock_guard lock(calls_mutex_);
  unary_.remove(&call);
}

void LoopState::EndCalls() {
  const std::lock_guard lock(calls_mutex_);
  for (UnaryCall* const call : unary_) call->Drain();
  for (StreamCall* const stream : streams_) stream->Finish(Draining());
}

void LoopState::LookAtStreams(CallInfo::Time now) {
  admission.room_line().OfferAll();
  const std::lock_guard lock(calls_mutex_);
  for (StreamCall* const stream : streams_) {
    stream->GiveUpIfStuck(now);
    stream->FinishIfOld(now);
  }
}

}  // namespace strata::server
