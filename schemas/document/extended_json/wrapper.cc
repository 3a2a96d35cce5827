// The objects by which MongoDB Extended JSON v2 names values that JSON has no type for.
#include "schemas/document/extended_json/wrapper.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "schemas/base/strings.h"
#include "schemas/document/extended_json/decimal.h"
#include "schemas/document/extended_json/scalar_text.h"

namespace strata::document {
namespace {

using Kind = WrapperPart::Kind;

template <typename Number>
Value NumberValue(uint8_t type, Number number) {
  Value value{type, {}};
  AppendNumber(number, value.bytes);
  return value;
}

std::optional<Value> ReadInt32(std::string_view text) {
  const std::optional<int32_t> number = ParseInteger<int32_t>(text);
  if (!number) return std::nullopt;
  return NumberValue(kBsonInt32, *number);
}

std::optional<Value> ReadInt64(std::string_view text) {
  const std::optional<int64_t> number = ParseInteger<int64_t>(text);
  if (!number) return std::nullopt;
  return NumberValue(kBsonInt64, *number);
}

std::optional<Value> ReadDouble(std::string_view text) {
  const std::optional<double> number = ParseDouble(text);
  if (!number) return std::nullopt;
  return NumberValue(kBsonDouble, *number);
}

std::optional<Value> ReadDecimal(std::string_view text) {
  const std::optional<Decimal> decimal = ParseDecimal(text);
  if (!decimal) return std::nullopt;
  return Value{kBsonDecimal, DecimalBytes(*decimal)};
}

std::optional<Value> ReadObjectId(std::string_view text) {
  std::optional<std::string> bytes = ParseHex(text);
  if (!bytes || bytes->size() != 12) return std::nullopt;
  return Value{kBsonObjectId, *std::move(bytes)};
}

Value BinaryValue(uint8_t subtype, std::string_view bytes) {
  Value value{kBsonBinary, {}};
  const auto size = static_cast<int32_t>(bytes.size());
  AppendNumber(subtype == kOldBinary ? size + 4 : size, value.bytes);
  value.bytes.push_back(static_cast<char>(subtype));
  if (subtype == kOldBinary) AppendNumber(size, value.bytes);
  value.bytes += bytes;
  return value;
}

std::optional<Value> ReadUuid(std::string_view text) {
  const std::optional<std::string> bytes = ParseUuid(text);
  if (!bytes) return std::nullopt;
  return BinaryValue(kUuidBinary, *bytes);
}

// The two string members of an object, in either order.
struct TwoTexts {
  std::string_view first;
  std::string_view second;
};
std::optional<TwoTexts> ReadTwoTexts(const WrapperArgument& argument, std::string_view first,
                                     std::string_view second) {
  const WrapperPart* const a = argument.Find(first);
  const WrapperPart* const b = argument.Find(second);
  if (a == nullptr || b == nullptr || argument.part_count != 2) return std::nullopt;
  if (a->kind != Kind::kString || b->kind != Kind::kString) return std::nullopt;
  return TwoTexts{a->text, b->text};
}

std::optional<Value> ReadBinary(const WrapperArgument& argument) {
  const std::optional<TwoTexts> texts = ReadTwoTexts(argument, "base64", "subType");
  if (!texts || texts->second.empty() || texts->second.size() > 2) return std::nullopt;
  const std::string padded =
      texts->second.size() == 1 ? "0" + std::string(texts->second) : std::string(texts->second);
  const std::optional<std::string> subtype = ParseHex(padded);
  const std::optional<std::string> bytes = ParseBase64(texts->first);
  if (!subtype || !bytes) return std::nullopt;
  return BinaryValue(static_cast<uint8_t>((*subtype)[0]), *bytes);
}

std::optional<Value> ReadRegex(const WrapperArgument& argument) {
  const std::optional<TwoTexts> texts = ReadTwoTexts(argument, "pattern", "options");
  if (!texts || !AreRegexOptions(texts->second)) return std::nullopt;
  Value value{kBsonRegex, {}};
  for (const std::string_view text : {texts->first, texts->second}) {
    if (text.find('\0') != std::string_view::npos) return std::nullopt;
    value.bytes += text;
    value.bytes.push_back('\0');
  }
  return value;
}

std::optional<uint32_t> ReadUint32(const WrapperPart* part) {
  if (part == nullptr || part->kind != Kind::kNumber) return std::nullopt;
  if (!(part->number >= 0 && part->number <= 4294967295.0)) return std::nullopt;
  if (part->number != std::floor(part->number)) return std::nullopt;
  return static_cast<uint32_t>(part->number);
}

std::optional<Value> ReadTimestamp(const WrapperArgument& argument) {
  const std::optional<uint32_t> seconds = ReadUint32(argument.Find("t"));
  const std::optional<uint32_t> increment = ReadUint32(argument.Find("i"));
  if (!seconds || !increment || argument.part_count != 2) return std::nullopt;
  return NumberValue(kBsonTimestamp, uint64_t{*seconds} << 32 | *increment);
}

std::optional<Value> ReadDate(const WrapperArgument& argument) {
  std::optional<int64_t> millis;
  if (!argument.is_object) {
    if (argument.scalar.kind == Kind::kString) millis = ParseDate(argument.scalar.text);
  } else if (argument.part_count == 1 && argument.parts[0].name == "$numberLong" &&
             argument.parts[0].kind == Kind::kString) {
    millis = ParseInteger<int64_t>(argument.parts[0].text);
  }
  if (!millis) return std::nullopt;
  return NumberValue(kBsonDate, *millis);
}

std::optional<Value> ReadEndKey(uint8_t type, const WrapperArgument& argument) {
  const bool one =
      !argument.is_object && argument.scalar.kind == Kind::kNumber && argument.scalar.number == 1;
  if (!one) return std::nullopt;
  return Value{type, {}};
}
std::optional<Value> ReadMinKey(const WrapperArgument& argument) {
  return ReadEndKey(kBsonMinKey, argument);
}
std::optional<Value> ReadMaxKey(const WrapperArgument& argument) {
  return ReadEndKey(kBsonMaxKey, argument);
}

struct WrapperRow {
  std::string_view name;
  std::optional<Value> (*read_text)(std::string_view);  // the argument is a string
  std::optional<Value> (*read)(const WrapperArgument&);
  std::string_view form;
};

constexpr WrapperRow kWrappers[] = {
    {"$oid", ReadObjectId, nullptr, R"({"$oid": "24 hex digits"})"},
    {"$date", nullptr, ReadDate,
     R"({"$date": "2026-01-31T12:00:00.000Z"} or {"$date": {"$numberLong": "milliseconds"}})"},
    {"$numberInt", ReadInt32, nullptr, R"({"$numberInt": "digits within 32 bits"})"},
    {"$numberLong", ReadInt64, nullptr, R"({"$numberLong": "digits within 64 bits"})"},
    {"$numberDouble", ReadDouble, nullptr, R"({"$numberDouble": "a finite number"})"},
    {"$numberDecimal", ReadDecimal, nullptr,
     R"({"$numberDecimal": "a finite number of at most 34 digits"})"},
    {"$binary", nullptr, ReadBinary, R"({"$binary": {"base64": "…", "subType": "2 hex digits"}})"},
    {"$uuid", ReadUuid, nullptr, R"({"$uuid": "8-4-4-4-12 hex digits"})"},
    {"$regularExpression", nullptr, ReadRegex,
     R"({"$regularExpression": {"pattern": "…", "options": "letters of ilmsux in this order"}})"},
    {"$timestamp", nullptr, ReadTimestamp,
     R"({"$timestamp": {"t": seconds, "i": increment}}, both whole and within 32 bits)"},
    {"$minKey", nullptr, ReadMinKey, R"({"$minKey": 1})"},
    {"$maxKey", nullptr, ReadMaxKey, R"({"$maxKey": 1})"},
};

const WrapperRow* FindWrapper(std::string_view name) {
  if (name.empty() || name[0] != '$') return nullptr;
  for (const WrapperRow& row : kWrappers) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

// As drivers write what is no number, and as people do: nan, -Infinity, +inf.
bool IsNotFinite(const WrapperRow& row, std::string_view text) {
  if (row.name != "$numberDouble" && row.name != "$numberDecimal") return false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  for (const char* word : {"nan", "inf", "infinity"}) {
    if (absl::EqualsIgnoreCase(ToAbsl(text), word)) return true;
  }
  return false;
}

WrapperPart PartOf(const Member& member) {
  WrapperPart part{member.name, Kind::kOther, {}, 0};
  if (member.type == kBsonString) {
    part.kind = Kind::kString;
    part.text = StringText(member.value);
  } else if (IsInteger(member.type)) {
    part.kind = Kind::kNumber;
    part.number = static_cast<double>(LoadInteger(member.type, member.value));
  } else if (member.type == kBsonDouble) {
    part.kind = Kind::kNumber;
    part.number = LoadNumber<double>(member.value);
  }
  return part;
}

WrapperSpelling SpellText(std::string_view name, std::string text) {
  WrapperSpelling spelling{name, false, {}, 1};
  spelling.parts[0].text = std::move(text);
  return spelling;
}

WrapperSpelling SpellOne(std::string_view name) {
  WrapperSpelling spelling{name, false, {}, 1};
  spelling.parts[0].number = 1;
  return spelling;
}

WrapperSpelling SpellDate(std::string_view value) {
  const auto millis = LoadNumber<int64_t>(value);
  if (millis >= kDateTextMin && millis <= kDateTextMax) {
    return SpellText("$date", DateText(millis));
  }
  return {"$date", true, {{"$numberLong", std::to_string(millis), {}}, {}}, 1};
}

// Of subtype 2 the payload begins with its own length once more.
WrapperSpelling SpellBinary(std::string_view value) {
  const bool old = static_cast<uint8_t>(value[4]) == kOldBinary;
  const std::string_view payload = value.substr(std::min<size_t>(value.size(), old ? 9 : 5));
  return {"$binary",
          true,
          {{"base64", Base64Text(payload), {}}, {"subType", HexText(value.substr(4, 1)), {}}},
          2};
}

WrapperSpelling SpellRegex(std::string_view value) {
  const size_t end = value.find('\0');
  return {"$regularExpression",
          true,
          {{"pattern", std::string(value.substr(0, end)), {}},
           {"options", std::string(value.substr(end + 1, value.size() - end - 2)), {}}},
          2};
}

WrapperSpelling SpellTimestamp(std::string_view value) {
  const auto both = LoadNumber<uint64_t>(value);
  return {"$timestamp",
          true,
          {{"t", {}, static_cast<uint32_t>(both >> 32)}, {"i", {}, static_cast<uint32_t>(both)}},
          2};
}

}  // namespace

const WrapperPart* WrapperArgument::Find(std::string_view name) const {
  for (size_t i = 0; is_object && i < part_count && i < 2; ++i) {
    if (parts[i].name == name) return &parts[i];
  }
  return nullptr;
}

bool IsWrapperName(std::string_view name) { return FindWrapper(name) != nullptr; }

WrapperFault::WrapperFault(std::string_view name)
    : problem(absl::StrCat("has the name of the Extended JSON wrapper ", ToAbsl(name),
                           " but is not exactly that wrapper")),
      advice(absl::StrCat("write ", ToAbsl(FindWrapper(name)->form),
                          " with nothing else in the object, or use another member name")) {}

std::optional<Value> ReadWrapper(std::string_view name, const WrapperArgument& argument,
                                 std::optional<WrapperFault>& fault) {
  const WrapperRow& row = *FindWrapper(name);
  std::optional<Value> value;
  if (row.read != nullptr) {
    value = row.read(argument);
  } else if (!argument.is_object && argument.scalar.kind == Kind::kString) {
    value = row.read_text(argument.scalar.text);
    if (!value && IsNotFinite(row, argument.scalar.text)) {
      fault.emplace(name);
      fault->problem = kNotFiniteProblem;
      fault->advice = kNotFiniteAdvice;
      return std::nullopt;
    }
  }
  if (!value) fault.emplace(name);
  return value;
}

std::optional<Value> ReadWrapperObject(std::string_view name, std::string_view object,
                                       std::optional<WrapperFault>& fault) {
  MemberReader reader(object);
  Member member;
  Member extra;
  if (!reader.Next(member) || member.name != name || reader.Next(extra)) {
    fault.emplace(name);
    return std::nullopt;
  }
  WrapperArgument argument;
  argument.is_object = member.type == kBsonObject;
  argument.scalar = PartOf(member);
  if (argument.is_object) {
    Member part;
    for (MemberReader parts(member.value); parts.Next(part); ++argument.part_count) {
      if (argument.part_count < 2) argument.parts[argument.part_count] = PartOf(part);
    }
  }
  return ReadWrapper(name, argument, fault);
}

WrapperSpelling SpellWrapper(uint8_t type, std::string_view value) {
  std::string text;
  switch (type) {
    case kBsonDouble:
      AppendDouble(LoadNumber<double>(value), text);
      return SpellText("$numberDouble", std::move(text));
    case kBsonInt64:
      return SpellText("$numberLong", std::to_string(LoadNumber<int64_t>(value)));
    case kBsonObjectId:
      return SpellText("$oid", HexText(value));
    case kBsonDecimal:
      return SpellText("$numberDecimal", DecimalText(value));
    case kBsonBinary:
      return SpellBinary(value);
    case kBsonDate:
      return SpellDate(value);
    case kBsonRegex:
      return SpellRegex(value);
    case kBsonTimestamp:
      return SpellTimestamp(value);
    case kBsonMinKey:
      return SpellOne("$minKey");
    case kBsonMaxKey:
      return SpellOne("$maxKey");
    default:
      return {};
  }
}

}  // namespace strata::document
