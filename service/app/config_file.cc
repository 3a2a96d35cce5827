#include "service/app/config_file.h"

#include <fstream>
#include <string_view>

#include "absl/strings/ascii.h"
#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"

namespace strata::app {
namespace {

Error FileError(const std::string& where, const std::string& problem) {
  return Error(ErrorReason::kInvalidField, where + ": " + problem).With("field", "config");
}

std::string_view Trimmed(std::string_view text) {
  return ToStd(absl::StripAsciiWhitespace(ToAbsl(text)));
}

// What stands after a value: nothing, or a comment.
bool IsRest(std::string_view text) {
  text = Trimmed(text);
  return text.empty() || text.front() == '#';
}

// The value at the beginning of `text`; empty if there is none, or something else after it.
std::string_view TakeValue(std::string_view text) {
  text = Trimmed(text);
  if (text.empty()) return {};
  if (text.front() == '"' || text.front() == '\'') {
    const size_t end = text.find(text.front(), 1);
    if (end == std::string_view::npos || !IsRest(text.substr(end + 1))) return {};
    return text.substr(1, end - 1);
  }
  const size_t end = std::min(text.find_first_of(" \t#\"'"), text.size());
  return IsRest(text.substr(end)) ? text.substr(0, end) : std::string_view();
}

absl::StatusOr<Setting> ReadSetting(std::string_view line, const std::string& where) {
  if (line.front() == '[') {
    return FileError(where, "sections are not known here; every flag stands by itself");
  }
  const size_t equals = line.find('=');
  if (equals == std::string_view::npos) return FileError(where, "not NAME = VALUE");
  const std::string name(Trimmed(line.substr(0, equals)));
  const std::string_view value = TakeValue(line.substr(equals + 1));
  if (value.empty()) {
    return FileError(where, name + ": has to be one value, in quotes if it has blanks or #");
  }
  return Setting{name, std::string(value), where};
}

}  // namespace

absl::StatusOr<std::vector<Setting>> ReadConfigFile(const std::string& path) {
  std::ifstream file(path);
  std::vector<Setting> settings;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (IsRest(line)) continue;
    ASSIGN_OR_RETURN(Setting setting,
                     ReadSetting(Trimmed(line), path + ":" + std::to_string(number)));
    settings.push_back(std::move(setting));
  }
  // A folder opens, and fails when it is read.
  if (!file.eof()) return FileError(path, "cannot be read as a configuration file").ToStatus();
  return settings;
}

}  // namespace strata::app
