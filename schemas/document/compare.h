// MongoDB's order of BSON values.
#pragma once

#include <cstdint>
#include <string_view>

namespace strata::document {

// The types that are compared by value with each other, in the order of the types: all numbers are
// one, every other type is one of its own.
enum class TypeBracket {
  kMinKey,
  kMissing,
  kNull,
  kNumber,
  kString,
  kObject,
  kArray,
  kBinary,
  kObjectId,
  kBool,
  kDate,
  kTimestamp,
  kRegex,
  kMaxKey,
};

// A type byte that no value has stands for a missing member.
TypeBracket BracketOf(uint8_t type);

// Negative, zero or positive. Values of two brackets compare as the brackets do. Numbers compare by
// their exact value, whatever their types (NaN equals itself and comes before all others, -0.0
// equals 0); strings by their bytes; objects member by member in the order they stand, each by the
// bracket of its value, then its name, then its value, and what ends first is less; arrays the
// same, without names; binaries by length, then subtype, then bytes; regexes by pattern, then
// options.
int Compare(uint8_t type_a, std::string_view a, uint8_t type_b, std::string_view b);

}  // namespace strata::document
