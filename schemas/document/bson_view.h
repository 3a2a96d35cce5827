// Reading and writing BSON as bytes, member by member, without a tree.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace strata::document {

inline constexpr uint8_t kBsonDouble = 0x01;
inline constexpr uint8_t kBsonString = 0x02;
inline constexpr uint8_t kBsonObject = 0x03;
inline constexpr uint8_t kBsonArray = 0x04;
inline constexpr uint8_t kBsonBinary = 0x05;
inline constexpr uint8_t kBsonObjectId = 0x07;
inline constexpr uint8_t kBsonBool = 0x08;
inline constexpr uint8_t kBsonDate = 0x09;
inline constexpr uint8_t kBsonNull = 0x0A;
inline constexpr uint8_t kBsonRegex = 0x0B;
inline constexpr uint8_t kBsonInt32 = 0x10;
inline constexpr uint8_t kBsonTimestamp = 0x11;
inline constexpr uint8_t kBsonInt64 = 0x12;
inline constexpr uint8_t kBsonDecimal = 0x13;
inline constexpr uint8_t kBsonMaxKey = 0x7F;
inline constexpr uint8_t kBsonMinKey = 0xFF;

// The binary subtype whose payload begins with its own length once more.
inline constexpr uint8_t kOldBinary = 0x02;
inline constexpr uint8_t kUuidBinary = 0x04;

// The bytes of the empty document: its length and the closing zero.
inline constexpr std::string_view kEmptyDocument("\x05\0\0\0\0", 5);

