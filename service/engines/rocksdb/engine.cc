// The engine as the registry knows it: its options, and how it is opened with them.
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "service/engines/engines.h"
#include "service/engines/rocksdb/format.h"
#include "service/engines/rocksdb/memory_watch.h"
#include "service/engines/rocksdb/rocksdb_store.h"

namespace strata::engines {
namespace {

using rocks::RocksDbOptions;

constexpr EngineOption kBlockCacheMib{"block-cache-mib", "MIB", "256",
                                      "memory for uncompressed blocks, a third of it for\nsingle "
                                      "records; less, down to half, while the process\nhas an "
                                      "eighth (at least 32 MiB) more than that",
                                      &ExpectedNumber<1, int64_t{1} << 20>};

// "auto", or a number of MiB.
std::string ExpectedReserve(std::string_view value) {
  if (value == "auto") return "";
  const std::string expected = ExpectedNumber<0, int64_t{1} << 30>(value);
  return expected.empty() ? "" : "auto or " + expected;
}

constexpr EngineOption kDiskReserveMib{"disk-reserve-mib", "MIB", "auto",
                                       "writes are refused (DISK_FULL) while less is free on "
                                       "the\ndisk; 0: never; auto: 5 % of the file "
                                       "system, at least\n256, at most 4096",
                                       &ExpectedReserve};

constexpr EngineOption kBallastMib{
    "ballast-mib", "MIB", "96",
    "size of a file that is given up when the disk is too full\nto start; 0: none",
    &ExpectedNumber<0, int64_t{1} << 20>};

constexpr EngineOption kOptions[] = {kBlockCacheMib, kDiskReserveMib, kBallastMib};

// Connections take half of the descriptors that the process may have, tables a quarter.
int OpenFilesMax() {
  constexpr rlim_t kAtMost = 1 << 20;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return RocksDbOptions().open_files_max;
  return static_cast<int>(std::min(limit.rlim_cur / 4, kAtMost));
}

uint64_t MibOf(const OpenOptions& options, const EngineOption& option) {
  return static_cast<uint64_t>(NumberOf(options.values, option)) << 20;
}

absl::StatusOr<std::unique_ptr<store::Store>> Open(const OpenOptions& options) {
  RocksDbOptions engine_options;
  engine_options.directory = options.directory;
  engine_options.clock = options.clock;
  engine_options.block_cache_bytes = MibOf(options, kBlockCacheMib);
  engine_options.process_bytes = &rocks::ProcessBytes;
  engine_options.open_files_max = OpenFilesMax();
  engine_options.disk_reserve_bytes.reset();
  if (ValueOf(options.values, kDiskReserveMib) != kDiskReserveMib.default_value) {
    engine_options.disk_reserve_bytes = MibOf(options, kDiskReserveMib);
  }
  engine_options.ballast_bytes = MibOf(options, kBallastMib);
  engine_options.features = options.features;
  return rocks::RocksDbStore::Open(engine_options);
}

}  // namespace

Engine RocksDbEngine(std::string_view name) {
  return {name, kOptions, rocks::kFormatNumber, &Open};
}

}  // namespace strata::engines
