// From the wire form of google.protobuf.Struct to BSON.
#include "schemas/document/json.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"
#include "schemas/document/bson_check.h"
#include "schemas/document/bson_view.h"
#include "schemas/document/content_error.h"
#include "schemas/document/struct_wire.h"
#include "schemas/document/utf8.h"
#include "schemas/document/wrapper.h"

namespace strata::document {
namespace {

// Doubles hold every whole number below this; from here on a number was perhaps rounded.
constexpr double kExactBelow = 9007199254740992.0;  // 2^53

// A Value message, its kind told apart. Messages inside are still bytes.
struct ParsedValue {
  uint64_t tag = 0;  // 0: no kind is set
  uint64_t bits = 0;
  std::string_view bytes;

  double number() const { return LoadNumber<double>(reinterpret_cast<const char*>(&bits)); }
};

struct Entry {
  std::string_view name;
  std::string_view value;  // a Value message
};

class StructReader {
 public:
  explicit StructReader(const Limits& limits) : limits_(limits) {}

  absl::StatusOr<std::string> Document(std::string_view wire) {
    out_.reserve(wire.size() + wire.size() / 8 + 16);
    const size_t entries_begin = 0;
    std::string_view wrapper_name;
    if (!CollectEntries(wire, wrapper_name)) return Problem();
    if (!wrapper_name.empty()) {
      Trail::Level level(trail_);
      level.At(wrapper_name);
      Fail("has the name of an Extended JSON wrapper, but is a member of the document itself",
           "put the value in a member of its own");
      return Problem();
    }
    if (!Object(entries_begin, /*depth=*/1)) return Problem();
    return std::move(out_);
  }

  // Leaves the value behind a member head without name.
  absl::StatusOr<Value> SingleValue(std::string_view wire) {
    if (!Member({}, wire, /*depth=*/0)) return Problem();
    return Value{static_cast<uint8_t>(out_[0]), out_.substr(2)};
  }

  absl::StatusOr<Value> Array(std::string_view wire) {
    if (!List(wire, /*depth=*/1)) return Problem();
    return Value{kBsonArray, std::move(out_)};
  }

 private:
  absl::Status Problem() const {
    const Error error = ContentError(pointer_, problem_, advice_);
    if (limit_ < 0) return error;
    return Error(error).With("limit", limit_);
  }

  bool Fail(std::string_view problem, std::string_view advice) {
    pointer_ = trail_.Pointer();
    problem_ = problem;
    advice_ = advice;
    return false;
  }
  bool FailWire() {
    return Fail("is not well-formed as google.protobuf.Struct",
                "send what a protobuf library writes");
  }

  // Puts a Struct's entries at the end of entries_, sorted by name, the last of equal names only.
  // Tells the first name that only a wrapper may have.
  bool CollectEntries(std::string_view wire, std::string_view& wrapper_name) {
    const auto begin = static_cast<ptrdiff_t>(entries_.size());
    WireReader reader(wire);
    WireField field;
    while (reader.Next(field)) {
      if (field.tag != kFieldsTag) continue;
      Entry entry;
      if (!ReadEntry(field.bytes, entry)) return false;
      if (wrapper_name.empty() && IsWrapperName(entry.name)) wrapper_name = entry.name;
      entries_.push_back(entry);
    }
    if (reader.failed()) return FailWire();
    const auto by_name = [](const Entry& a, const Entry& b) { return a.name < b.name; };
    if (!std::is_sorted(entries_.begin() + begin, entries_.end(), by_name)) {
      std::stable_sort(entries_.begin() + begin, entries_.end(), by_name);
    }
    DropOverwritten(static_cast<size_t>(begin));
    return true;
  }

  bool ReadEntry(std::string_view wire, Entry& entry) {
    WireReader reader(wire);
    WireField field;
    bool has_value = false;
    while (reader.Next(field)) {
      if (field.tag == kNameTag) entry.name = field.bytes;
      if (field.tag != kValueTag) continue;
      // Protobuf would merge two; nothing that writes Structs relies on it.
      if (has_value) return FailWire();
      has_value = true;
      entry.value = field.bytes;
    }
    if (reader.failed()) return FailWire();
    if (!IsUtf8(entry.name)) {
      return Fail("has a member whose name is not UTF-8", "write names in UTF-8");
    }
    if (entry.name.find('\0') != std::string_view::npos) {
      return Fail("has a member whose name contains a zero byte", "use a name without it");
    }
    return true;
  }

  // As protobuf does with a map: of entries with the same key the last one counts.
  void DropOverwritten(size_t begin) {
    size_t kept = begin;
    for (size_t i = begin; i < entries_.size(); ++i) {
      if (i + 1 < entries_.size() && entries_[i + 1].name == entries_[i].name) continue;
      entries_[kept++] = entries_[i];
    }
    entries_.resize(kept);
  }

  // Writes the entries from `entries_begin` on as a BSON document and takes them off.
  bool Object(size_t entries_begin, int depth) {
    const size_t entries_end = entries_.size();
    const size_t start = BeginDocument(out_);
    Trail::Level level(trail_);
    for (size_t i = entries_begin; i < entries_end; ++i) {
      const Entry entry = entries_[i];
      level.At(entry.name);
      if (!Member(entry.name, entry.value, depth)) return false;
    }
    entries_.resize(entries_begin);
    EndDocument(start, out_);
    return true;
  }

