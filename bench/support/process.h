// What a process on this machine costs, as the kernel counts it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

namespace strata::bench {

// The CPU time that the process and all its threads have used, in user and kernel mode; 0 if there
// is no such process. Children are not counted.
std::chrono::nanoseconds CpuTime(pid_t process);

// Of those of its threads that live and whose names begin so.
std::chrono::nanoseconds CpuTimeOfThreads(pid_t process, std::string_view name);

// Of several processes together, such as a database's workers. Children of `process`, and theirs,
// are counted with it as long as they live.
std::chrono::nanoseconds CpuTimeOfFamily(pid_t process);
std::vector<pid_t> FamilyOf(pid_t process);

// Until the process does nothing any more, such as merging files of what was written last; that
// would be counted with the calls that come after. At most so long.
void AwaitQuiet(pid_t process, std::chrono::seconds at_most);

int64_t ResidentBytes(pid_t process);
int64_t PeakResidentBytes(pid_t process);  // since it began
int64_t OpenFiles(pid_t process);

}  // namespace strata::bench
