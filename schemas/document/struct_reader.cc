// From the wire form of google.protobuf.Struct to BSON.
#include <cmath>

#include "schemas/base/status_macros.h"
#include "schemas/base/utf8.h"
#include "schemas/document/bson_check.h"
#include "schemas/document/bson_view.h"
#include "schemas/document/content_error.h"
#include "schemas/document/content_walk.h"
#include "schemas/document/extended_json/wrapper.h"
#include "schemas/document/open_structs.h"
#include "schemas/document/struct_codec.h"
#include "schemas/document/struct_message.h"
#include "schemas/document/struct_wire.h"

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
    if (!open_.Open(wire, wrapper_name)) return Refusal();
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

  // Writes the entries from `entries_begin` on as a BSON document and takes them off.
  bool Object(size_t entries_begin, int depth) {
    const size_t entries_end = open_.size();
    const size_t start = BeginDocument(out_);
    Trail::Level level(walk_.trail());
    for (size_t i = entries_begin; i < entries_end; ++i) {
      const StructEntry entry = open_[i];
      level.At(entry.name);
      if (!Member(entry.name, entry.value, depth)) return false;
    }
    open_.Close(entries_begin);
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
    if (reader.failed()) return open_.RefuseWire();
    EndDocument(start, out_);
    return true;
  }

  // Writes one member, whose value lies at `depth` + 1 if it is an object or array.
  bool Member(std::string_view name, std::string_view wire, int depth) {
    if (!walk_.CountNode()) return false;
    ParsedValue value;
    if (!ParseValue(wire, value)) return open_.RefuseWire();
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
    const size_t entries_begin = open_.size();
    std::string_view wrapper_name;
    if (!open_.Open(wire, wrapper_name)) return false;
    if (!wrapper_name.empty()) {
      Value value;
      if (!open_.CloseWrapper(wrapper_name, entries_begin, value)) return false;
      AppendMember(value.type, name, value.bytes, out_);
      return true;
    }
    if (!walk_.MayNest(depth)) return false;
    AppendMemberHead(kBsonObject, name, out_);
    return Object(entries_begin, depth + 1);
  }

  bool FailRounded() {
    return Fail(
        "is a whole number of 2^53 or more in size, which was perhaps rounded before it arrived",
        R"(write an integer as {"$numberLong": "digits"} and a double as )"
        R"({"$numberDouble": "digits"})");
  }

  ContentWalk walk_;
  OpenStructs open_{walk_};
  const std::string_view whole_;
  std::string out_;
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
