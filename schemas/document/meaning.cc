// When two BSON values say the same although their bytes differ.
#include "schemas/document/meaning.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "schemas/document/bson_view.h"

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

void AppendComparableNumber(double number, std::string& out) {
  // Doubles from here on (2^63) have no int64 to be equal to.
  const bool whole = number == std::floor(number) && number >= -9223372036854775808.0 &&
                     number < 9223372036854775808.0;
  if (whole) {
    out.push_back(static_cast<char>(kBsonInt64));
    AppendNumber(static_cast<int64_t>(number), out);
  } else {
    out.push_back(static_cast<char>(kBsonDouble));
    AppendNumber(number, out);
  }
}

}  // namespace

bool SameMeaning(uint8_t type_a, std::string_view a, uint8_t type_b, std::string_view b) {
  if (type_a == type_b) {
    if (a == b) return true;
    return IsContainer(type_a) && SameMembers(a, b);
  }
  return IsInteger(type_a) && IsInteger(type_b) && LoadInteger(type_a, a) == LoadInteger(type_b, b);
}

void AppendComparable(uint8_t type, std::string_view value, std::string& out) {
  if (IsInteger(type)) {
    out.push_back(static_cast<char>(kBsonInt64));
    AppendNumber(LoadInteger(type, value), out);
    return;
  }
  if (type == kBsonDouble) return AppendComparableNumber(LoadNumber<double>(value), out);
  out.push_back(static_cast<char>(type));
  if (!IsContainer(type)) {
    out += value;
    return;
  }
  std::vector<Member> members;
  Member member;
  for (MemberReader reader(value); reader.Next(member);) members.push_back(member);
  if (type == kBsonObject) std::sort(members.begin(), members.end(), ByName);
  for (const Member& each : members) {
    out += each.name;
    out.push_back('\0');
    AppendComparable(each.type, each.value, out);
  }
  // An empty name and a type byte that no value has: this cannot be taken for another member.
  out.push_back('\0');
  out.push_back('\0');
}

}  // namespace strata::document
