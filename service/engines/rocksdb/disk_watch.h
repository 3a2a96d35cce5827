// Looks each second at the disk under a database, on a thread of its own: whether there is room,
// whether the directory is still the one that is held, whether the ballast can be made again.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "service/engines/rocksdb/background_writes.h"
#include "service/engines/rocksdb/ballast.h"
#include "service/engines/rocksdb/data_directory.h"
#include "service/engines/rocksdb/disk_guard.h"
#include "service/engines/rocksdb/log_file_system.h"
#include "service/engines/rocksdb/rocksdb_store.h"

namespace strata::engines::rocks {

// Thread-safe.
class DiskWatch {
 public:
  // Looks once, and then as often as the options say, ten times as often where little is left.
  // `directory`, `files` and `background` outlive it. STORE_UNAVAILABLE: it cannot be told what is
  // free.
  struct Actions {
    // Begins to write what memory holds into tables, and lets go of the log for it.
    std::function<void()> flush;
    // Goes on after a background write for which there was no room.
    std::function<void()> resume;
  };
  static absl::StatusOr<std::unique_ptr<DiskWatch>> Start(const RocksDbOptions& options,
                                                          const DataDirectory& directory,
                                                          LogFileSystem& files,
                                                          BackgroundWrites& background,
                                                          Actions actions);
  ~DiskWatch();
  DiskWatch(const DiskWatch&) = delete;
  DiskWatch& operator=(const DiskWatch&) = delete;

  // As the guard's (disk_guard.h); STORE_UNAVAILABLE too: the directory is gone.
  absl::Status Admit(size_t bytes, bool removal);
  void Written(size_t bytes) { guard_.Written(bytes); }
  absl::Status Ready() const;
  absl::Status NoRoomForMemory() const { return guard_.NoRoomForMemory(); }

 private:
  DiskWatch(const RocksDbOptions& options, uint64_t reserve_bytes, const DataDirectory& directory,
            LogFileSystem& files, BackgroundWrites& background, Actions actions);

  void Run();
  void Look();
  void LookAtDirectory();
  void LookAtStop(const DiskSpace& space);
  void LookAtMemory(const DiskSpace& space);
  void LookAtBallast(const DiskSpace& space);
  absl::Status Held() const;

  const DataDirectory& directory_;
  LogFileSystem& files_;
  BackgroundWrites& background_;
  const Actions actions_;
  const DiskSpaceSource space_;
  const std::chrono::milliseconds interval_;
  const Ballast ballast_;
  DiskGuard guard_;
  int looks_without_ballast_ = 0;  // since it could not be made
  // As if they were long ago.
  int looks_since_flush_ = 1000;
  int looks_since_resume_ = 1000;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool stopping_ = false;
  absl::Status held_;   // whether the directory is
  std::thread thread_;  // last: it uses all the others
};

}  // namespace strata::engines::rocks
