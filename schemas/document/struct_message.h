// The messages Value and Struct of google.protobuf, one at a time: what kind of value one is, and
// its entries. What stands inside stays bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "schemas/document/bson_view.h"
#include "schemas/document/struct_wire.h"

namespace strata::document {

// A Value message, its kind told apart.
struct ParsedValue {
  uint64_t tag = 0;  // 0: no kind is set
  uint64_t bits = 0;
  std::string_view bytes;

  double number() const { return LoadNumber<double>(reinterpret_cast<const char*>(&bits)); }
};

// The form that nearly all values have: one field, its length in one byte.
inline bool ParseShortValue(std::string_view wire, ParsedValue& value) {
  if (wire.size() < 2 || wire.size() >= 0x80) return false;
  value.tag = static_cast<uint8_t>(wire[0]);
  const auto second = static_cast<uint8_t>(wire[1]);
  switch (value.tag) {
    case kNumberTag:
      if (wire.size() != 9) return false;
      value.bits = LoadNumber<uint64_t>(wire.data() + 1);
      return true;
    case kNullTag:
    case kBoolTag:
      value.bits = second;
      return wire.size() == 2 && second < 0x80;
    case kTextTag:
    case kStructTag:
    case kListTag:
      value.bytes = wire.substr(2);
      return value.bytes.size() == second;
    default:
      return false;
  }
}
bool ParseAnyValue(std::string_view wire, ParsedValue& value);

// False if the bytes are no Value, or one that protobuf would have to merge.
inline bool ParseValue(std::string_view wire, ParsedValue& value) {
  return ParseShortValue(wire, value) || ParseAnyValue(wire, value);
}

// What is wrong with a Struct's own bytes.
enum class StructFault { kNone, kMalformed, kNameNotUtf8, kNameWithZero };

struct StructEntry {
  std::string_view name;
  std::string_view value;  // a Value message
  uint64_t prefix = 0;     // the first bytes of the name as a number, after them zeros
};

// The entries of all Structs that a walk has open, outermost first.
class StructEntries {
 public:
  size_t size() const { return entries_.size(); }
  const StructEntry& operator[](size_t i) const { return entries_[i]; }
  // Takes all off from `size` on.
  void Truncate(size_t size) { entries_.resize(size); }

  // Adds a Struct's entries, sorted by the bytes of their names; of equal names the last one
  // counts, as protobuf has it. `wrapper_name` becomes the first name that only a wrapper may have.
  StructFault Add(std::string_view struct_wire, std::string_view& wrapper_name);

 private:
  void Sort(ptrdiff_t begin);
  void DropOverwritten(size_t begin);

  std::vector<StructEntry> entries_;
};

}  // namespace strata::document
