// The one pass that decides whether bytes are a BSON document that Strata stores.
#include "schemas/document/bson_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "schemas/base/strings.h"
#include "schemas/base/utf8.h"
#include "schemas/document/bson_view.h"
#include "schemas/document/content_error.h"
#include "schemas/document/content_walk.h"
#include "schemas/document/extended_json/decimal.h"
#include "schemas/document/extended_json/scalar_text.h"
#include "schemas/document/extended_json/wrapper.h"
#include "schemas/document/struct_codec.h"

namespace strata::document {
namespace {

constexpr std::string_view kFrameAdvice = "send BSON as a MongoDB driver encodes it";

// A name's bit in a 64-bit set: if the bit is not taken yet, the name is new.
uint64_t NameBit(std::string_view name) {
  uint64_t mix = name.size() * 0x9E3779B97F4A7C15u;
  if (!name.empty()) {
    mix += static_cast<uint8_t>(name.front()) * 0xC2B2AE3D27D4EB4Fu;
    mix += static_cast<uint8_t>(name.back()) * 0x165667B19E3779F9u;
    mix += static_cast<uint8_t>(name[name.size() / 2]) * 0x27D4EB2F165667C5u;
  }
  return uint64_t{1} << (mix >> 58);
}

class Checker {
 public:
  // `as_json`: besides, whether JSON can show the document as what it is.
  Checker(std::string_view bytes, const Limits& limits, bool as_json)
      : bytes_(bytes), as_json_(as_json), walk_(limits) {}

  bool Check() {
    if (bytes_.size() < 5) return Fail("is shorter than the 5 bytes of an empty document");
    if (ValueSize(kBsonObject, bytes_.data(), bytes_.size()) != bytes_.size()) {
      return Fail("says another length in its first 4 bytes than it has");
    }
    return Document(bytes_, /*is_array=*/false, /*depth=*/1);
  }

  absl::Status Refusal() const { return walk_.Refusal("the content"); }

 private:
  // Members of one object up to this many are compared with each other; more are sorted.
  static constexpr size_t kScanMax = 32;

  bool Fail(std::string_view problem, std::string_view advice = kFrameAdvice) {
    return walk_.Refuse(problem, advice);
  }

  bool Document(std::string_view document, bool is_array, int depth) {
    if (document.back() != '\0') return Fail("does not end with a zero byte");
    Trail::Level level(walk_.trail());
    const size_t names_begin = names_.size();
    const char* at = document.data() + 4;
    const char* const end = document.data() + document.size() - 1;
    IndexName index;
    uint64_t seen = 0;
    std::string_view wrapper;
    while (at != end) {
      Member member;
      member.type = static_cast<uint8_t>(*at);
      const char* const name = at + 1;
      const char* const name_end = FindZero(name, end);
      if (name_end == nullptr) return Fail("has a member whose name does not end");
      member.name = {name, static_cast<size_t>(name_end - name)};
      level.At(member.name);
      if (is_array) {
        if (member.name != index.text()) return FailIndex(level);
        index.Next();
      } else if (!Name(member.name, names_begin, seen)) {
        return false;
      }
      const size_t size =
          ValueSize(member.type, name_end + 1, static_cast<size_t>(end - name_end) - 1);
      if (size == kNoSize) return FailType(member.type);
      member.value = {name_end + 1, size};
      if (!walk_.CountNode()) return false;
      if (!ValueOf(member, depth)) return false;
      if (as_json_ && !is_array && !member.name.empty() && member.name[0] == '$') {
        if (wrapper.empty() && IsWrapperName(member.name)) wrapper = member.name;
      }
      level.Leave();
      at = name_end + 1 + size;
    }
    if (!wrapper.empty()) return FailWrapper(wrapper, depth);
    return is_array || CloseNames(names_begin, level);
  }

  bool Name(std::string_view name, size_t names_begin, uint64_t& seen) {
    if (!IsUtf8(name)) {
      return Fail("has a member whose name is not UTF-8", "write names in UTF-8");
    }
    const uint64_t bit = NameBit(name);
    if ((seen & bit) != 0 && names_.size() - names_begin < kScanMax) {
      const auto begin = names_.begin() + static_cast<ptrdiff_t>(names_begin);
      if (std::find(begin, names_.end(), name) != names_.end()) return FailTwice();
    }
    seen |= bit;
    names_.push_back(name);
    return true;
  }

  // Forgets the names of an object that ends; too many to have been compared are sorted first.
  bool CloseNames(size_t names_begin, Trail::Level& level) {
    const auto begin = names_.begin() + static_cast<ptrdiff_t>(names_begin);
    if (names_.size() - names_begin > kScanMax) {
      std::sort(begin, names_.end());
      const auto twice = std::adjacent_find(begin, names_.end());
      if (twice != names_.end()) {
        level.At(*twice);
        return FailTwice();
      }
    }
    names_.resize(names_begin);
    return true;
  }

