// The wire form of google.protobuf's Struct, Value and ListValue, as far as Strata reads and writes
// it:
//
//   Struct    = { 0x0A length Entry }          map<string, Value> fields = 1
//   Entry     = 0x0A length name  0x12 length Value
//   Value     = 0x08 0x00                      null_value = 1
//             | 0x11 8 bytes                   number_value = 2, little-endian double
//             | 0x1A length text               string_value = 3
//             | 0x20 (0x00 | 0x01)             bool_value = 4
//             | 0x2A length Struct             struct_value = 5
//             | 0x32 length ListValue          list_value = 6
//   ListValue = { 0x0A length Value }          repeated Value values = 1
#pragma once

#include <cstdint>
#include <string_view>

#include "schemas/document/bson_view.h"

namespace strata::document {

inline constexpr uint8_t kFieldsTag = 0x0A;
inline constexpr uint8_t kNameTag = 0x0A;
inline constexpr uint8_t kValueTag = 0x12;
inline constexpr uint8_t kNullTag = 0x08;
inline constexpr uint8_t kNumberTag = 0x11;
inline constexpr uint8_t kTextTag = 0x1A;
inline constexpr uint8_t kBoolTag = 0x20;
inline constexpr uint8_t kStructTag = 0x2A;
inline constexpr uint8_t kListTag = 0x32;
inline constexpr uint8_t kElementsTag = 0x0A;

// One field of a message: its tag (number and wire type) and what follows.
struct WireField {
  uint64_t tag = 0;
  uint64_t number = 0;     // wire types 0, 1 and 5
  std::string_view bytes;  // wire type 2
};

// Walks the fields of a message that a stranger sent.
class WireReader {
 public:
  explicit WireReader(std::string_view message)
      : at_(message.data()), end_(message.data() + message.size()) {}

  // False at the end and on malformed bytes, which failed() tells apart.
  bool Next(WireField& field) {
    if (at_ == end_) return false;
    return Short(field) || Any(field);
  }

  bool failed() const { return failed_; }

 private:
  // Most fields: wire type 2, tag and length in one byte each.
  bool Short(WireField& field) {
    if (end_ - at_ < 2 || (at_[0] & 0x87) != 2 || at_[0] < 8) return false;
    const auto size = static_cast<uint8_t>(at_[1]);
    if (size >= 0x80 || size > end_ - at_ - 2) return false;
    field.tag = static_cast<uint8_t>(at_[0]);
    field.bytes = {at_ + 2, size};
    at_ += 2 + size;
    return true;
  }

  bool Any(WireField& field) {
    if (!Varint(field.tag) || field.tag >> 3 == 0 || field.tag >> 32 != 0) return Fail();
    switch (field.tag & 7) {
      case 0:
        return Varint(field.number) || Fail();
      case 1:
        return Fixed<uint64_t>(field) || Fail();
      case 2: {
        uint64_t size;
        if (!Varint(size) || size > static_cast<uint64_t>(end_ - at_)) return Fail();
        field.bytes = {at_, static_cast<size_t>(size)};
        at_ += size;
        return true;
      }
      case 5:
        return Fixed<uint32_t>(field) || Fail();
      default:  // groups, which proto3 does not have
        return Fail();
    }
  }

  bool Fail() {
    failed_ = true;
    return false;
  }

  bool Varint(uint64_t& number) {
    if (at_ != end_ && static_cast<uint8_t>(*at_) < 0x80) {
      number = static_cast<uint8_t>(*at_++);
      return true;
    }
    return LongVarint(number);
  }

  bool LongVarint(uint64_t& number) {
    number = 0;
    for (int shift = 0; shift < 70 && at_ != end_; shift += 7) {
      const auto byte = static_cast<uint8_t>(*at_++);
      number |= static_cast<uint64_t>(byte & 0x7F) << (shift < 64 ? shift : 63);
      if (byte < 0x80) return true;
    }
    return false;
  }

  template <typename Number>
  bool Fixed(WireField& field) {
    if (static_cast<size_t>(end_ - at_) < sizeof(Number)) return false;
    field.number = LoadNumber<Number>(at_);
    at_ += sizeof(Number);
    return true;
  }

  const char* at_;
  const char* end_;
  bool failed_ = false;
};

inline size_t VarintSize(size_t number) {
  size_t size = 1;
  for (; number >= 0x80; number >>= 7) ++size;
  return size;
}

// The size of a field that holds `size` bytes after a tag of one byte and their length.
inline size_t LengthFieldSize(size_t size) { return 1 + VarintSize(size) + size; }

}  // namespace strata::document
