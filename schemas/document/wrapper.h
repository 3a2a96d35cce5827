// The objects by which MongoDB Extended JSON v2 names values that JSON has no type for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "schemas/document/content.h"

namespace strata::document {

// What stands behind a wrapper's name, whichever encoding it was read from.
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

// The value that the wrapper {name: argument} stands for; nothing if it is not exactly that
// wrapper. REQUIRES: IsWrapperName(name).
std::optional<Value> ReadWrapper(std::string_view name, const WrapperArgument& argument);

// How the wrapper is written, for a person: `{"$oid": "24 hex digits"}`.
std::string_view WrapperForm(std::string_view name);

// Whether a BSON object that has a wrapper's name is exactly that wrapper.
// REQUIRES: `object` is well-formed.
bool IsExactWrapper(std::string_view object);

}  // namespace strata::document
