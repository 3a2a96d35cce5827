// The objects by which MongoDB Extended JSON v2 names values that JSON has no type for: the rules
// by which they are read and written, whether the JSON is text or a google.protobuf.Struct.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "schemas/document/bson_view.h"

namespace strata::document {

// Doubles hold every whole number below this in size; from here on a number that was a double on
// its way was perhaps rounded.
inline constexpr int64_t kExactInDoubleEnd = int64_t{1} << 53;

inline bool IsExactInDouble(int64_t number) {
  return number > -kExactInDoubleEnd && number < kExactInDoubleEnd;
}

// What a wrapper's name stands before, whichever encoding it was read from.
struct WrapperPart {
  enum class Kind { kString, kNumber, kOther };
  std::string_view name;
  Kind kind = Kind::kOther;
  std::string_view text;
  double number = 0;
};
struct WrapperArgument {
  bool is_object = false;
  WrapperPart scalar;     // unless is_object
  WrapperPart parts[2];   // the members of an object
  size_t part_count = 0;  // counts on beyond 2, though only two are kept

  const WrapperPart* Find(std::string_view name) const;
};

// Whether an object with this member must be a wrapper.
bool IsWrapperName(std::string_view name);

inline constexpr std::string_view kNotFiniteProblem = "is NaN or infinite";
inline constexpr std::string_view kNotFiniteAdvice =
    "store finite numbers only: leave the member out, or write null or a string";

// What errors say of an object that has this wrapper's name and stands for nothing, and what they
// advise. REQUIRES: IsWrapperName(name).
struct WrapperFault {
  explicit WrapperFault(std::string_view name);  // it is not exactly that wrapper

  std::string problem;
  std::string advice;
};

// The value that the wrapper {name: argument} stands for; nothing, and why, if it is not exactly
// that wrapper or its number is not finite. REQUIRES: IsWrapperName(name).
std::optional<Value> ReadWrapper(std::string_view name, const WrapperArgument& argument,
                                 std::optional<WrapperFault>& fault);

// The same of an object that JSON text has, read as BSON without looking at wrappers. JSON has one
// type of numbers, so 1.0 is 1 there. REQUIRES: `object` is well-formed; `name` is the first of its
// names that is a wrapper's.
std::optional<Value> ReadWrapperObject(std::string_view name, std::string_view object,
                                       std::optional<WrapperFault>& fault);

// A wrapper as it is written: {name: text}, {name: number}, or {name: {part: …, part: …}}.
struct WrapperSpelling {
  struct Part {
    std::string_view name;
    std::string text;
    std::optional<uint32_t> number;  // stands in place of the text
  };

  std::string_view name;
  bool is_object = false;
  Part parts[2];          // without is_object the first alone counts, and it has no name
  size_t part_count = 1;  // 1 or 2
};

// How the value is written where it is no plain JSON. Its name is empty for types that JSON has or
// that Strata does not store. Never reads past `value`, whose frame must be that of its type.
WrapperSpelling SpellWrapper(uint8_t type, std::string_view value);

}  // namespace strata::document
