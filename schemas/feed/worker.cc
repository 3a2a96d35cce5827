#include "schemas/feed/worker.h"

#include <algorithm>
#include <utility>

#include "schemas/base/error.h"

namespace strata::feed {
namespace {

using std::chrono::microseconds;
using Ending = lease::HeldWrite::End;

constexpr microseconds kRetryDelay = std::chrono::milliseconds(200);

absl::Status Stopped() {
  return Error(ErrorReason::kCancelled, "the lease is no longer this holder's");
}

// Whether it makes sense to try the same again.
bool Passes(const absl::Status& status) {
  switch (ReasonOf(status).value_or(ErrorReason::kInternal)) {
    case ErrorReason::kStoreUnavailable:
    case ErrorReason::kOutcomeUnknown:
    case ErrorReason::kRetriesExhausted:
    case ErrorReason::kDeadlineExceeded:
    case ErrorReason::kOverloaded:
    case ErrorReason::kDiskFull:
      return true;
    default:
      return false;
  }
}

}  // namespace

void Worker::Acquire(lease::AcquireRequest request,
                     std::function<void(absl::StatusOr<lease::Lease>)> done) {
  name_ = request.name;
  ttl_ = request.ttl;
  request.background = true;
  workshop_->leases.Acquire(std::move(request), [self = shared_from_this(), done = std::move(done)](
                                                    absl::StatusOr<lease::Lease> lease) {
    if (lease.ok()) self->token_ = lease->token;
    self->workshop_->Later([done, lease = std::move(lease)] { done(lease); });
  });
}

void Worker::Begin(Refresh refresh, Lost lost, Renewed renewed) {
  {
    const std::lock_guard lock(mutex_);
    refresh_ = std::move(refresh);
    lost_ = std::move(lost);
    renewed_ = std::move(renewed);
  }
  RenewLater();
}

void Worker::RenewLater() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(renewing_, true)) return;
  }
  workshop_->Later(ttl_ / 3, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->Renew();
  });
}

void Worker::Renew() {
  Refresh refresh;
  Renewed renewed;
  {
    const std::lock_guard lock(mutex_);
    renewing_ = false;
    if (ended_) return;
    refresh = refresh_;
    renewed = renewed_;
  }
  Write write;
  write.change = [refresh = std::move(refresh)](lease::State& state) {
    refresh(state);
    return true;
  };
  write.done = [weak = weak_from_this(), renewed = std::move(renewed),
                begun =
                    workshop_->clock.SteadyNow()](const absl::StatusOr<lease::HeldState>& held) {
    if (held.ok() && renewed != nullptr) renewed(begun);
    if (const auto self = weak.lock()) self->RenewLater();
  };
  Submit(std::move(write));
}

void Worker::Submit(Write write) {
  auto queued = std::make_shared<Write>(std::move(write));
  {
    std::unique_lock lock(mutex_);
    if (ended_) {
      lock.unlock();
      return workshop_->Later([queued] { queued->done(Stopped()); });
    }
    ended_ = queued->end != Ending::kNone;
    writes_.push_back(std::move(queued));
    if (std::exchange(writing_, true)) return;
  }
  Next();
}

// REQUIRES: `writing_`, and no write is under way.
void Worker::Next() {
  std::shared_ptr<Write> write;
  {
    const std::lock_guard lock(mutex_);
    if (writes_.empty()) {
      writing_ = false;
      return;
    }
    write = writes_.front();
  }
  workshop_->Later([self = shared_from_this(), write] { self->Run(write); });
}

void Worker::Run(const std::shared_ptr<Write>& write) {
  lease::HeldWrite request;
  request.name = name_;
  request.token = token_;
  request.change = write->change;
  request.joined = write->joined;
  request.end = write->end;
  workshop_->leases.Write(std::move(request), [self = shared_from_this(),
                                               write](absl::StatusOr<lease::HeldState> result) {
    self->workshop_->Later([self, write, result = std::move(result)] { self->End(write, result); });
  });
}

void Worker::End(const std::shared_ptr<Write>& write, absl::StatusOr<lease::HeldState> result) {
  std::deque<std::shared_ptr<Write>> dropped;
  Lost lost;
  bool renew = false;
  {
    std::unique_lock lock(mutex_);
    if (writes_.empty()) return;  // stopped meanwhile
    if (!result.ok() && Passes(result.status())) {
      lock.unlock();
      return workshop_->Later(std::min(kRetryDelay, ttl_ / 3),
                              [self = shared_from_this(), write] { self->Run(write); });
    }
    writes_.pop_front();
    // One that was to end the lease and wrote nothing leaves it as it was.
    if (write->end != Ending::kNone && !(result.ok() && result->written)) {
      ended_ = false;
      renew = true;
    }
    if (ReasonOf(result.status()) == ErrorReason::kLeaseLost) {
      ended_ = true;
      renew = false;
      dropped.swap(writes_);
      lost = std::exchange(lost_, nullptr);
    }
  }
  if (renew) RenewLater();
  write->done(result);
  for (const auto& each : dropped) each->done(result.status());
  if (lost != nullptr) lost(result.status());
  Next();
}

void Worker::Stop() {
  // These may hold what holds this: they go behind the lock.
  std::deque<std::shared_ptr<Write>> writes;
  Refresh refresh;
  Lost lost;
  Renewed renewed;
  const std::lock_guard lock(mutex_);
  ended_ = true;
  writes.swap(writes_);
  refresh.swap(refresh_);
  lost.swap(lost_);
  renewed.swap(renewed_);
}

}  // namespace strata::feed
