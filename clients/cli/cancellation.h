// Ctrl-C for a command that has an end of its own: it stops where it is, says how far it came, and
// exits as a shell expects it of what a signal ended.
#pragma once

#include <grpcpp/client_context.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>

#include "clients/cli/interruption.h"

namespace strata::cli {

// While it lives, the first SIGINT or SIGTERM asks for the end: it cancels the call under way and
// calls `told`, on another thread. The second one calls `last` and ends the process at once. Made
// before the connection is, as Interruption says. Thread-safe.
class Cancellation {
 public:
  explicit Cancellation(std::function<void()> told = nullptr, std::function<void()> last = nullptr)
      : told_(std::move(told)),
        last_(std::move(last)),
        interruption_([this](int signal) { Ask(signal); }) {}

  bool asked() const { return signal_ != 0; }
  // 130 for SIGINT. REQUIRES: asked().
  int exit_status() const { return 128 + signal_; }

  // The call under way. Cancelled at once if the end has been asked for.
  class Call {
   public:
    Call(Cancellation& cancellation, grpc::ClientContext& context);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    Cancellation& cancellation_;
  };

  // False: the end was asked for meanwhile.
  bool SleepUntil(std::chrono::steady_clock::time_point time);

  // While somebody else has the terminal, Ctrl-C is theirs; SIGTERM still ends the process.
  void LendTerminal(bool lent) { terminal_lent_ = lent; }

 private:
  void Ask(int signal);

  const std::function<void()> told_;
  const std::function<void()> last_;
  std::atomic<int> signal_ = 0;
  std::atomic<bool> terminal_lent_ = false;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  grpc::ClientContext* context_ = nullptr;
  Interruption interruption_;  // The last member: its thread uses the others.
};

}  // namespace strata::cli
