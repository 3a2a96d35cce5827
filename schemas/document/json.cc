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
  uint64_t prefix = 0;     // the first bytes of the name as a number, behind them zeros
};

// Orders as the names' bytes do, which contain no zeros.
bool ByName(const Entry& a, const Entry& b) {
  return a.prefix != b.prefix ? a.prefix < b.prefix : a.name < b.name;
}

uint64_t NamePrefix(std::string_view name) {
  if (name.size() >= 8) return __builtin_bswap64(LoadNumber<uint64_t>(name));
  uint64_t prefix = 0;
  for (const char c : name) prefix = prefix << 8 | static_cast<uint8_t>(c);
  return name.empty() ? 0 : prefix << 8 * (8 - name.size());
}

class StructReader {
 public:
  // `whole` is what errors call what is read.
  StructReader(const Limits& limits, std::string_view whole) : limits_(limits), whole_(whole) {}

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
    const Error error = ContentError(pointer_, problem_, advice_, whole_);
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
      const bool dollar = !entry.name.empty() && entry.name[0] == '$';
      if (dollar && wrapper_name.empty() && IsWrapperName(entry.name)) wrapper_name = entry.name;
      entries_.push_back(entry);
    }
    if (reader.failed()) return FailWire();
    SortEntries(begin);
    DropOverwritten(static_cast<size_t>(begin));
    return true;
  }

  // Stable. Few entries are put in order by hand: std::stable_sort allocates.
  void SortEntries(ptrdiff_t begin) {
    const auto first = entries_.begin() + begin;
    if (entries_.end() - first > 24) {
      if (!std::is_sorted(first, entries_.end(), ByName)) {
        std::stable_sort(first, entries_.end(), ByName);
      }
      return;
    }
    for (auto entry = first; entry != entries_.end(); ++entry) {
      const Entry moved = *entry;
      auto place = entry;
      for (; place != first && ByName(moved, *(place - 1)); --place) *place = *(place - 1);
      *place = moved;
    }
  }

  bool ReadEntry(std::string_view wire, Entry& entry) {
    if (!ReadShortEntry(wire, entry) && !ReadAnyEntry(wire, entry)) return false;
    if (!IsUtf8(entry.name)) {
      return Fail("has a member whose name is not UTF-8", "write names in UTF-8");
    }
    entry.prefix = NamePrefix(entry.name);
    if (FindZero(entry.name.data(), entry.name.data() + entry.name.size()) != nullptr) {
      return Fail("has a member whose name contains a zero byte", "use a name without it");
    }
    return true;
  }

  // The form that nearly all entries have: name, then value, both lengths in one byte.
  static bool ReadShortEntry(std::string_view wire, Entry& entry) {
    if (wire.size() < 4 || wire.size() >= 0x80 || wire[0] != kNameTag) return false;
    const auto name_size = static_cast<uint8_t>(wire[1]);
    if (size_t{name_size} + 4 > wire.size() || wire[name_size + size_t{2}] != kValueTag)
      return false;
    entry.name = wire.substr(2, name_size);
    entry.value = wire.substr(name_size + size_t{4});
    return entry.value.size() == static_cast<uint8_t>(wire[name_size + size_t{3}]);
  }

  bool ReadAnyEntry(std::string_view wire, Entry& entry) {
    entry = Entry{};
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
    return !reader.failed() || FailWire();
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

  // The form that nearly all values have: one field, its length in one byte.
  static bool ParseShort(std::string_view wire, ParsedValue& value) {
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

  bool Parse(std::string_view wire, ParsedValue& value) {
    if (ParseShort(wire, value)) return true;
    value = ParsedValue{};
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
    return Fail(
        "is a whole number of 2^53 or more in size, which was perhaps rounded before it arrived",
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
  const std::string_view whole_;
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
