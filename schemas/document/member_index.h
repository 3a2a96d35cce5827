// Finds the members of one object by name.
#pragma once

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

#include "schemas/document/bson_view.h"

namespace strata::document {

inline constexpr size_t kNoMember = static_cast<size_t>(-1);

// All members of a document, in order.
inline std::vector<Member> ReadMembers(std::string_view document) {
  std::vector<Member> members;
  Member member;
  for (MemberReader reader(document); reader.Next(member);) members.push_back(member);
  return members;
}

// Sorted rather than hashed, so that no choice of names makes it slow. Refers to `members`.
class MemberIndex {
 public:
  explicit MemberIndex(const std::vector<Member>& members) : members_(members) {
    if (members.size() <= kScanMax) return;
    order_.resize(members.size());
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::sort(order_.begin(), order_.end(),
              [&](size_t a, size_t b) { return members[a].name < members[b].name; });
  }

  // The member's position, or kNoMember. Fast if it is `expected`.
  size_t Find(std::string_view name, size_t expected) const {
    if (expected < members_.size() && members_[expected].name == name) return expected;
    if (order_.empty()) {
      for (size_t i = 0; i < members_.size(); ++i) {
        if (members_[i].name == name) return i;
      }
      return kNoMember;
    }
    const auto found = std::lower_bound(
        order_.begin(), order_.end(), name,
        [&](size_t i, std::string_view wanted) { return members_[i].name < wanted; });
    return found != order_.end() && members_[*found].name == name ? *found : kNoMember;
  }

 private:
  static constexpr size_t kScanMax = 8;

  const std::vector<Member>& members_;
  std::vector<size_t> order_;  // empty for few members
};

}  // namespace strata::document
