#include "clients/cli/interruption.h"

#include <pthread.h>

#include <utility>

namespace strata::cli {
namespace {

// To its own thread: that it may end.
constexpr int kEnd = SIGUSR1;

}  // namespace

Interruption::Interruption(std::function<void(int signal)> interrupt) {
  sigemptyset(&waited_for_);
  for (const int signal : {SIGINT, SIGTERM, kEnd}) sigaddset(&waited_for_, signal);
  pthread_sigmask(SIG_BLOCK, &waited_for_, &before_);
  struct sigaction ignored = {};
  ignored.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignored, &pipe_before_);
  thread_ = std::thread([this, interrupt = std::move(interrupt)] {
    int signal = 0;
    while (sigwait(&waited_for_, &signal) == 0 && signal != kEnd) interrupt(signal);
  });
}

Interruption::~Interruption() {
  pthread_kill(thread_.native_handle(), kEnd);
  thread_.join();
  sigaction(SIGPIPE, &pipe_before_, nullptr);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace strata::cli
