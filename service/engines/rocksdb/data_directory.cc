#include "service/engines/rocksdb/data_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "schemas/base/error.h"
#include "service/observability/log.h"

namespace strata::engines::rocks {
namespace {

constexpr char kLockName[] = "strata.lock";

absl::Status Unavailable(const std::string& path, const std::string& problem) {
  return Error(ErrorReason::kStoreUnavailable, "The data directory " + path + " " + problem + ".")
      .With("directory", path);
}

std::string ErrnoText(int error) { return std::generic_category().message(error); }

absl::Status Make(const std::string& path) {
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

}  // namespace

absl::StatusOr<DataDirectory> DataDirectory::Take(const std::string& path) {
  if (path.empty()) return Unavailable("(none)", "is not named");
  if (absl::Status made = Make(path); !made.ok()) return made;
  // RocksDB has a lock of its own, but takes it only after it has moved the other's info log away.
  // flock, unlike fcntl, also keeps out a second opener in this process.
  const std::string lock_path = std::filesystem::path(path) / kLockName;
  const int file = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) return Unavailable(path, "cannot be written: " + ErrnoText(errno));
  DataDirectory directory(file);
  if (flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return Unavailable(path, "is in use by another process");
    return Unavailable(path, "cannot be locked: " + ErrnoText(errno));
  }
  return directory;
}

DataDirectory::DataDirectory(DataDirectory&& other) noexcept
    : lock_file_(std::exchange(other.lock_file_, -1)) {}

DataDirectory& DataDirectory::operator=(DataDirectory&& other) noexcept {
  std::swap(lock_file_, other.lock_file_);
  return *this;
}

DataDirectory::~DataDirectory() {
  // The file stays: removing it would let a third process lock a new one while a second holds this.
  if (lock_file_ >= 0) close(lock_file_);
}

}  // namespace strata::engines::rocks
