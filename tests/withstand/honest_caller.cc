#include "tests/withstand/honest_caller.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace strata::withstand {

using Clock = std::chrono::steady_clock;

std::chrono::nanoseconds HonestResult::Quantile(double share) const {
  if (latencies.empty()) return {};
  const auto rank = std::ceil(share * static_cast<double>(latencies.size()));
  return latencies[static_cast<size_t>(std::max(rank, 1.0)) - 1];
}

HonestCaller::HonestCaller(Call call, std::chrono::milliseconds every,
                           std::chrono::milliseconds deadline)
    : call_(std::move(call)), every_(every), deadline_(deadline), thread_([this] { Run(); }) {}

HonestCaller::~HonestCaller() {
  if (thread_.joinable()) End();
}

int64_t HonestCaller::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

HonestResult HonestCaller::End() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ended_.notify_all();
  thread_.join();
  std::sort(result_.latencies.begin(), result_.latencies.end());
  return std::move(result_);
}

// False: there is none any more.
bool HonestCaller::AwaitTurn(Clock::time_point turn) {
  std::unique_lock lock(mutex_);
  return !ended_.wait_until(lock, turn, [this] { return ending_; });
}

void HonestCaller::Run() {
  Clock::time_point turn = Clock::now();
  for (int64_t n = 0; AwaitTurn(turn); ++n, turn += every_) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + deadline_);
    const grpc::Status status = call_(context, n);
    result_.latencies.push_back(Clock::now() - turn);
    if (!status.ok()) {
      result_.failures.push_back(std::to_string(status.error_code()) + " " +
                                 status.error_message());
    }
    const std::lock_guard lock(mutex_);
    ++calls_;
  }
}

}  // namespace strata::withstand
