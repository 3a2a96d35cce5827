// The RocksDB engine: one process, one directory, one thread at a time that commits.
//
// Life of a commit: Commit puts the batch into the commit queue and returns. The committer takes
// all that wait, drops those that waited beyond their deadlines, decides the others one after the
// other (commit_group.h), gives each accepted one its position, writes one RocksDB batch with one
// sync, and calls their callbacks in the queue's order. So guards, order, positions and the ledger
// need no lock, and an fsync is shared by as many commits as wait for it.
//
// The committer is a thread of the store's own, or one that has joined (store/cooperative.h): each
// group has one, and what came meanwhile makes the next group. A thread that has joined does
// nothing else while the disk syncs, so it commits only while that is short (cooperative_wait_max).
//
// When a write or its sync fails, its commits are answered OUTCOME_UNKNOWN and the store takes no
// more until it is opened again (STORE_UNAVAILABLE): what the disk holds is not known before. Reads
// go on. So that a full disk is no such failure, writes are refused before it is full
// (disk_guard.h); they are, too, when the directory is deleted under the store (disk_watch.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/store/store.h"
#include "service/engines/rocksdb/disk_guard.h"

namespace rocksdb {
class FileSystem;
}

namespace strata::engines::rocks {

using DiskSpaceSource = std::function<absl::StatusOr<DiskSpace>()>;

struct RocksDbOptions {
  std::string directory;
  const Clock* clock = &Clock::System();  // outlives the store
  // For uncompressed blocks, and a third of it for single records (record_cache.h).
  size_t block_cache_bytes = size_t{256} << 20;
  // What the process has of the machine's memory: the caches make room for what else is in it
  // (memory_watch.h). None: they do not.
  std::function<uint64_t()> process_bytes;
  // What may wait in the commit queue; a commit that finds more is refused with OVERLOADED.
  size_t queue_batches_max = 16'384;
  size_t queue_bytes_max = size_t{64} << 20;
  // A group ends with the batch that passes this.
  size_t group_bytes_max = size_t{8} << 20;
  // While commits wait longer than this for the disk, on average, threads that have joined leave
  // them to the store's own.
  std::chrono::microseconds cooperative_wait_max{1000};
  // How late the commit beacon may be (commit_beacon.h).
  std::chrono::milliseconds beacon_behind_max{100};
  // Tables that are kept open, each with a descriptor.
  int open_files_max = 512;
  // Free space below which writes are refused with DISK_FULL (disk_guard.h). 0: never; nothing:
  // DefaultReserve of the file system.
  std::optional<uint64_t> disk_reserve_bytes = 0;
  uint64_t ballast_bytes = 0;  // ballast.h; 0: none
  // How often to look at the disk.
  std::chrono::milliseconds disk_look_interval{1000};

  // What tests replace; none: the machine's.
  std::shared_ptr<rocksdb::FileSystem> file_system;
  DiskSpaceSource disk_space;

  std::set<std::string, std::less<>> features{};  // as OpenOptions'
};

// Has every capability of the port but blocking reads. Its records' stamps are their positions. Not
// to be destroyed from a callback; the destructor completes what waits, callbacks included. After a
// failed write (STORE_UNAVAILABLE of Ready) it should rather be left to the end of the process:
// librocksdb, where it is built with assertions as Debian's is, may abort when it is closed then.
class RocksDbStore : public store::Store {
 public:
  // Makes the directory and the database if they are missing. STORE_UNAVAILABLE, naming the
  // directory: it cannot be used, or is in use, or has a form that this build does not know
  // (format.h); RECORD_CORRUPT: the database, its log included, is damaged; nothing is repaired or
  // dropped.
  static absl::StatusOr<std::unique_ptr<RocksDbStore>> Open(const RocksDbOptions& options);

  // Compacts everything now, and so drops what has expired. Takes as long as rewriting all data.
  virtual absl::Status CompactAll() = 0;
};

}  // namespace strata::engines::rocks
