#include "service/engines/rocksdb/ballast.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "schemas/base/error.h"

namespace strata::engines::rocks {
namespace {

constexpr uint64_t kStatBlockBytes = 512;

// 0, or the error. Zeros that are written would do as well, but for file systems that drop them.
int Allocate(int file, uint64_t bytes) {
  const auto size = static_cast<off_t>(bytes);
  if (const int error = posix_fallocate(file, 0, size); error != 0) return error;
  if (ftruncate(file, size) != 0) return errno;  // it was longer
  return fsync(file) == 0 ? 0 : errno;
}

}  // namespace

Ballast::Ballast(const std::string& directory, uint64_t bytes)
    : path_(std::filesystem::path(directory) / "ballast"), bytes_(bytes) {}

bool Ballast::IsWhole() const {
  struct stat info = {};
  if (stat(path_.c_str(), &info) != 0) return false;
  return static_cast<uint64_t>(info.st_size) == bytes_ &&
         static_cast<uint64_t>(info.st_blocks) * kStatBlockBytes >= bytes_;
}

absl::Status Ballast::Make() const {
  const int file = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);  // NOLINT
  const int error = file < 0 ? errno : Allocate(file, bytes_);
  if (file >= 0) close(file);
  if (error == 0) return absl::OkStatus();
  unlink(path_.c_str());
  return Error(ErrorReason::kStoreUnavailable, "The ballast " + path_ + " cannot be made: " +
                                                   std::generic_category().message(error) + ".");
}

bool Ballast::GiveUp() const { return unlink(path_.c_str()) == 0; }

}  // namespace strata::engines::rocks
