#include "schemas/document/filter_operators.h"

#include <algorithm>
#include <iterator>

namespace strata::document {
namespace {

constexpr std::string_view kMemberOperators[] = {
    "$eq",  "$ne",     "$gt",   "$gte",  "$lt",    "$lte",     "$in",        "$nin",
    "$all", "$exists", "$type", "$size", "$regex", "$options", "$elemMatch", "$not"};

bool IsReference(std::string_view object) {
  Member member;
  return FindMember(object, "$ref", member) && FindMember(object, "$id", member);
}

}  // namespace

bool IsListOperator(std::string_view name) {
  return name == "$and" || name == "$or" || name == "$nor";
}

bool IsMemberOperator(std::string_view name) {
  return std::find(std::begin(kMemberOperators), std::end(kMemberOperators), name) !=
         std::end(kMemberOperators);
}

bool IsReferenceName(std::string_view name) {
  return name == "$ref" || name == "$id" || name == "$db";
}

bool HoldsOperators(const Member& member) {
  return member.type == kBsonObject && IsOperatorName(FirstName(member.value)) &&
         !IsReference(member.value);
}

bool FindMember(std::string_view object, std::string_view name, Member& member) {
  for (MemberReader reader(object); reader.Next(member);) {
    if (member.name == name) return true;
  }
  return false;
}

std::string_view FirstName(std::string_view object) {
  Member member;
  return MemberReader(object).Next(member) ? member.name : std::string_view();
}

}  // namespace strata::document
