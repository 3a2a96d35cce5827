#include "bench/strategies/sync.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "bench/strategies/histories.h"
#include "bench/strategies/stopwatch.h"

namespace strata::bench {

double MeasureSync(const std::filesystem::path& directory) {
  const std::string path = directory / "sync";
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);  // NOLINT
  if (file < 0) Fail("cannot write " + path);
  const std::string bytes(300, 'x');
  const Latency latency = Repeat({.repetitions_min = 100, .repetitions_max = 100}, [&](int64_t) {
    return Timed([&] {
      if (write(file, bytes.data(), bytes.size()) < 0 || fdatasync(file) != 0) {
        Fail("cannot sync " + path);
      }
    });
  });
  close(file);
  std::filesystem::remove(path);
  return latency.p50_us;
}

}  // namespace strata::bench
