// rpc converts types, schemas judge values, once: no file of service/rpc calls a function that
// judges a value, except where the table says why.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "tests/form/source_tree.h"

namespace strata::form {
namespace {

// A file of service/rpc, and a function of base/names.h, base/field_checks.h or the domain.
using Call = std::pair<std::string, std::string>;

// CheckCount is not among them: a list is counted before it is converted, as what is made of it may
// take many times its bytes (CheckLength).
const std::regex kJudges(
    R"(\b((?:\w+::)*(?:Validate[A-Z]?\w*|Check(?:Range|Ranges|Least|Bytes|Text)))\()");

// Each with its reason.
const std::map<Call, std::string_view> kExceptions = {
    {{"page.h", "CheckRange"}, "pages are of the wire: the domain has cursors"},
    {{"convert.cc", "CheckRange"}, "max_attempts has a default and a limit on the wire only"},
    {{"queue_messages.cc", "CheckLeast"}, "0 stands for unset in the domain, so a 0 is refused"},
    {{"queue_messages.cc", "CheckRange"}, "0 stands for unset in the domain, so a 0 is refused"},
    {{"queue_messages.cc", "queue::CheckRanges"}, "of settings that update_mask does not name"},
    {{"lease_messages.cc", "ValidateName"}, "a fence is a plan, which refuses only as it commits"},
    {{"handlers/feed/selection.cc", "ValidateName"}, "the domain has them sorted, each once"},
    {{"handlers/document/audit.cc", "ValidateRequestId"}, "only such an id gets the caller's mark"},
    {{"verify_place.cc", "ValidateName"}, "of the server's own token, which is whole or refused"},
};

std::set<Call> CallsOfJudges() {
  constexpr std::string_view kTop = "service/rpc/";
  std::set<Call> calls;
  for (const SourceFile& file : Sources()) {
    if (!file.path.starts_with(kTop)) continue;
    for (const std::string& line : file.lines) {
      for (std::sregex_iterator it(line.begin(), line.end(), kJudges), end; it != end; ++it) {
        calls.emplace(file.path.substr(kTop.size()), (*it)[1].str());
      }
    }
  }
  return calls;
}

TEST(Judging, IsDoneBySchemasAlone) {
  const std::set<Call> calls = CallsOfJudges();
  for (const Call& call : calls) {
    EXPECT_TRUE(kExceptions.contains(call))
        << "service/rpc/" << call.first << " calls " << call.second;
  }
  for (const auto& [call, reason] : kExceptions) {
    EXPECT_TRUE(calls.contains(call)) << call.first << " no longer calls " << call.second;
  }
}

TEST(Judging, IsSeen) {
  const std::string calls[] = {"RETURN_IF_ERROR(ValidateName(\"queue\", name));",
                               "return queue::Validate(name, settings);",
                               "if (!versioning::ValidateChange(change).ok()) {",
                               "return CheckRange(\"count\", count, 1, 100);"};
  for (const std::string& call : calls) EXPECT_TRUE(std::regex_search(call, kJudges)) << call;
  EXPECT_FALSE(std::regex_search(std::string("CheckLength(\"ids\", ids, 100)"), kJudges));
}

}  // namespace
}  // namespace strata::form
