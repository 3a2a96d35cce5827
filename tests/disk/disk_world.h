// A store over a FaultFileSystem, with the model of what it must hold.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "service/engines/rocksdb/rocksdb_store.h"
#include "service/observability/log.h"
#include "tests/disk/fault_file_system.h"
#include "tests/disk/stored_commits.h"
#include "tests/support/manual_clock.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/volume.h"

namespace strata::engines::rocks {

struct DiskWorld {
  explicit DiskWorld(StoredCommits stored = StoredCommits()) : commits(std::move(stored)) {
    // Thousands of failures are wanted here.
    observability::ConfigureLog(observability::LogLevel::kOff, observability::LogFormat::kText);
    options.directory = directory.Join("deep/data");
    options.clock = &clock;
    options.block_cache_bytes = size_t{4} << 20;
    options.file_system = files;
  }

  absl::Status Open() {
    auto opened = RocksDbStore::Open(options);
    if (opened.ok()) store = *std::move(opened);
    return opened.status();
  }
  void Close() { store.reset(); }
  std::string PathOf(const std::string& name) const { return options.directory + "/" + name; }

  test_support::TemporaryDirectory directory;
  test_support::ManualClock clock;
  const std::shared_ptr<FaultFileSystem> files =
      std::make_shared<FaultFileSystem>(directory.path().string());
  RocksDbOptions options;
  StoredCommits commits;
  std::unique_ptr<RocksDbStore> store;
};

using test_support::kOneIn;
using test_support::Volume;

}  // namespace strata::engines::rocks
