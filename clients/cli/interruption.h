// Ctrl-C, and a reader that goes away, for a command that ends well by both.
#pragma once

#include <csignal>
#include <functional>
#include <thread>

namespace strata::cli {

// While it lives, SIGINT and SIGTERM do not end the process: they call `interrupt` with their
// number, on a thread of its own, each time. Made before other threads are, which then leave the
// signals to it. Nor does SIGPIPE: output that nobody reads any more fails (Session::OutputIsRead).
class Interruption {
 public:
  explicit Interruption(std::function<void(int signal)> interrupt);
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

 private:
  sigset_t waited_for_;
  sigset_t before_;
  struct sigaction pipe_before_;
  std::thread thread_;
};

}  // namespace strata::cli
