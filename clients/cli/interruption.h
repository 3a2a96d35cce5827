// Ctrl-C, for a command that ends well by it.
#pragma once

#include <csignal>
#include <functional>
#include <thread>

namespace strata::cli {

// While it lives, SIGINT and SIGTERM do not end the process: they call `interrupt`, on a thread of
// its own, each time. Made before other threads are, which then leave the signals to it.
class Interruption {
 public:
  explicit Interruption(std::function<void()> interrupt);
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

 private:
  sigset_t waited_for_;
  sigset_t before_;
  std::thread thread_;
};

}  // namespace strata::cli