// BSON is little-endian, as are the machines that this runs on.
template <typename Number>
Number LoadNumber(const char* at) {
  Number number;
  std::memcpy(&number, at, sizeof(number));
  return number;
}
template <typename Number>
Number LoadNumber(std::string_view value) {
  return LoadNumber<Number>(value.data());
}
template <typename Number>
void AppendNumber(Number number, std::string& out) {
  out.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

// One value outside a document: what a patch sets, what a diff reports.
struct Value {
  uint8_t type = kBsonNull;
  std::string bytes;  // the value as it stands in BSON, without type byte and member name

  friend bool operator==(const Value&, const Value&) = default;
};

// One member of an object, or one element of an array (then the name is its index in digits).
struct Member {
  uint8_t type = kBsonNull;
  std::string_view name;
  std::string_view value;  // as it stands in BSON, without type byte and name
};

inline bool IsContainer(uint8_t type) { return type == kBsonObject || type == kBsonArray; }
inline bool IsInteger(uint8_t type) { return type == kBsonInt32 || type == kBsonInt64; }
inline bool SameBytes(const Member& a, const Member& b) {
  return a.type == b.type && a.value == b.value;
}

// REQUIRES: IsInteger(type).
inline int64_t LoadInteger(uint8_t type, std::string_view value) {
  return type == kBsonInt32 ? LoadNumber<int32_t>(value) : LoadNumber<int64_t>(value);
}

// The text of a string value, without its length and closing zero.
inline std::string_view StringText(std::string_view value) {
  return value.substr(4, value.size() - 5);
}

// Where the first zero byte is, or null. Names are short: a call of memchr costs more than it
// saves.
inline const char* FindZero(const char* at, const char* end) {
  for (; end - at >= 8; at += 8) {
    const auto eight = LoadNumber<uint64_t>(at);
    const uint64_t zeros = (eight - 0x0101010101010101u) & ~eight & 0x8080808080808080u;
    if (zeros != 0) return at + (std::countr_zero(zeros) >> 3);
  }
  for (; at != end; ++at) {
    if (*at == 0) return at;
  }
  return nullptr;
}

inline constexpr size_t kNoSize = static_cast<size_t>(-1);

// How many of the `left` bytes at `at` belong to a value of this type; kNoSize if they do not hold
// one or the type is not accepted. Looks at the frame only, not at what is inside.
inline size_t ValueSize(uint8_t type, const char* at, size_t left) {
  size_t size = 0;
  switch (type) {
    case kBsonDouble:
    case kBsonDate:
    case kBsonTimestamp:
    case kBsonInt64:
      size = 8;
      break;
    case kBsonString:
    case kBsonBinary: {
      if (left < 5) return kNoSize;
      const int32_t length = LoadNumber<int32_t>(at);
      if (length < (type == kBsonString ? 1 : 0)) return kNoSize;
      size = static_cast<size_t>(length) + (type == kBsonString ? 4 : 5);
      break;
    }
    case kBsonObject:
    case kBsonArray: {
      if (left < 5) return kNoSize;
      const int32_t length = LoadNumber<int32_t>(at);
      if (length < 5) return kNoSize;
      size = static_cast<size_t>(length);
      break;
    }
    case kBsonInt32:
      size = 4;
      break;
    case kBsonBool:
      size = 1;
      break;
    case kBsonObjectId:
      size = 12;
      break;
    case kBsonDecimal:
      size = 16;
      break;
    case kBsonRegex: {
      const char* const pattern_end = FindZero(at, at + left);
      if (pattern_end == nullptr) return kNoSize;
      const char* const options_end = FindZero(pattern_end + 1, at + left);
      if (options_end == nullptr) return kNoSize;
      size = static_cast<size_t>(options_end + 1 - at);
      break;
    }
    case kBsonNull:
    case kBsonMinKey:
    case kBsonMaxKey:
      break;
    default:
      return kNoSize;
  }
  return size <= left ? size : kNoSize;
}

// Walks the members of a valid document. Bytes that are not valid end the walk early; it never
// leaves them.
class MemberReader {
 public:
  explicit MemberReader(std::string_view document) {
    if (document.size() < 5) return;
    at_ = document.data() + 4;
    end_ = document.data() + document.size() - 1;
  }

  // False at the end and where the bytes are not valid, which failed() tells apart.
  bool Next(Member& member) {
    if (at_ == end_) return false;
    member.type = static_cast<uint8_t>(*at_);
    const char* const name = at_ + 1;
    const char* const name_end = FindZero(name, end_);
    if (name_end == nullptr) return Stop();
    member.name = {name, static_cast<size_t>(name_end - name)};
    const char* const value = name_end + 1;
    const size_t size = ValueSize(member.type, value, static_cast<size_t>(end_ - value));
    if (size == kNoSize) return Stop();
    member.value = {value, size};
    at_ = value + size;
    return true;
  }

  bool failed() const { return failed_; }

 private:
  bool Stop() {
    at_ = end_;
    failed_ = true;
    return false;
  }

  const char* at_ = nullptr;
  const char* end_ = nullptr;
  bool failed_ = false;
};

// The names of array elements in turn: "0", "1", …
class IndexName {
 public:
  std::string_view text() const { return {digits_ + begin_, kDigits - begin_}; }

  void Next() {
    for (size_t i = kDigits; i-- > begin_;) {
      if (digits_[i] != '9') {
        ++digits_[i];
        return;
      }
      digits_[i] = '0';
    }
    digits_[--begin_] = '1';
  }

 private:
  static constexpr size_t kDigits = 12;
  char digits_[kDigits] = {'0', '0', '0', '0', '0', '0', '0', '0', '0', '0', '0', '0'};
  size_t begin_ = kDigits - 1;
};

// Opens a document at the end of `out` and says where; EndDocument closes it there.
inline size_t BeginDocument(std::string& out) {
  const size_t start = out.size();
  out.append(4, '\0');
  return start;
}
inline void EndDocument(size_t start, std::string& out) {
  out.push_back('\0');
  const auto size = static_cast<int32_t>(out.size() - start);
  std::memcpy(out.data() + start, &size, sizeof(size));
}

inline void AppendMemberHead(uint8_t type, std::string_view name, std::string& out) {
  out.push_back(static_cast<char>(type));
  out.append(name);
  out.push_back('\0');
}
inline void AppendMember(uint8_t type, std::string_view name, std::string_view value,
                         std::string& out) {
  AppendMemberHead(type, name, out);
  out.append(value);
}
inline void AppendMember(const Member& member, std::string& out) {
  AppendMember(member.type, member.name, member.value, out);
}

// A string value: length, text, zero.
inline void AppendStringValue(std::string_view text, std::string& out) {
  AppendNumber(static_cast<int32_t>(text.size() + 1), out);
  out.append(text);
  out.push_back('\0');
}

}  // namespace strata::document
