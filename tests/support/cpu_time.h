// How long this thread has worked.
#pragma once

#include <chrono>
#include <ctime>

namespace strata::test_support {

// For bounds on what an algorithm may take: what the thread waited while others had the machine
// does not count.
inline std::chrono::nanoseconds ThreadCpuTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace strata::test_support
