#include "service/engines/rocksdb/data_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "service/observability/log.h"

namespace strata::engines::rocks {
namespace {

constexpr char kLockName[] = "strata.lock";

absl::Status Unavailable(const std::string& path, const std::string& problem) {
  return Error(ErrorReason::kStoreUnavailable, "The data directory " + path + " " + problem + ".")
      .With("directory", path);
}

std::string LockPath(const std::string& path) { return std::filesystem::path(path) / kLockName; }

std::string ErrnoText(int error) { return std::generic_category().message(error); }

// The directory and all above it but the root, from below.
std::vector<std::string> Upwards(const std::string& path) {
  std::vector<std::string> upwards;
  std::error_code error;
  std::filesystem::path at = std::filesystem::absolute(path, error);
  if (!at.has_filename()) at = at.parent_path();  // "data/"
  for (; at.has_relative_path(); at = at.parent_path()) upwards.push_back(at.string());
  return upwards;
}

absl::StatusOr<bool> Exists(rocksdb::FileSystem& files, const std::string& path) {
  const rocksdb::IOStatus status = files.FileExists(path, rocksdb::IOOptions(), nullptr);
  if (status.ok()) return true;
  if (status.IsNotFound() || status.IsPathNotFound()) return false;
  return Unavailable(path, "cannot be read: " + status.ToString());
}

absl::Status MakeOnThisMachine(const std::string& path) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (error) return Unavailable(path, "cannot be made: " + error.message());
  if (mkdir(path.c_str(), S_IRWXU) == 0) return absl::OkStatus();
  if (errno != EEXIST) return Unavailable(path, "cannot be made: " + ErrnoText(errno));
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return Unavailable(path, "cannot be read");
  if (!S_ISDIR(info.st_mode)) return Unavailable(path, "is not a directory");
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    observability::Log(observability::LogLevel::kWarning,
                       "the data directory is open to other users of this machine",
                       {{"directory", path}});
  }
  return absl::OkStatus();
}

// The names by which the directory is reached are made durable here: all of them, as long as there
// is no database, since an earlier start may have died between making them and this. What this user
// did not make, and may not be let to open, is not insisted on.
absl::Status Make(const std::string& path, rocksdb::FileSystem& files) {
  const std::vector<std::string> upwards = Upwards(path);
  std::vector<bool> is_new;
  for (const std::string& name : upwards) {
    ASSIGN_OR_RETURN(const bool exists, Exists(files, name));
    is_new.push_back(!exists);
  }
  RETURN_IF_ERROR(MakeOnThisMachine(path));
  for (size_t i = upwards.size(); i-- > 0;) {  // for files that are not this machine's
    if (!is_new[i]) continue;
    const rocksdb::IOStatus made =
        files.CreateDirIfMissing(upwards[i], rocksdb::IOOptions(), nullptr);
    if (!made.ok()) return Unavailable(path, "cannot be made: " + made.ToString());
  }
  ASSIGN_OR_RETURN(const bool database, HoldsDatabase(files, path));
  if (database) return absl::OkStatus();
  for (size_t i = 0; i < upwards.size(); ++i) {
    const std::string parent = std::filesystem::path(upwards[i]).parent_path().string();
    const rocksdb::IOStatus synced = SyncDirectory(files, parent);
    if (!synced.ok() && is_new[i])
      return Unavailable(path, "cannot be made durable: " + synced.ToString());
  }
  return absl::OkStatus();
}

}  // namespace

rocksdb::IOStatus SyncDirectory(rocksdb::FileSystem& files, const std::string& directory) {
  const rocksdb::IOOptions options;
  std::unique_ptr<rocksdb::FSDirectory> opened;
  rocksdb::IOStatus status = files.NewDirectory(directory, options, &opened, nullptr);
  if (status.ok()) status = opened->Fsync(options, nullptr);
  return status;
}

absl::StatusOr<bool> HoldsDatabase(rocksdb::FileSystem& files, const std::string& directory) {
  return Exists(files, directory + "/CURRENT");
}

absl::StatusOr<DataDirectory> DataDirectory::Take(const std::string& path,
                                                  rocksdb::FileSystem& files) {
  if (path.empty()) return Unavailable("(none)", "is not named");
  if (absl::Status made = Make(path, files); !made.ok()) return made;
  // RocksDB has a lock of its own, but takes it only after it has moved the other's info log away.
  // flock, unlike fcntl, also keeps out a second opener in this process.
  const std::string lock_path = LockPath(path);
  const int file = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) return Unavailable(path, "cannot be written: " + ErrnoText(errno));
  DataDirectory directory(path, file);
  if (flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return Unavailable(path, "is in use by another process");
    return Unavailable(path, "cannot be locked: " + ErrnoText(errno));
  }
  return directory;
}

absl::Status DataDirectory::CheckHeld() const {
  struct stat held = {};
  struct stat found = {};
  if (fstat(lock_file_, &held) != 0) return Unavailable(path_, "cannot be read");
  if (stat(LockPath(path_).c_str(), &found) != 0) {
    if (errno == ENOENT) return Unavailable(path_, "was deleted or moved under the server");
    return Unavailable(path_, "cannot be read: " + ErrnoText(errno));
  }
  const bool same = held.st_dev == found.st_dev && held.st_ino == found.st_ino;
  return same ? absl::OkStatus() : Unavailable(path_, "was replaced under the server");
}

DataDirectory::DataDirectory(DataDirectory&& other) noexcept
    : path_(std::move(other.path_)), lock_file_(std::exchange(other.lock_file_, -1)) {}

DataDirectory& DataDirectory::operator=(DataDirectory&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(lock_file_, other.lock_file_);
  return *this;
}

DataDirectory::~DataDirectory() {
  // The file stays: removing it would let a third process lock a new one while a second holds this.
  if (lock_file_ >= 0) close(lock_file_);
}

}  // namespace strata::engines::rocks
