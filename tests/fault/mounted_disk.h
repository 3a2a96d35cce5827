// A small file system of its own, to be filled and to fail.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tests/support/temporary_directory.h"

namespace strata::fault {

// Only this process and those that it starts later see it, and it goes with the last of them,
// however they end.
class MountedDisk {
 public:
  enum class Kind {
    kTmpfs,
    kExt4,  // in a file, over a loop device
  };

  // Null, after a line that says why, where mounting is not allowed. REQUIRES: the calling thread
  // starts all processes that are to see it.
  static std::unique_ptr<MountedDisk> Make(Kind kind, uint64_t mib);
  ~MountedDisk();
  MountedDisk(const MountedDisk&) = delete;
  MountedDisk& operator=(const MountedDisk&) = delete;

  // The path of `name` on it.
  std::string Join(const std::string& name) const { return root_ + "/" + name; }

  // What is free for who has no privileges.
  uint64_t FreeBytes() const;
  // Adds zeros to a file, which really take their room, as many as there is room for. How many.
  uint64_t GrowForeignFile(const std::string& name, uint64_t bytes) const;

  // From now on all its calls fail with EIO, until MountAgain. REQUIRES: kExt4.
  void ShutDown() const;
  // As after a restart of the machine. REQUIRES: nobody uses it.
  bool MountAgain();

 private:
  MountedDisk(Kind kind, uint64_t mib);
  bool Mount();

  const Kind kind_;
  const uint64_t mib_;
  test_support::TemporaryDirectory directory_;
  const std::string root_;
  const std::string image_;
  bool mounted_ = false;
};

}  // namespace strata::fault