  bool ValueOf(const Member& member, int depth) {
    const std::string_view value = member.value;
    switch (member.type) {
      case kBsonDouble:
        if (!std::isfinite(LoadNumber<double>(value))) return walk_.RefuseNotFinite();
        return true;
      case kBsonString:
        if (value.back() != '\0') return Fail("is a string that does not end with a zero byte");
        if (!IsUtf8(StringText(value))) return FailText();
        return true;
      case kBsonObject:
      case kBsonArray:
        if (!walk_.MayNest(depth)) return false;
        return Document(value, member.type == kBsonArray, depth + 1);
      case kBsonBinary:
        return Binary(value);
      case kBsonBool:
        if (static_cast<uint8_t>(value[0]) > 1) return Fail("is a bool that is neither 0 nor 1");
        return true;
      case kBsonRegex:
        if (!IsUtf8(value)) return FailText();
        return !as_json_ || RegexOptions(value);
      case kBsonDecimal:
        return Decimal(value);
      default:
        return true;
    }
  }

  bool Binary(std::string_view value) {
    if (static_cast<uint8_t>(value[4]) != kOldBinary) return true;
    const bool framed = value.size() >= 9 && LoadNumber<int32_t>(value.data() + 5) ==
                                                 static_cast<int32_t>(value.size()) - 9;
    return framed || Fail("is a binary of subtype 2 whose inner length is wrong");
  }

  bool Decimal(std::string_view value) {
    if (!IsFiniteDecimal(value)) return walk_.RefuseNotFinite();
    return LoadDecimal(value) || Fail("is a decimal128 that is not in its canonical form",
                                      "write it as MongoDB's drivers do");
  }

  bool RegexOptions(std::string_view value) {
    const std::string_view options = value.substr(value.find('\0') + 1, value.size());
    if (AreRegexOptions(options.substr(0, options.size() - 1))) return true;
    return Fail("is a regular expression whose options are not letters of ilmsux in this order",
                "sort the options, and leave out those that BSON does not have");
  }

  // In JSON the object would be the value that the wrapper stands for, or no JSON at all.
  bool FailWrapper(std::string_view name, int depth) {
    return Fail(
        absl::StrCat("has a member with the name of the Extended JSON wrapper ", ToAbsl(name)),
        depth == 1 ? "put the value in a member of its own"
                   : "send the value as its BSON type, or use another member name");
  }

  bool FailIndex(Trail::Level& level) {
    level.Leave();
    return Fail("is an array whose members are not named \"0\", \"1\" and so on in order");
  }
  bool FailTwice() {
    return Fail("stands twice in its object", "keep one of the two or rename it");
  }
  bool FailText() { return Fail("is not UTF-8", "write text in UTF-8 and other bytes as binary"); }

  bool FailType(uint8_t type) {
    switch (type) {
      case 0x06:
      case 0x0C:
      case 0x0D:
      case 0x0E:
      case 0x0F:
        return Fail("has a deprecated BSON type (undefined, DBPointer, symbol or code)",
                    "store null or a string instead");
      case kBsonString:
      case kBsonBinary:
      case kBsonObject:
      case kBsonArray:
        return Fail("says a length that its surroundings do not have room for");
      default:
        return Fail(absl::StrCat("has the BSON type ", static_cast<int>(type),
                                 ", which is unknown, or ends too early"));
    }
  }

  std::string_view bytes_;
  const bool as_json_;
  ContentWalk walk_;
  std::vector<std::string_view> names_;  // of all objects that are open, outermost first
};

}  // namespace

absl::Status CheckBson(std::string_view bytes, const Limits& limits) {
  Checker checker(bytes, limits, /*as_json=*/true);
  if (checker.Check()) return absl::OkStatus();
  return checker.Refusal();
}

absl::Status CheckSizes(const Content& content, const Limits& limits) {
  if (content.size() > limits.bytes_max) {
    return TooLargeError("BSON", content.size(), limits.bytes_max);
  }
  if (content.size() * kStructGrowthMax <= limits.bytes_max) return absl::OkStatus();
  const size_t struct_size = StructSize(content);
  if (struct_size > limits.bytes_max) {
    return TooLargeError("google.protobuf.Struct", struct_size, limits.bytes_max);
  }
  return absl::OkStatus();
}

bool IsWellFormed(std::string_view bytes, int depth_max) {
  Limits limits;
  limits.depth_max = depth_max;
  limits.nodes_max = std::numeric_limits<int>::max();
  return Checker(bytes, limits, /*as_json=*/false).Check();
}

}  // namespace strata::document
