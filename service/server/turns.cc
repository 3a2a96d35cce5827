#include "service/server/turns.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "schemas/base/error.h"

namespace strata::server {

Turns::Turns(Executor& executor, int threads)
    : executor_(executor), threads_(std::max(threads, 1)), at_work_max_(std::max(threads - 1, 1)) {}

absl::Status Turns::Schedule(const std::shared_ptr<Caller>& caller, Work work) {
  const Lock lock(mutex_);
  if (stopped_) return absl::OkStatus();
  Line& line = lines_[caller.get()];
  if (line.waiting.size() >= kWaitingMax) {
    return Error(ErrorReason::kOverloaded,
                 "caller " + caller->name() + " has " + std::to_string(kWaitingMax) +
                     " long calls waiting, the maximum; wait for their answers");
  }
  line.caller = caller;
  const bool was_ready = IsReady(line);
  line.waiting.push_back(std::move(work));
  if (!was_ready && IsReady(line)) ready_.push_back(&line);
  if (IsReady(line) && runners_ < threads_) StartRunner();
  return absl::OkStatus();
}

void Turns::Stop() {
  std::deque<Work> dropped;
  {
    const Lock lock(mutex_);
    stopped_ = true;
    ready_.clear();
    for (auto& [caller, line] : lines_) {
      std::move(line.waiting.begin(), line.waiting.end(), std::back_inserter(dropped));
      line.waiting.clear();
    }
  }
  // `dropped` goes here, without the lock: destroying work may schedule more.
}

// With the lock held. A runner does one piece of work and then waits in the executor's queue again,
// so that what else is scheduled there has its time too.
void Turns::StartRunner() {
  ++runners_;
  executor_.Schedule([self = shared_from_this()] { self->RunNext(); });
}

void Turns::RunNext() {
  Lock lock(mutex_);
  --runners_;
  if (ready_.empty()) return;
  Line& line = *ready_.front();
  ready_.pop_front();
  Work work = std::move(line.waiting.front());
  line.waiting.pop_front();
  ++line.at_work;
  if (IsReady(line)) ready_.push_back(&line);
  ++runners_;
  lock.unlock();
  work();
  work = nullptr;  // without the lock, as its end may schedule more
  lock.lock();
  --runners_;
  EndTurn(line);
  if (!ready_.empty() && runners_ < threads_) StartRunner();
}

void Turns::EndTurn(Line& line) {
  const bool was_ready = IsReady(line);
  --line.at_work;
  if (!was_ready && IsReady(line)) ready_.push_back(&line);
  if (line.at_work == 0 && line.waiting.empty()) lines_.erase(line.caller.get());
}

}  // namespace strata::server
