// The directory that one process holds.
#pragma once

#include <rocksdb/file_system.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
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

  // OK while the directory's name leads to the directory that is held. STORE_UNAVAILABLE, naming
  // it: it was deleted, moved or replaced, and what is written now is lost or somewhere else.
  absl::Status CheckHeld() const;

  DataDirectory(DataDirectory&& other) noexcept;
  DataDirectory& operator=(DataDirectory&& other) noexcept;
  ~DataDirectory();

 private:
  DataDirectory(std::string path, int lock_file) : path_(std::move(path)), lock_file_(lock_file) {}

  std::string path_;
  int lock_file_ = -1;  // a descriptor with a lock on it
};

}  // namespace strata::engines::rocks
