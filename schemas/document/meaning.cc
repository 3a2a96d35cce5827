// When two BSON values say the same although their bytes differ.
#include "schemas/document/meaning.h"

#include <algorithm>
#include <string>
#include <vector>

#include "schemas/document/member_index.h"

namespace strata::document {
namespace {

bool ByName(const Member& a, const Member& b) { return a.name < b.name; }

bool SameMember(const Member& a, const Member& b) {
  return a.name == b.name && SameMeaning(a.type, a.value, b.type, b.value);
}

// The members that a reader has not yet given, sorted.
std::vector<Member> SortedRest(const Member& first, MemberReader reader) {
  std::vector<Member> members = {first};
  Member member;
  while (reader.Next(member)) members.push_back(member);
  std::sort(members.begin(), members.end(), ByName);
  return members;
}

// Walks both side by side for as long as the names agree, and sorts only what remains.
bool SameMembers(std::string_view a, std::string_view b) {
  MemberReader reader_a(a);
  MemberReader reader_b(b);
  Member member_a;
  Member member_b;
  while (reader_a.Next(member_a)) {
    if (!reader_b.Next(member_b)) return false;
    if (member_a.name != member_b.name) {
      const std::vector<Member> rest_a = SortedRest(member_a, reader_a);
      const std::vector<Member> rest_b = SortedRest(member_b, reader_b);
      return std::equal(rest_a.begin(), rest_a.end(), rest_b.begin(), rest_b.end(), SameMember);
    }
    if (!SameMeaning(member_a.type, member_a.value, member_b.type, member_b.value)) return false;
  }
  return !reader_b.Next(member_b);
}

void AppendSorted(uint8_t type, std::string_view container, std::string& out) {
  std::vector<Member> members = ReadMembers(container);
  if (type == kBsonObject) std::sort(members.begin(), members.end(), ByName);
  const size_t start = BeginDocument(out);
  for (const Member& member : members) {
    if (IsContainer(member.type)) {
      AppendMemberHead(member.type, member.name, out);
      AppendSorted(member.type, member.value, out);
    } else {
      AppendMember(member, out);
    }
  }
  EndDocument(start, out);
}

}  // namespace

bool SameMeaning(uint8_t type_a, std::string_view a, uint8_t type_b, std::string_view b) {
  if (type_a == type_b) {
    if (a == b) return true;
    return IsContainer(type_a) && SameMembers(a, b);
  }
  return IsInteger(type_a) && IsInteger(type_b) && LoadInteger(type_a, a) == LoadInteger(type_b, b);
}

Value WithSortedMembers(uint8_t type, std::string_view value) {
  if (!IsContainer(type)) return {type, std::string(value)};
  Value sorted{type, {}};
  AppendSorted(type, value, sorted.bytes);
  return sorted;
}

}  // namespace strata::document
