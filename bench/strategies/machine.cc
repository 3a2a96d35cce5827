#include "bench/strategies/machine.h"

#include <bson/bson.h>
#include <fcntl.h>
#include <rocksdb/version.h>
#include <sys/utsname.h>
#include <unistd.h>

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

Machine DescribeMachine(const std::filesystem::path& directory) {
  Machine machine;
  machine.processor = ProcessorName();
  machine.cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  machine.memory_bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  utsname system{};
  uname(&system);
  machine.system = std::string(system.sysname) + " " + system.release;
#ifdef __clang__
  machine.compiler = __VERSION__;
#else
  machine.compiler = "g++ " __VERSION__;
#endif
  machine.rocksdb = std::to_string(ROCKSDB_MAJOR) + "." + std::to_string(ROCKSDB_MINOR) + "." +
                    std::to_string(ROCKSDB_PATCH);
  machine.libbson = bson_get_version();
  machine.sync_us = MeasureSync(directory);
  return machine;
}

}  // namespace strata::bench
