// The directory that one process holds.
#pragma once

#include <rocksdb/file_system.h>

#include <string>

#include "absl/status/statusor.h"

namespace strata::engines::rocks {

// Makes the names in `directory` durable: files and directories that were made, renamed or deleted.
rocksdb::IOStatus SyncDirectory(rocksdb::FileSystem& files, const std::string& directory);

// Whether there is a database in `directory`. STORE_UNAVAILABLE.
absl::StatusOr<bool> HoldsDatabase(rocksdb::FileSystem& files, const std::string& directory);

// Holds a directory, against other processes and against this one, until it is destroyed. Move
// only.
class DataDirectory {
 public:
  // Makes the directory, open to its owner only, with its parents if they are missing, and these
  // names durable. A directory that is there keeps the mode that its operator gave it; if others
  // can read it, the log warns. STORE_UNAVAILABLE, naming the directory: it cannot be made, or it
  // is held already.
  static absl::StatusOr<DataDirectory> Take(const std::string& path, rocksdb::FileSystem& files);

  DataDirectory(DataDirectory&& other) noexcept;
  DataDirectory& operator=(DataDirectory&& other) noexcept;
  ~DataDirectory();

 private:
  explicit DataDirectory(int lock_file) : lock_file_(lock_file) {}

  int lock_file_ = -1;  // a descriptor with a lock on it
};

}  // namespace strata::engines::rocks
