// From the wire form of google.protobuf.Struct to BSON.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"
#include "schemas/document/bson_check.h"
#include "schemas/document/bson_view.h"
#include "schemas/document/content_error.h"
#include "schemas/document/content_walk.h"
#include "schemas/document/extended_json/wrapper.h"
#include "schemas/document/struct_codec.h"
#include "schemas/document/struct_message.h"
#include "schemas/document/struct_wire.h"
#include "schemas/document/utf8.h"

namespace strata::document {
namespace {

class StructReader {
 public:
  // `whole` is what errors call what is read.
  StructReader(const Limits& limits, std::string_view whole) : walk_(limits), whole_(whole) {}

  absl::StatusOr<std::string> Document(std::string_view wire) {
    out_.reserve(wire.size() + wire.size() / 8 + 16);
    const size_t entries_begin = 0;
    std::string_view wrapper_name;
    if (!AddEntries(wire, wrapper_name)) return Refusal();
    if (!wrapper_name.empty()) {
      Trail::Level level(walk_.trail());
      level.At(wrapper_name);
      Fail("has the name of an Extended JSON wrapper, but is a member of the document itself",
           "put the value in a member of its own");
      return Refusal();
    }
    if (!Object(entries_begin, /*depth=*/1)) return Refusal();
    return std::move(out_);
  }

  // Leaves the value after a member head without name.
  absl::StatusOr<Value> SingleValue(std::string_view wire) {
    if (!Member({}, wire, /*depth=*/0)) return Refusal();
    return Value{static_cast<uint8_t>(out_[0]), out_.substr(2)};
  }

  absl::StatusOr<Value> Array(std::string_view wire) {
    if (!List(wire, /*depth=*/1)) return Refusal();
    return Value{kBsonArray, std::move(out_)};
  }

 private:
  absl::Status Refusal() const { return walk_.Refusal(whole_); }

  bool Fail(std::string_view problem, std::string_view advice) {
    return walk_.Refuse(problem, advice);
  }
  bool FailWire() {
    return Fail("is not well-formed as google.protobuf.Struct",
                "send what a protobuf library writes");
  }

  // Puts a Struct's entries at the end of entries_ and tells the first name that only a wrapper may
  // have.
  bool AddEntries(std::string_view wire, std::string_view& wrapper_name) {
    switch (entries_.Add(wire, wrapper_name)) {
      case StructFault::kNone:
        return true;
      case StructFault::kMalformed:
        return FailWire();
      case StructFault::kNameNotUtf8:
        return Fail("has a member whose name is not UTF-8", "write names in UTF-8");
      case StructFault::kNameWithZero:
        return Fail("has a member whose name contains a zero byte", "use a name without it");
    }
    return false;
  }

  // Writes the entries from `entries_begin` on as a BSON document and takes them off.
  bool Object(size_t entries_begin, int depth) {
    const size_t entries_end = entries_.size();
    const size_t start = BeginDocument(out_);
    Trail::Level level(walk_.trail());
    for (size_t i = entries_begin; i < entries_end; ++i) {
      const StructEntry entry = entries_[i];
      level.At(entry.name);
      if (!Member(entry.name, entry.value, depth)) return false;
    }
    entries_.Truncate(entries_begin);
    EndDocument(start, out_);
    return true;
  }

  bool List(std::string_view wire, int depth) {
    const size_t start = BeginDocument(out_);
    Trail::Level level(walk_.trail());
    IndexName index;
    int64_t position = 0;
    WireReader reader(wire);
    WireField field;
    while (reader.Next(field)) {
      if (field.tag != kElementsTag) continue;
      level.At(position++);
      if (!Member(index.text(), field.bytes, depth)) return false;
      index.Next();
    }
    level.Leave();
    if (reader.failed()) return FailWire();
    EndDocument(start, out_);
    return true;
  }

  // Writes one member, whose value lies at `depth` + 1 if it is an object or array.
  bool Member(std::string_view name, std::string_view wire, int depth) {
    if (!walk_.CountNode()) return false;
    ParsedValue value;
    if (!ParseValue(wire, value)) return FailWire();
    switch (value.tag) {
      case kNullTag:
        AppendMemberHead(kBsonNull, name, out_);
        return true;
      case kBoolTag:
        AppendMemberHead(kBsonBool, name, out_);
        out_.push_back(value.bits != 0 ? '\1' : '\0');
        return true;
      case kNumberTag:
        return Number(name, value.number());
      case kTextTag:
        if (!IsUtf8(value.bytes)) {
          return Fail("is not UTF-8", "write text in UTF-8 and other bytes as $binary");
        }
        AppendMemberHead(kBsonString, name, out_);
        AppendStringValue(value.bytes, out_);
        return true;
      case kListTag:
        if (!walk_.MayNest(depth)) return false;
        AppendMemberHead(kBsonArray, name, out_);
        return List(value.bytes, depth + 1);
      case kStructTag:
        return ObjectOrWrapper(name, value.bytes, depth);
      default:
        return Fail("is a google.protobuf.Value without a kind", "set null_value for null");
    }
  }

