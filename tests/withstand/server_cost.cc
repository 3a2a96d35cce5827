#include "tests/withstand/server_cost.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

namespace strata::withstand {
namespace {

using Clock = std::chrono::steady_clock;

std::string FileOf(pid_t process, const char* name) {
  return "/proc/" + std::to_string(process) + "/" + name;
}

// A line of /proc/PID/status: "VmRSS:     1234 kB".
int64_t StatusBytes(pid_t process, const std::string& name) {
  std::ifstream in(FileOf(process, "status"));
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(name + ":")) return std::stoll(line.substr(name.size() + 1)) << 10;
  }
  return 0;
}

}  // namespace

int64_t ResidentBytes(pid_t process) { return StatusBytes(process, "VmRSS"); }

int64_t ResidentPeak(pid_t process) { return StatusBytes(process, "VmHWM"); }

void ForgetResidentPeak(pid_t process) { std::ofstream(FileOf(process, "clear_refs")) << "5"; }

std::chrono::milliseconds CpuTime(pid_t process) {
  std::ifstream in(FileOf(process, "stat"));
  std::string line;
  std::getline(in, line);
  // The name, in parentheses, may hold anything. utime and stime are the 12th and 13th after it.
  std::istringstream rest(line.substr(line.rfind(')') + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i) rest >> skipped;
  int64_t user = 0;
  int64_t kernel = 0;
  rest >> user >> kernel;
  return std::chrono::milliseconds((user + kernel) * 1000 / sysconf(_SC_CLK_TCK));
}

bool RestsWithin(pid_t process, std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kWindow{100};
  const Clock::time_point end = Clock::now() + patience;
  do {
    const std::chrono::milliseconds before = CpuTime(process);
    poll(nullptr, 0, static_cast<int>(kWindow.count()));
    if (CpuTime(process) - before < kWindow / 5) return true;
  } while (Clock::now() < end);
  return false;
}

bool EndsWithin(pid_t process, std::chrono::milliseconds patience) {
  // Its wrapper in glibc 2.36 has no C linkage.
  const auto descriptor = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  pollfd ended = {descriptor, POLLIN, 0};
  const bool ends = poll(&ended, 1, static_cast<int>(patience.count())) == 1;
  close(descriptor);
  return ends;
}

}  // namespace strata::withstand
