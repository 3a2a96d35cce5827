// Writes whose number has to grow, for tests: {"n": …} with the number as "version".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tests/documents/world.h"

namespace strata::versioning::testing {

inline WriteRequest NewerRequest(int64_t value, std::string_view path = "/version",
                                 std::string_view id = "a", std::string_view request_id = "") {
  WriteRequest request = Request(id, request_id);
  request.precondition.newer = *Newer::Make(path, value);
  return request;
}

// A member at the top of the content, if it is there and an integer.
inline std::optional<int64_t> IntegerIn(const document::Content& content, std::string_view name) {
  document::Member member;
  for (document::MemberReader reader(content.bytes()); reader.Next(member);) {
    if (member.name != name || !document::IsInteger(member.type)) continue;
    return document::LoadInteger(member.type, member.value);
  }
  return std::nullopt;
}

// What a version says of its number: in its content, or kept by a deletion.
inline std::optional<int64_t> NumberOf(const StoredVersion& version) {
  if (!version.deleted()) return IntegerIn(*version.content, "version");
  const auto& labels = version.header.change.labels;
  const auto kept = labels.find("newer:/version");
  if (kept == labels.end()) return std::nullopt;
  return std::stoll(kept->second);
}

}  // namespace strata::versioning::testing