  bool Number(std::string_view name, double number) {
    if (!std::isfinite(number)) return walk_.RefuseNotFinite();
    const bool whole = number == std::floor(number) && !(number == 0 && std::signbit(number));
    if (!whole) {
      AppendMemberHead(kBsonDouble, name, out_);
      AppendNumber(number, out_);
      return true;
    }
    if (!(std::fabs(number) < static_cast<double>(kExactInDoubleEnd))) return FailRounded();
    const auto integer = static_cast<int64_t>(number);
    if (integer == static_cast<int32_t>(integer)) {
      AppendMemberHead(kBsonInt32, name, out_);
      AppendNumber(static_cast<int32_t>(integer), out_);
    } else {
      AppendMemberHead(kBsonInt64, name, out_);
      AppendNumber(integer, out_);
    }
    return true;
  }

  bool ObjectOrWrapper(std::string_view name, std::string_view wire, int depth) {
    const size_t entries_begin = entries_.size();
    std::string_view wrapper_name;
    if (!AddEntries(wire, wrapper_name)) return false;
    if (!wrapper_name.empty()) return Wrapper(name, wrapper_name, entries_begin);
    if (!walk_.MayNest(depth)) return false;
    AppendMemberHead(kBsonObject, name, out_);
    return Object(entries_begin, depth + 1);
  }

  bool Wrapper(std::string_view name, std::string_view wrapper_name, size_t entries_begin) {
    WrapperArgument argument;
    if (entries_.size() - entries_begin != 1) return FailWrapper(wrapper_name);
    if (!Argument(entries_[entries_begin].value, argument)) return false;
    entries_.Truncate(entries_begin);
    const std::optional<Value> value = ReadWrapper(wrapper_name, argument);
    if (!value) return FailWrapper(wrapper_name);
    AppendMember(value->type, name, value->bytes, out_);
    return true;
  }

  bool Argument(std::string_view wire, WrapperArgument& argument) {
    ParsedValue value;
    if (!ParseValue(wire, value)) return FailWire();
    argument.is_object = value.tag == kStructTag;
    if (!argument.is_object) return Part({}, value, argument.scalar);
    const size_t entries_begin = entries_.size();
    std::string_view inner_wrapper;
    if (!AddEntries(value.bytes, inner_wrapper)) return false;
    for (size_t i = entries_begin; i < entries_.size(); ++i, ++argument.part_count) {
      if (argument.part_count >= 2) continue;
      ParsedValue inner;
      if (!ParseValue(entries_[i].value, inner)) return FailWire();
      if (!Part(entries_[i].name, inner, argument.parts[argument.part_count])) return false;
    }
    entries_.Truncate(entries_begin);
    return true;
  }

  bool Part(std::string_view name, const ParsedValue& value, WrapperPart& part) {
    part.name = name;
    if (value.tag == kTextTag) {
      if (!IsUtf8(value.bytes)) return Fail("is not UTF-8", "write text in UTF-8");
      part.kind = WrapperPart::Kind::kString;
      part.text = value.bytes;
    } else if (value.tag == kNumberTag) {
      part.kind = WrapperPart::Kind::kNumber;
      part.number = value.number();
    }
    return true;
  }

  bool FailRounded() {
    return Fail(
        "is a whole number of 2^53 or more in size, which was perhaps rounded before it arrived",
        R"(write an integer as {"$numberLong": "digits"} and a double as )"
        R"({"$numberDouble": "digits"})");
  }

  bool FailWrapper(std::string_view wrapper_name) {
    return Fail(WrapperProblem(wrapper_name), WrapperAdvice(wrapper_name));
  }

  ContentWalk walk_;
  const std::string_view whole_;
  std::string out_;
  StructEntries entries_;
};

absl::StatusOr<Value> WithinSize(absl::StatusOr<Value> value, const Limits& limits) {
  if (value.ok() && value->bytes.size() > limits.bytes_max) {
    return TooLargeError("BSON", value->bytes.size(), limits.bytes_max);
  }
  return value;
}

}  // namespace

absl::StatusOr<Content> ContentFromStruct(std::string_view struct_wire, const Limits& limits) {
  ASSIGN_OR_RETURN(std::string bytes, StructReader(limits, "the content").Document(struct_wire));
  Content content = Content::FromTrusted(std::move(bytes));
  RETURN_IF_ERROR(CheckSizes(content, limits));
  return content;
}

absl::StatusOr<Value> ValueFromProto(std::string_view value_wire, const Limits& limits) {
  return WithinSize(StructReader(limits, "the value").SingleValue(value_wire), limits);
}

absl::StatusOr<Value> ArrayFromListValue(std::string_view list_wire, const Limits& limits) {
  return WithinSize(StructReader(limits, "the list").Array(list_wire), limits);
}

}  // namespace strata::document
