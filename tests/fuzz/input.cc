#include "tests/fuzz/input.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "schemas/document/extended_json/decimal.h"
#include "schemas/document/extended_json/wrapper.h"

namespace strata::fuzz {

using document::Content;
using document::Member;
using document::MemberReader;

namespace {

// Documents of the generator end here; the limits' own depth is for the targets of raw bytes.
constexpr int kDepthMax = 12;
constexpr size_t kMembersMax = 12;
constexpr size_t kTextMax = 40;

template <typename Number>
document::Value NumberValue(uint8_t type, Number number) {
  document::Value value{type, {}};
  document::AppendNumber(number, value.bytes);
  return value;
}

document::Value TextValue(std::string_view text) {
  document::Value value{document::kBsonString, {}};
  document::AppendStringValue(text, value.bytes);
  return value;
}

void AppendCodePoint(uint32_t point, std::string& out) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | (point >> shift & 0x3F)); };
  if (point < 0x80) {
    out += static_cast<char>(point);
  } else if (point < 0x800) {
    out += static_cast<char>(0xC0 | point >> 6);
    tail(0);
  } else if (point < 0x10000) {
    out += static_cast<char>(0xE0 | point >> 12);
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0 | point >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace

void Require(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

uint8_t Input::Byte() {
  if (left_.empty()) return 0;
  const auto byte = static_cast<uint8_t>(left_[0]);
  left_.remove_prefix(1);
  return byte;
}

std::string Input::Raw(size_t size) {
  std::string bytes(left_.substr(0, size));
  left_.remove_prefix(bytes.size());
  bytes.resize(size);
  return bytes;
}

int64_t Input::Integer() {
  constexpr int64_t kBorders[] = {0,
                                  std::numeric_limits<int32_t>::max(),
                                  std::numeric_limits<int32_t>::min(),
                                  std::numeric_limits<int64_t>::max(),
                                  std::numeric_limits<int64_t>::min(),
                                  int64_t{1} << 53,
                                  253'402'300'799'999};  // the last date as text
  switch (Below(4)) {
    case 0:
      return static_cast<int8_t>(Byte());
    case 1:
      return Take<int64_t>();
    case 2:
      return Take<int32_t>();
    default: {
      const auto border = static_cast<uint64_t>(kBorders[Below(std::size(kBorders))]);
      return static_cast<int64_t>(border + Below(5) - 2);
    }
  }
}

std::string Input::Text() {
  std::string text;
  for (size_t i = Below(kTextMax); i > 0 && !done(); --i) {
    const uint8_t byte = Byte();
    uint32_t point = byte;
    if (byte >= 0xF0) {
      point = (uint32_t{Byte()} << 16 | uint32_t{Byte()} << 8 | Byte()) % 0x110000;
    }
    const bool surrogate = point >= 0xD800 && point < 0xE000;
    AppendCodePoint(point == 0 || surrogate ? 'z' : point, text);
  }
  return text;
}

std::string Input::Name() {
  static constexpr std::string_view kNames[] = {"a",  "b",    "c",   "",    "d/e",     "~f", "g~1",
                                                "0",  "1",    "-",   "+",   "*",       "=",  ">",
                                                "$x", "$ref", "$id", "h.i", "\xC3\xBC"};
  const size_t which = Below(std::size(kNames) + 1);
  if (which < std::size(kNames)) return std::string(kNames[which]);
  std::string text = Text();
  return document::IsWrapperName(text) ? "$" : text;
}

document::Value Input::ValueAt(int depth) {
  switch (Below(depth <= kDepthMax ? 18 : 15)) {
    case 0:
      return {document::kBsonNull, {}};
    case 1:
      return {document::kBsonBool, std::string(1, static_cast<char>(Byte() & 1))};
    case 2:
      return NumberValue(document::kBsonInt32, static_cast<int32_t>(Integer()));
    case 3:
      return NumberValue(document::kBsonInt64, Integer());
    case 4:
      return NumberValue(document::kBsonDouble, static_cast<double>(Integer()));
    case 5: {
      const auto number = Take<double>();
      return NumberValue(document::kBsonDouble, std::isfinite(number) ? number : -0.0);
    }
    case 6:
      return NumberValue(document::kBsonDate, Integer());
    case 7:
      return NumberValue(document::kBsonTimestamp, Take<uint64_t>());
    case 8:
      return {document::kBsonObjectId, Raw(12)};
    case 9: {
      const std::string text = std::to_string(Integer()) + "E" + std::to_string(Integer() % 6200);
      const std::optional<document::Decimal> decimal = document::ParseDecimal(text);
      if (!decimal) return {};
      return {document::kBsonDecimal, document::DecimalBytes(*decimal)};
    }
    case 10: {
      const uint8_t subtype = Byte();
      const bool old = subtype == document::kOldBinary;
      const std::string bytes = Raw(Below(9));
      const auto size = static_cast<int32_t>(bytes.size());
      document::Value value = NumberValue(document::kBsonBinary, old ? size + 4 : size);
      value.bytes += static_cast<char>(subtype);
      if (old) document::AppendNumber(size, value.bytes);
      value.bytes += bytes;
      return value;
    }
    case 11: {
      const std::string pattern = Text();
      return {document::kBsonRegex, pattern + '\0' + (Chance(2) ? "im" : "") + '\0'};
    }
    case 12:
      return {Chance(2) ? document::kBsonMinKey : document::kBsonMaxKey, {}};
    case 13:
      return TextValue(Text());
    case 14:
      return TextValue(Name());
    case 15:
      return {document::kBsonArray, Container(true, depth)};
    default:
      return {document::kBsonObject, Container(false, depth)};
  }
}

std::string Input::Container(bool is_array, int depth) {
  std::vector<Owned> members;
  for (size_t i = Below(kMembersMax); i > 0 && !done(); --i) {
    members.push_back({is_array ? "" : Name(), ValueAt(depth + 1)});
  }
  return Write(members, is_array);
}

// Of equal names the first counts.
std::string Input::Write(const std::vector<Owned>& members, bool is_array) {
  std::vector<std::string_view> names;
  std::string out;
  const size_t start = document::BeginDocument(out);
  document::IndexName index;
  for (const Owned& member : members) {
    if (!is_array) {
      if (std::find(names.begin(), names.end(), member.name) != names.end()) continue;
      names.push_back(member.name);
    }
    document::AppendMember(member.value.type, is_array ? index.text() : member.name,
                           member.value.bytes, out);
    index.Next();
  }
  document::EndDocument(start, out);
  return out;
}

Content Input::Document() { return Content::FromTrusted(Container(false, /*depth=*/1)); }

std::string Input::Bytes() {
  if (Below(2) == 0) return Rest();
  std::string bytes(Document().bytes());
  for (size_t i = Below(4); i > 0 && !done(); --i) {
    const size_t at = Take<uint16_t>() % bytes.size();
    bytes[at] = static_cast<char>(Byte());
  }
  return bytes;
}

Content Input::Changed(const Content& content) {
  std::string bytes(content.bytes());
  for (size_t i = Below(4) + 1; i > 0 && !done(); --i) bytes = ChangedContainer(bytes, false, 1);
  return Content::FromTrusted(std::move(bytes));
}

std::string Input::ChangedContainer(std::string_view container, bool is_array, int depth) {
  std::vector<Owned> members;
  Member member;
  for (MemberReader reader(container); reader.Next(member);) {
    members.push_back({std::string(member.name), {member.type, std::string(member.value)}});
  }
  const size_t at = members.empty() ? 0 : Below(std::min<size_t>(members.size(), 256));
  const size_t what = members.empty() ? 0 : Below(6);
  const auto place = members.begin() + static_cast<ptrdiff_t>(at);
  switch (what) {
    case 0:
      members.insert(place, {is_array ? "" : Name(), ValueAt(depth + 1)});
      break;
    case 1:
      members.erase(place);
      break;
    case 2:
      place->value = ValueAt(depth + 1);
      break;
    case 3:
      std::rotate(members.begin(), place, members.end());
      break;
    case 4:
      std::swap(*place, members.back());
      break;
    default:
      if (!document::IsContainer(place->value.type)) break;
      place->value.bytes = ChangedContainer(place->value.bytes,
                                            place->value.type == document::kBsonArray, depth + 1);
  }
  return Write(members, is_array);
}

document::Path Input::Path(const Content& content) {
  document::Path path;
  std::string_view container = content.bytes();
  for (size_t steps = Below(6); steps > 0; --steps) {
    std::vector<Member> members;
    Member member;
    for (MemberReader reader(container); reader.Next(member);) members.push_back(member);
    if (members.empty() || Chance(8)) {
      path.Push(Name());
      container = document::kEmptyDocument;
      continue;
    }
    const Member& next = members[Below(std::min<size_t>(members.size(), 256))];
    path.Push(next.name);
    container = document::IsContainer(next.type) ? next.value : document::kEmptyDocument;
  }
  return path;
}

}  // namespace strata::fuzz
