#include "bench/support/process.h"

#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

namespace strata::bench {

std::chrono::nanoseconds CpuTime(pid_t process) {
  clockid_t clock = 0;
  timespec time{};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0) {
    return std::chrono::nanoseconds(0);
  }
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

std::chrono::nanoseconds CpuTimeOfThreads(pid_t process, std::string_view name) {
  std::chrono::nanoseconds time(0);
  std::error_code error;
  const std::string tasks = "/proc/" + std::to_string(process) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks, error)) {
    std::string its_name;
    std::getline(std::ifstream(task.path() / "comm"), its_name);
    if (!its_name.starts_with(name)) continue;
    int64_t nanoseconds = 0;
    std::ifstream(task.path() / "schedstat") >> nanoseconds;
    time += std::chrono::nanoseconds(nanoseconds);
  }
  return time;
}

std::vector<pid_t> FamilyOf(pid_t process) {
  std::vector<pid_t> family = {process};
  for (size_t i = 0; i < family.size(); ++i) {
    const std::string tasks = "/proc/" + std::to_string(family[i]) + "/task";
    std::error_code error;
    for (const auto& task : std::filesystem::directory_iterator(tasks, error)) {
      std::ifstream children(task.path() / "children");
      for (pid_t child = 0; children >> child;) family.push_back(child);
    }
  }
  return family;
}

std::chrono::nanoseconds CpuTimeOfFamily(pid_t process) {
  std::chrono::nanoseconds time(0);
  for (const pid_t member : FamilyOf(process)) time += CpuTime(member);
  return time;
}

void AwaitQuiet(pid_t process, std::chrono::seconds at_most) {
  constexpr std::chrono::milliseconds kLook{100};
  constexpr std::chrono::milliseconds kBusy{2};
  const auto end = std::chrono::steady_clock::now() + at_most;
  for (int quiet = 0; quiet < 2 && std::chrono::steady_clock::now() < end;) {
    const auto before = CpuTime(process);
    std::this_thread::sleep_for(kLook);
    quiet = CpuTime(process) - before < kBusy ? quiet + 1 : 0;
  }
}

int64_t ResidentBytes(pid_t process) {
  std::ifstream pages("/proc/" + std::to_string(process) + "/statm");
  int64_t all = 0;
  int64_t resident = 0;
  pages >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

int64_t PeakResidentBytes(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  int64_t kibibytes = 0;
  for (std::string name; status >> name;) {
    if (name == "VmHWM:") status >> kibibytes;
  }
  return kibibytes * 1024;
}

int64_t OpenFiles(pid_t process) {
  std::error_code error;
  const std::filesystem::directory_iterator files("/proc/" + std::to_string(process) + "/fd",
                                                  error);
  return error ? 0 : std::distance(begin(files), end(files));
}

}  // namespace strata::bench
