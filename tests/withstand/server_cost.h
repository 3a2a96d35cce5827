// What a server's process takes, as the kernel counts it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>

namespace strata::withstand {

inline constexpr int64_t kMiB = int64_t{1} << 20;

int64_t ResidentBytes(pid_t process);
// The most that was resident at any time since it was last forgotten, or since the start.
int64_t ResidentPeak(pid_t process);
void ForgetResidentPeak(pid_t process);

// Of all its threads, in user and kernel mode.
std::chrono::milliseconds CpuTime(pid_t process);
// Waits, at most so long, until the process uses less than a fifth of one core.
bool RestsWithin(pid_t process, std::chrono::milliseconds patience);

// Waits, at most so long, for the end of a child, whose status stays to be waited for.
bool EndsWithin(pid_t process, std::chrono::milliseconds patience);

}  // namespace strata::withstand
