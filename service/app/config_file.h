// The file of --config: flags, one NAME = VALUE a line.
//
//   line  := [setting] [comment]
//   setting := NAME "=" VALUE           spaces around each do not count
//   VALUE := '"' text '"' | "'" text "'" | text without blanks, quotes and "#"
//   comment := "#" anything
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace strata::app {

struct Setting {
  std::string name;
  std::string value;  // without its quotes; never empty
  std::string where;  // "stratad.conf:3"
};

// The file's settings in their order. INVALID_FIELD, saying where: the file cannot be read, or a
// line has another form. What the names mean is the caller's.
absl::StatusOr<std::vector<Setting>> ReadConfigFile(const std::string& path);

}  // namespace strata::app
