#include "tests/rpc/documented_metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <re2/re2.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string_view>

#include "absl/strings/str_split.h"
#include "tests/rpc/test_server.h"
#include "tests/support/places.h"

namespace strata::rpc_test {
namespace {

// The keys in "collection, id"; in "of a version: version" those after the colon.
std::set<std::string> KeysOf(std::string_view text) {
  text.remove_prefix(std::min(text.rfind(':') + 1, text.size()));
  const std::string list(text);
  const std::set<std::string> keys = absl::StrSplit(list, absl::ByAnyChar(", "), absl::SkipEmpty());
  for (const std::string& key : keys) {
    EXPECT_TRUE(RE2::FullMatch(key, "[a-z_]+")) << "no key: " << key;
  }
  return keys;
}

// "... Metadata: KEY, KEY (what it is); WHEN: KEY, KEY; WHEN: KEY. ..."
DocumentedMetadata Read(const std::string& comment) {
  DocumentedMetadata documented;
  std::string plain = comment;
  RE2::GlobalReplace(&plain, R"(\([^)]*\))", "");
  std::string list;
  if (!RE2::PartialMatch(plain, R"(Metadata([:;][^.]*)\.)", &list)) return documented;
  const std::vector<std::string> groups = absl::StrSplit(list, ';');
  documented.always = KeysOf(groups[0]);
  for (size_t i = 1; i < groups.size(); ++i) documented.sometimes.merge(KeysOf(groups[i]));
  return documented;
}

std::map<std::string, DocumentedMetadata> ReadAll() {
  std::ifstream file(test_support::SourcePath("proto/strata/v1/error_reason.proto"));
  std::map<std::string, DocumentedMetadata> all;
  std::string comment;
  for (std::string line; std::getline(file, line);) {
    std::string found;
    if (RE2::FullMatch(line, R"(\s*//\s*(.*))", &found)) {
      comment += found + " ";
    } else {
      if (RE2::FullMatch(line, R"(\s*ERROR_REASON_(\w+) = \d+ \[)", &found)) {
        all[found] = Read(comment);
      }
      comment.clear();
    }
  }
  return all;
}

}  // namespace

std::set<std::string> DocumentedMetadata::all() const {
  std::set<std::string> keys = always;
  keys.insert(sometimes.begin(), sometimes.end());
  return keys;
}

const std::map<std::string, DocumentedMetadata>& AllDocumentedMetadata() {
  static const auto* const all = new std::map<std::string, DocumentedMetadata>(ReadAll());
  return *all;
}

std::set<std::string> KeysOfReason(const Details& details) {
  std::set<std::string> keys;
  for (const auto& [key, value] : details.metadata) keys.insert(key);
  // Of a part of a transaction: so much is said of every reason.
  if (keys.erase("index") != 0) {
    const auto documented = AllDocumentedMetadata().find(details.reason);
    const bool has_field =
        documented != AllDocumentedMetadata().end() && documented->second.all().count("field") != 0;
    if (!has_field) {
      EXPECT_EQ(keys.erase("field"), 1u) << details.reason;
    }
  }
  return keys;
}

void ExpectDocumentedMetadata(const grpc::Status& status) {
  const Details details = DetailsOf(status);
  if (details.reason.empty()) return;
  const auto documented = AllDocumentedMetadata().find(details.reason);
  ASSERT_NE(documented, AllDocumentedMetadata().end()) << details.reason;
  const std::set<std::string> sent = KeysOfReason(details);
  EXPECT_THAT(documented->second.all(), testing::IsSupersetOf(sent))
      << details.reason << ": " << status.error_message();
  EXPECT_THAT(sent, testing::IsSupersetOf(documented->second.always))
      << details.reason << ": " << status.error_message();
}

}  // namespace strata::rpc_test
