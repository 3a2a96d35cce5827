#include "service/app/process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <initializer_list>

namespace strata::app {

void OpenStandardDescriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest number that is free: this one, as those below it are open by now.
    if (open("/dev/null", O_RDWR) != descriptor) std::abort();  // NOLINT
  }
}

void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);  // as it was, if it cannot be raised
}

sigset_t BlockSignals() {
  for (const int ignored : {SIGPIPE, SIGUSR1, SIGUSR2}) signal(ignored, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int taken : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, taken);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

}  // namespace strata::app
