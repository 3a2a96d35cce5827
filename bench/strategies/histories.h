// Real histories: the documents that everything is measured with.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "schemas/document/content.h"
#include "schemas/versioning/version.h"

namespace strata::bench {

// The collection that they are loaded into.
inline constexpr char kCollection[] = "histories";

struct RealVersion {
  std::string id;
  versioning::ChangeInfo change;
  bool deleted = false;
  document::Content content;  // empty for a deletion
};

struct Histories {
  std::string file;  // its name
  int64_t json_bytes = 0;
  int64_t bson_bytes = 0;  // of all contents
  int64_t deletions = 0;
  std::vector<RealVersion> versions;  // in the order in which they were made
  // By id, each document's versions, as indexes of `versions`.
  std::map<std::string, std::vector<size_t>> documents;

  // The longest history among the documents of at most median size, without its deletions: what is
  // repeated to get more versions than any real history has.
  std::vector<document::Content> repeated;
  std::string repeated_id;

  const RealVersion& VersionOf(const std::string& id, int64_t version) const {
    return versions[documents.at(id)[static_cast<size_t>(version - 1)]];
  }
};

// Reads a file of versions (tests/data/README.md), plain or compressed; ends the program if it is
// none.
Histories ReadHistories(const std::string& path);

// Prints why and ends the program: a figure of something that went wrong is worth nothing.
[[noreturn]] void Fail(const std::string& why);

}  // namespace strata::bench
