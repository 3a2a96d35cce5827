// A caller that means no harm, beside one that does.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace strata::withstand {

// What came of its calls.
struct HonestResult {
  std::vector<std::chrono::nanoseconds> latencies;  // of all, ascending
  std::vector<std::string> failures;  // how those ended, in words, that were not answered OK

  size_t answered() const { return latencies.size() - failures.size(); }
  std::chrono::nanoseconds Quantile(double share) const;  // 0 without calls
  std::chrono::nanoseconds longest() const { return Quantile(1); }
};

// Calls at even times, on a thread of its own, one call at a time. One that takes long delays those
// that should have begun meanwhile; their time counts from when they should have, as it does for
// callers who do not wait for each other.
class HonestCaller {
 public:
  // The n-th call, from 0.
  using Call = std::function<grpc::Status(grpc::ClientContext& context, int64_t n)>;

  // A call that is not answered in `deadline` has failed.
  HonestCaller(Call call, std::chrono::milliseconds every, std::chrono::milliseconds deadline);
  ~HonestCaller();
  HonestCaller(const HonestCaller&) = delete;
  HonestCaller& operator=(const HonestCaller&) = delete;

  int64_t calls() const;
  // Waits for the call in progress, if there is one. Once.
  HonestResult End();

 private:
  void Run();
  bool AwaitTurn(std::chrono::steady_clock::time_point turn);

  const Call call_;
  const std::chrono::milliseconds every_;
  const std::chrono::milliseconds deadline_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  bool ending_ = false;
  int64_t calls_ = 0;
  HonestResult result_;
  std::thread thread_;
};

}  // namespace strata::withstand