  bool List(std::string_view wire, int depth) {
    const size_t start = BeginDocument(out_);
    Trail::Level level(trail_);
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

  bool Parse(std::string_view wire, ParsedValue& value) {
    WireReader reader(wire);
    WireField field;
    while (reader.Next(field)) {
      switch (field.tag) {
        case kStructTag:
        case kListTag:
          // As above.
          if (value.tag == field.tag) return FailWire();
          [[fallthrough]];
        case kTextTag:
          value = {field.tag, 0, field.bytes};
          break;
        case kNullTag:
        case kNumberTag:
        case kBoolTag:
          value = {field.tag, field.number, {}};
          break;
        default:
          break;
      }
    }
    return !reader.failed() || FailWire();
  }

  // Writes one member, whose value lies at `depth` + 1 if it is an object or array.
  bool Member(std::string_view name, std::string_view wire, int depth) {
    if (++nodes_ > limits_.nodes_max) return FailNodes();
    ParsedValue value;
    if (!Parse(wire, value)) return false;
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
        if (depth >= limits_.depth_max) return FailDepth();
        AppendMemberHead(kBsonArray, name, out_);
        return List(value.bytes, depth + 1);
      case kStructTag:
        return ObjectOrWrapper(name, value.bytes, depth);
      default:
        return Fail("is a google.protobuf.Value without a kind", "set null_value for null");
    }
  }

  bool Number(std::string_view name, double number) {
    if (!std::isfinite(number)) {
      return Fail("is NaN or infinite",
                  "store finite numbers only: leave the member out, or write null or a string");
    }
    const bool whole = number == std::floor(number) && !(number == 0 && std::signbit(number));
    if (!whole) {
      AppendMemberHead(kBsonDouble, name, out_);
      AppendNumber(number, out_);
      return true;
    }
    if (!(std::fabs(number) < kExactBelow)) return FailRounded();
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
    if (!CollectEntries(wire, wrapper_name)) return false;
    if (!wrapper_name.empty()) return Wrapper(name, wrapper_name, entries_begin);
    if (depth >= limits_.depth_max) return FailDepth();
    AppendMemberHead(kBsonObject, name, out_);
    return Object(entries_begin, depth + 1);
  }

  bool Wrapper(std::string_view name, std::string_view wrapper_name, size_t entries_begin) {
    WrapperArgument argument;
    if (entries_.size() - entries_begin != 1) return FailWrapper(wrapper_name);
    if (!Argument(entries_[entries_begin].value, argument)) return false;
    entries_.resize(entries_begin);
    const std::optional<Value> value = ReadWrapper(wrapper_name, argument);
    if (!value) return FailWrapper(wrapper_name);
    AppendMember(value->type, name, value->bytes, out_);
    return true;
  }

  bool Argument(std::string_view wire, WrapperArgument& argument) {
    ParsedValue value;
    if (!Parse(wire, value)) return false;
    argument.is_object = value.tag == kStructTag;
    if (!argument.is_object) return Part({}, value, argument.scalar);
    const size_t entries_begin = entries_.size();
    std::string_view inner_wrapper;
    if (!CollectEntries(value.bytes, inner_wrapper)) return false;
    for (size_t i = entries_begin; i < entries_.size(); ++i, ++argument.part_count) {
      if (argument.part_count >= 2) continue;
      ParsedValue inner;
      if (!Parse(entries_[i].value, inner)) return false;
      if (!Part(entries_[i].name, inner, argument.parts[argument.part_count])) return false;
    }
    entries_.resize(entries_begin);
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
    return Fail("is a whole number beyond 2^53, which was perhaps rounded before it arrived",
                R"(write an integer as {"$numberLong": "digits"} and a double as )"
                R"({"$numberDouble": "digits"})");
  }

  bool FailWrapper(std::string_view wrapper_name) {
    return Fail(absl::StrCat("has the name of the Extended JSON wrapper ", ToAbsl(wrapper_name),
                             " but is not exactly that wrapper"),
                absl::StrCat("write ", ToAbsl(WrapperForm(wrapper_name)),
                             " with nothing else in the object, or use another member name"));
  }
  bool FailDepth() {
    limit_ = limits_.depth_max;
    return Fail(absl::StrCat("lies deeper than ", limits_.depth_max, " levels"),
                "store a flatter document");
  }
  bool FailNodes() {
    limit_ = limits_.nodes_max;
    return Fail(absl::StrCat("is one more than the ", limits_.nodes_max,
                             " members and array elements that a document may have"),
                "split the document");
  }

  const Limits& limits_;
  std::string out_;
  int nodes_ = 0;
  std::vector<Entry> entries_;  // of all Structs that are open, outermost first
  Trail trail_;
  std::string pointer_;
  std::string problem_;
  std::string advice_;
  int64_t limit_ = -1;
};

absl::StatusOr<Value> WithinSize(absl::StatusOr<Value> value, const Limits& limits) {
  if (value.ok() && value->bytes.size() > limits.bytes_max) {
    return TooLargeError("BSON", value->bytes.size(), limits.bytes_max);
  }
  return value;
}

}  // namespace

absl::StatusOr<Content> ContentFromStruct(std::string_view struct_wire, const Limits& limits) {
  ASSIGN_OR_RETURN(std::string bytes, StructReader(limits).Document(struct_wire));
  Content content = Content::FromTrusted(std::move(bytes));
  RETURN_IF_ERROR(CheckSizes(content, limits));
  return content;
}

absl::StatusOr<Value> ValueFromProto(std::string_view value_wire, const Limits& limits) {
  return WithinSize(StructReader(limits).SingleValue(value_wire), limits);
}

absl::StatusOr<Value> ArrayFromListValue(std::string_view list_wire, const Limits& limits) {
  return WithinSize(StructReader(limits).Array(list_wire), limits);
}

}  // namespace strata::document
