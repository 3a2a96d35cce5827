// A file that only takes up room, to be given up when a database has to be opened and there is
// little: opening writes what the log holds into tables before it lets go of the log.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace strata::engines::rocks {

// `ballast` in a data directory, which the caller holds. Not thread-safe.
class Ballast {
 public:
  // 0 bytes: there is to be none.
  Ballast(const std::string& directory, uint64_t bytes);

  uint64_t bytes() const { return bytes_; }
  // Whether it is there, with all its bytes.
  bool IsWhole() const;
  // Allocates what is missing of it. STORE_UNAVAILABLE, and then there is none.
  absl::Status Make() const;
  // Removes it. True if there was one.
  bool GiveUp() const;

 private:
  const std::string path_;
  const uint64_t bytes_;
};

}  // namespace strata::engines::rocks
