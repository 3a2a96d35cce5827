// A directory of its own for one test.
#pragma once

#include <filesystem>
#include <string>

namespace strata::test_support {

// Made empty under the system's directory for temporary files (TMPDIR), removed with all it holds
// at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // The path of `name` inside; nothing is made.
  std::string Join(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace strata::test_support
