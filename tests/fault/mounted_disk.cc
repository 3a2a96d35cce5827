#include "tests/fault/mounted_disk.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <vector>

#include "tests/fault/child_process.h"

namespace strata::fault {
namespace {

// EXT4_IOC_SHUTDOWN, and its flag for "without writing the journal".
constexpr unsigned long kShutDown = _IOR('X', 125, uint32_t);
constexpr uint32_t kNoLogFlush = 2;

bool Refused(const char* what) {
  std::cout << "not tested here: " << what << ": " << std::strerror(errno) << std::endl;
  return false;
}

// A mount namespace of its own, in which mounts stay; once for the process.
bool EnterNamespace() {
  static const bool entered =
      unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  return entered;
}

bool Run(const std::vector<std::string>& command, const std::string& error_file) {
  const int status = RunToEnd(command, error_file).status;
  if (status == 0) return true;
  std::cout << "not tested here: " << command[0] << " ends with " << status << ": "
            << ReadFile(error_file) << std::endl;
  return false;
}

}  // namespace

std::unique_ptr<MountedDisk> MountedDisk::Make(Kind kind, uint64_t mib) {
  std::unique_ptr<MountedDisk> disk(new MountedDisk(kind, mib));
  if (!EnterNamespace()) {
    Refused("a mount namespace");
    return nullptr;
  }
  if (kind == Kind::kExt4) {
    const int image = open(disk->image_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);  // NOLINT
    const bool sized = image >= 0 && ftruncate(image, static_cast<off_t>(mib << 20)) == 0;
    if (image >= 0) close(image);
    if (!sized) std::abort();
    if (!Run({"/sbin/mkfs.ext4", "-q", disk->image_}, disk->directory_.Join("errors"))) {
      return nullptr;
    }
  }
  if (!disk->Mount()) return nullptr;
  return disk;
}

MountedDisk::MountedDisk(Kind kind, uint64_t mib)
    : kind_(kind), mib_(mib), root_(directory_.Join("disk")), image_(directory_.Join("image")) {
  std::filesystem::create_directory(root_);
}

MountedDisk::~MountedDisk() {
  if (mounted_) umount2(root_.c_str(), MNT_DETACH);
}

bool MountedDisk::Mount() {
  if (kind_ == Kind::kTmpfs) {
    const std::string size = "size=" + std::to_string(mib_) + "m";
    mounted_ = mount("none", root_.c_str(), "tmpfs", 0, size.c_str()) == 0 || Refused("tmpfs");
  } else {
    // Its loop device is let go with the mount.
    mounted_ = Run({"/bin/mount", "-o", "loop", image_, root_}, directory_.Join("errors"));
  }
  return mounted_;
}

uint64_t MountedDisk::FreeBytes() const {
  struct statvfs info = {};
  if (statvfs(root_.c_str(), &info) != 0) std::abort();
  return uint64_t{info.f_bavail} * info.f_frsize;
}

uint64_t MountedDisk::GrowForeignFile(const std::string& name, uint64_t bytes) const {
  const int file =
      open(Join(name).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);  // NOLINT
  if (file < 0) return 0;
  const std::string zeros(size_t{64} << 10, '\0');
  uint64_t made = 0;
  while (made < bytes) {
    const ssize_t written = write(file, zeros.data(), zeros.size());
    if (written <= 0) break;
    made += static_cast<uint64_t>(written);
  }
  fsync(file);
  close(file);
  return made;
}

void MountedDisk::ShutDown() const {
  const int root = open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);  // NOLINT
  uint32_t flags = kNoLogFlush;
  if (root < 0 || ioctl(root, kShutDown, &flags) != 0) std::abort();
  close(root);
}

bool MountedDisk::MountAgain() {
  if (umount2(root_.c_str(), 0) != 0) return Refused("unmounting");
  return Mount();
}

}  // namespace strata::fault
