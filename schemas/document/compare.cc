// MongoDB's order of BSON values.
#include "schemas/document/compare.h"

#include <algorithm>
#include <cstring>

#include "schemas/document/bson_view.h"
#include "schemas/document/compare_numbers.h"

namespace strata::document {
namespace {

template <typename T>
int Order(T a, T b) {
  return a < b ? -1 : (b < a ? 1 : 0);
}

// As unsigned bytes; what ends first is less.
int CompareBytes(std::string_view a, std::string_view b) { return a.compare(b); }

int CompareMembers(std::string_view a, std::string_view b, bool names) {
  MemberReader reader_a(a);
  MemberReader reader_b(b);
  Member member_a;
  Member member_b;
  while (true) {
    const bool more_a = reader_a.Next(member_a);
    const bool more_b = reader_b.Next(member_b);
    if (!more_a || !more_b) return Order(more_a, more_b);
    const TypeBracket bracket_a = BracketOf(member_a.type);
    const TypeBracket bracket_b = BracketOf(member_b.type);
    if (bracket_a != bracket_b) return Order(bracket_a, bracket_b);
    if (names) {
      const int order = CompareBytes(member_a.name, member_b.name);
      if (order != 0) return order;
    }
    const int order = Compare(member_a.type, member_a.value, member_b.type, member_b.value);
    if (order != 0) return order;
  }
}

// Length, subtype, bytes: the value begins with the length, and the subtype stands before the
// bytes.
int CompareBinaries(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return Order(a.size(), b.size());
  return CompareBytes(a.substr(4), b.substr(4));
}

int CompareRegexes(std::string_view a, std::string_view b) {
  const size_t pattern_a = a.find('\0');
  const size_t pattern_b = b.find('\0');
  const int order = CompareBytes(a.substr(0, pattern_a), b.substr(0, pattern_b));
  return order != 0 ? order : CompareBytes(a.substr(pattern_a), b.substr(pattern_b));
}

}  // namespace

TypeBracket BracketOf(uint8_t type) {
  switch (type) {
    case kBsonMinKey:
      return TypeBracket::kMinKey;
    case kBsonNull:
      return TypeBracket::kNull;
    case kBsonDouble:
    case kBsonInt32:
    case kBsonInt64:
    case kBsonDecimal:
      return TypeBracket::kNumber;
    case kBsonString:
      return TypeBracket::kString;
    case kBsonObject:
      return TypeBracket::kObject;
    case kBsonArray:
      return TypeBracket::kArray;
    case kBsonBinary:
      return TypeBracket::kBinary;
    case kBsonObjectId:
      return TypeBracket::kObjectId;
    case kBsonBool:
      return TypeBracket::kBool;
    case kBsonDate:
      return TypeBracket::kDate;
    case kBsonTimestamp:
      return TypeBracket::kTimestamp;
    case kBsonRegex:
      return TypeBracket::kRegex;
    case kBsonMaxKey:
      return TypeBracket::kMaxKey;
    default:
      return TypeBracket::kMissing;
  }
}

int Compare(uint8_t type_a, std::string_view a, uint8_t type_b, std::string_view b) {
  const TypeBracket bracket = BracketOf(type_a);
  if (type_a != type_b) {
    const TypeBracket other = BracketOf(type_b);
    if (bracket != other) return Order(bracket, other);
  }
  switch (bracket) {
    case TypeBracket::kNumber:
      return CompareNumbers(type_a, a, type_b, b);
    case TypeBracket::kString:
      return CompareBytes(StringText(a), StringText(b));
    case TypeBracket::kObject:
    case TypeBracket::kArray:
      return CompareMembers(a, b, /*names=*/bracket == TypeBracket::kObject);
    case TypeBracket::kBinary:
      return CompareBinaries(a, b);
    case TypeBracket::kObjectId:
    case TypeBracket::kBool:
      return CompareBytes(a, b);
    case TypeBracket::kDate:
      return Order(LoadNumber<int64_t>(a), LoadNumber<int64_t>(b));
    case TypeBracket::kTimestamp:
      return Order(LoadNumber<uint64_t>(a), LoadNumber<uint64_t>(b));
    case TypeBracket::kRegex:
      return CompareRegexes(a, b);
    default:
      return 0;
  }
}

}  // namespace strata::document
