#include "bench/load/disk.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace strata::bench {

Measurement MeasureDisk(const std::string& directory, int writes) {
  using Steady = std::chrono::steady_clock;
  constexpr size_t kBytes = 300;
  const std::string path = directory + "/fdatasync";
  const std::string bytes(kBytes, 'x');
  const int file = open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  const auto size = static_cast<off_t>(kBytes) * writes;
  if (file < 0 || posix_fallocate(file, 0, size) != 0 || fsync(file) != 0) std::abort();
  Measurement result;
  result.system = "disk";
  result.workload = "fdatasync of 300 bytes, preallocated";
  result.in_flight = 1;
  const Steady::time_point begin = Steady::now();
  for (int i = 0; i < writes; ++i) {
    const Steady::time_point before = Steady::now();
    if (write(file, bytes.data(), kBytes) != kBytes || fdatasync(file) != 0) std::abort();
    result.latencies.Add(Steady::now() - before);
    ++result.calls;
  }
  result.duration = Steady::now() - begin;
  close(file);
  std::remove(path.c_str());
  return result;
}

}  // namespace strata::bench
