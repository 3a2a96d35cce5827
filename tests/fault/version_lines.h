// Files of versions, read without the product's own code, so that they can be held against each
// other.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace strata::fault {

// One line. Two are equal if all is, the content with its members in order.
struct VersionLine {
  std::string time;
  std::string actor;
  std::string reason;
  bool deleted = false;
  std::string content;  // BSON, as libbson reads the JSON

  bool operator==(const VersionLine&) const = default;
};

// The versions of each document, by id, in the order of the file.
using Histories = std::map<std::string, std::vector<VersionLine>>;

// The text of a file, plain or compressed with zstd. Aborts if it is damaged.
std::string ReadText(const std::string& path);

// Reads such a file of versions. Aborts if it is none.
Histories ReadVersionLines(const std::string& path);

size_t CountVersions(const Histories& histories);

// In words where the two first differ; empty if they do not.
std::string FirstDifference(const Histories& expected, const Histories& actual);

// The int64 member of a JSON object; aborts if it has none.
int64_t NumberIn(const std::string& json, const std::string& name);

}  // namespace strata::fault
