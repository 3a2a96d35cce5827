#include "clients/cli/cancellation.h"

#include <csignal>
#include <cstdlib>

namespace strata::cli {

Cancellation::Call::Call(Cancellation& cancellation, grpc::ClientContext& context)
    : cancellation_(cancellation) {
  const std::lock_guard lock(cancellation_.mutex_);
  cancellation_.context_ = &context;
  // Before the call begins too: gRPC remembers it.
  if (cancellation_.asked()) context.TryCancel();
}

Cancellation::Call::~Call() {
  const std::lock_guard lock(cancellation_.mutex_);
  cancellation_.context_ = nullptr;
}

bool Cancellation::SleepUntil(std::chrono::steady_clock::time_point time) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_until(lock, time, [this] { return asked(); });
}

void Cancellation::Ask(int signal) {
  if (terminal_lent_ && signal == SIGINT) return;
  if (terminal_lent_ || asked()) {
    if (last_) last_();
    std::_Exit(128 + signal);
  }
  {
    const std::lock_guard lock(mutex_);
    signal_ = signal;
    if (context_ != nullptr) context_->TryCancel();
    changed_.notify_all();
  }
  if (told_) told_();
}

}  // namespace strata::cli
