// Changes to a document, made where they belong in the BSON bytes.
#include "schemas/document/patch.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"
#include "schemas/document/addition.h"
#include "schemas/document/bson_view.h"
#include "schemas/document/compare.h"
#include "schemas/document/compare_numbers.h"
#include "schemas/document/content_error.h"
#include "schemas/document/meaning.h"
#include "schemas/document/merge.h"

namespace strata::document {
namespace {

// How many times the document an operation counts for: those that compare elements are slower.
size_t Readings(OperationKind kind) {
  return kind == OperationKind::kAppendMissing || kind == OperationKind::kRemoveAll ? 8 : 1;
}

// The same for who has to know beforehand how long it takes: of decimals that agree in many digits
// a comparison takes a microsecond, for 19 bytes.
constexpr size_t kComparingReadings = 100;

// Where a path leads in a document.
struct Place {
  enum class Kind {
    kFound,
    kAbsent,     // the last container has room for it
    kScalar,     // the path goes on after a value that has no members
    kBadIndex,   // a segment that names no element of an array
    kBeyondEnd,  // an index past the end of an array
  };
  Kind kind = Kind::kAbsent;
  size_t segments = 0;             // how many of the path's segments were found
  std::vector<size_t> containers;  // offsets of the documents that were entered, outermost first
  bool in_array = false;           // the innermost of them is an array
  size_t element_count = 0;        // kAbsent in an array: how many elements it has
  size_t head = 0;                 // kFound: the member's offset
  Member member;                   // kFound; views into the document
};

// An object of objects, one for each segment, around the value.
Value Nested(const std::vector<std::string>& segments, size_t from, const Value& value) {
  Value nested = value;
  for (size_t i = segments.size(); i-- > from;) {
    std::string object;
    const size_t start = BeginDocument(object);
    AppendMember(nested.type, segments[i], nested.bytes, object);
    EndDocument(start, object);
    nested = Value{kBsonObject, std::move(object)};
  }
  return nested;
}

// Equal elements: those that filters take for equal, whatever the order of members.
struct InOrder {
  bool operator()(const Value& a, const Value& b) const {
    return Compare(a.type, a.bytes, b.type, b.bytes) < 0;
  }
};
using ValueSet = std::set<Value, InOrder>;

Value Comparable(const Member& member) { return WithSortedMembers(member.type, member.value); }

ValueSet ElementsOf(std::string_view array) {
  ValueSet values;
  Member member;
  for (MemberReader reader(array); reader.Next(member);) values.insert(Comparable(member));
  return values;
}

// The elements of `array` that `keep` wants, numbered anew.
template <typename Keep>
std::string Filtered(std::string_view array, Keep keep) {
  std::string kept;
  const size_t start = BeginDocument(kept);
  IndexName index;
  Member member;
  for (MemberReader reader(array); reader.Next(member);) {
    if (!keep(member)) continue;
    AppendMember(member.type, index.text(), member.value, kept);
    index.Next();
  }
  EndDocument(start, kept);
  return kept;
}

// The array's elements without those that stand in it or in `present` before.
std::string WithoutRepeats(std::string_view array, ValueSet present) {
  return Filtered(array,
                  [&](const Member& member) { return present.insert(Comparable(member)).second; });
}

class Editor {
 public:
  explicit Editor(std::string document) : document_(std::move(document)) {}

  absl::Status Apply(const Operation& operation, size_t position) {
    operation_ = &operation;
    position_ = position;
    RETURN_IF_ERROR(CheckOperand());
    RETURN_IF_ERROR(CheckWork());
    if (operation.path.segments().empty()) return ReplaceDocument();
    place_ = Find(operation.path.segments());
    switch (operation.kind) {
      case OperationKind::kSet:
        if (place_.kind == Place::Kind::kFound) return Assign(operation.operand);
        return AddAbsent(operation.operand);
      case OperationKind::kUnset:
        return Unset();
      case OperationKind::kIncrement:
        return Increment();
      case OperationKind::kAppend:
      case OperationKind::kAppendMissing:
        return Append(operation.kind == OperationKind::kAppendMissing);
      case OperationKind::kRemoveAll:
        return RemoveAll();
    }
    return Refuse("is of an unknown kind");
  }

  std::string Take() { return std::move(document_); }

 private:
  absl::Status Refuse(std::string_view problem) const {
    const std::string path = ShownPath(operation_->path.ToString());
    const std::string field = absl::StrCat("operations[", position_, "]");
    return Error(ErrorReason::kInvalidPatch,
                 absl::StrCat(field, " on \"", path, "\" ", ToAbsl(problem)))
        .With("field", field)
        .With("path", path)
        .With("problem", problem);
  }

  absl::Status CheckOperand() const {
    const uint8_t type = operation_->operand.type;
    switch (operation_->kind) {
      case OperationKind::kIncrement:
        if (IsNumber(type)) return absl::OkStatus();
        return Refuse("increments by something that is not an int32, int64, double or decimal128");
      case OperationKind::kAppend:
      case OperationKind::kAppendMissing:
      case OperationKind::kRemoveAll:
        if (type == kBsonArray) return absl::OkStatus();
        return Refuse("needs an array of elements");
      default:
        return absl::OkStatus();
    }
  }

  absl::Status CheckWork() {
    work_bytes_ += document_.size() * Readings(operation_->kind);
    if (work_bytes_ <= Patch::kWorkBytesMax) return absl::OkStatus();
    return Refuse(
        "is more than a patch of a document of this size may hold; send fewer operations, or set "
        "whole objects instead of their members");
  }

  absl::Status ReplaceDocument() {
    if (operation_->kind != OperationKind::kSet || operation_->operand.type != kBsonObject) {
      return Refuse(
          "names the whole document, which can only be set, and only to an object; name a "
          "member, such as \"/stock\"");
    }
    document_ = operation_->operand.bytes;
    return absl::OkStatus();
  }

  Place Find(const std::vector<std::string>& segments) const {
    Place place;
    place.containers.push_back(0);
    for (; place.segments < segments.size(); ++place.segments) {
      if (place.segments > 0 && !Enter(place)) return place;
      if (!FindMember(segments[place.segments], place)) return place;
    }
    place.kind = Place::Kind::kFound;
    return place;
  }

  bool Enter(Place& place) const {
    if (!IsContainer(place.member.type)) {
      place.kind = Place::Kind::kScalar;
      return false;
    }
    place.in_array = place.member.type == kBsonArray;
    place.containers.push_back(static_cast<size_t>(place.member.value.data() - document_.data()));
    return true;
  }

  bool FindMember(std::string_view segment, Place& place) const {
    const int wanted = place.in_array && segment != "-" ? ArrayIndex(segment) : -1;
    if (place.in_array && segment != "-" && wanted < 0) {
      place.kind = Place::Kind::kBadIndex;
      return false;
    }
    const size_t offset = place.containers.back();
    const auto size = static_cast<size_t>(LoadNumber<int32_t>(document_.data() + offset));
    size_t count = 0;
    for (MemberReader reader({document_.data() + offset, size}); reader.Next(place.member);) {
      if (place.in_array ? static_cast<size_t>(wanted) == count && wanted >= 0
                         : place.member.name == segment) {
        place.head = static_cast<size_t>(place.member.name.data() - document_.data()) - 1;
        return true;
      }
      ++count;
    }
    place.element_count = count;
    const bool beyond = place.in_array && wanted >= 0 && static_cast<size_t>(wanted) > count;
    place.kind = beyond ? Place::Kind::kBeyondEnd : Place::Kind::kAbsent;
    return false;
  }

  // Puts `bytes` in the place of `size` bytes inside the innermost container that was entered.
  void Splice(size_t at, size_t size, std::string_view bytes) {
    document_.replace(at, size, bytes);
    for (const size_t container : place_.containers) {
      const int32_t length = LoadNumber<int32_t>(document_.data() + container) +
                             static_cast<int32_t>(bytes.size()) - static_cast<int32_t>(size);
      std::memcpy(document_.data() + container, &length, sizeof(length));
    }
  }

  size_t ValueOffset() const {
    return static_cast<size_t>(place_.member.value.data() - document_.data());
  }

  // The offset of the closing zero of a document.
  size_t EndOf(size_t document) const {
    return document + static_cast<size_t>(LoadNumber<int32_t>(document_.data() + document)) - 1;
  }

  // REQUIRES: found.
  absl::Status Assign(const Value& value) {
    document_[place_.head] = static_cast<char>(value.type);
    Splice(ValueOffset(), place_.member.value.size(), value.bytes);
    return absl::OkStatus();
  }

  // REQUIRES: not found. Makes the parents that are missing.
  absl::Status AddAbsent(const Value& value) {
    switch (place_.kind) {
      case Place::Kind::kScalar:
        return Refuse(
            "goes through a value that is neither an object nor an array; set that value "
            "first");
      case Place::Kind::kBadIndex:
        return Refuse("goes through an array; name an element by its index, or \"-\" to append");
      case Place::Kind::kBeyondEnd:
        return Refuse("names an element past the end of an array; append with \"-\"");
      default:
        break;
    }
    const std::vector<std::string>& segments = operation_->path.segments();
    const Value nested = Nested(segments, place_.segments + 1, value);
    const std::string name =
        place_.in_array ? std::to_string(place_.element_count) : segments[place_.segments];
    std::string member;
    AppendMember(nested.type, name, nested.bytes, member);
    Splice(EndOf(place_.containers.back()), 0, member);
    return absl::OkStatus();
  }

  absl::Status Unset() {
    if (place_.kind != Place::Kind::kFound) return absl::OkStatus();
    if (place_.in_array) return Assign(Value{});
    const size_t end = ValueOffset() + place_.member.value.size();
    Splice(place_.head, end - place_.head, {});
    return absl::OkStatus();
  }

  absl::Status Increment() {
    const Value& by = operation_->operand;
    if (place_.kind != Place::Kind::kFound) return AddAbsent(by);
    const Member& old = place_.member;
    if (!IsNumber(old.type)) {
      return Refuse(
          "increments a value that is not an int32, int64, double or decimal128; set it to one "
          "first");
    }
    const Addition added = AddNumbers(old.type, old.value, by.type, by.bytes);
    return added.problem.empty() ? Assign(added.sum) : Refuse(added.problem);
  }

  absl::Status Append(bool missing_only) {
    const Value& elements = operation_->operand;
    if (place_.kind != Place::Kind::kFound) {
      if (!missing_only) return AddAbsent(elements);
      return AddAbsent(Value{kBsonArray, WithoutRepeats(elements.bytes, {})});
    }
    if (place_.member.type != kBsonArray)
      return Refuse("appends to a value that is not an array; set it to one first");
    const std::string_view present = place_.member.value;
    std::string added;
    if (missing_only) added = WithoutRepeats(elements.bytes, ElementsOf(present));
    IndexName index;
    Member member;
    for (MemberReader reader(present); reader.Next(member);) index.Next();
    std::string members;
    MemberReader reader(missing_only ? std::string_view(added) : elements.bytes);
    for (; reader.Next(member); index.Next()) {
      AppendMember(member.type, index.text(), member.value, members);
    }
    place_.containers.push_back(ValueOffset());
    Splice(EndOf(place_.containers.back()), 0, members);
    return absl::OkStatus();
  }

  absl::Status RemoveAll() {
    if (place_.kind != Place::Kind::kFound) return absl::OkStatus();
    if (place_.member.type != kBsonArray) {
      return Refuse("removes elements from a value that is not an array; set what is to stay");
    }
    const ValueSet unwanted = ElementsOf(operation_->operand.bytes);
    return Assign(Value{kBsonArray, Filtered(place_.member.value, [&](const Member& member) {
                          return !unwanted.contains(Comparable(member));
                        })});
  }

  std::string document_;
  const Operation* operation_ = nullptr;
  size_t position_ = 0;
  size_t work_bytes_ = 0;  // by all operations so far
  Place place_;
};

}  // namespace

size_t WorkBytes(const Patch& patch, size_t document_bytes) {
  size_t bytes = 0;
  for (const Operation& operation : patch.operations) {
    bytes += document_bytes * (Readings(operation.kind) > 1 ? kComparingReadings : 1);
  }
  return bytes;
}

absl::StatusOr<Content> ApplyPatch(const Content& base, const Patch& patch, const Limits& limits) {
  if (patch.operations.size() > Patch::kOperationsMax) {
    return Error(ErrorReason::kInvalidPatch,
                 absl::StrCat("the patch has ", patch.operations.size(),
                              " operations, and the limit is ", Patch::kOperationsMax,
                              "; set whole objects instead of their members"))
        .With("field", "operations")
        .With("limit", static_cast<int64_t>(Patch::kOperationsMax));
  }
  std::string document;
  if (patch.merge) {
    AppendMerged(base.bytes(), patch.merge->bytes(), document);
  } else {
    document = base.bytes();
  }
  Editor editor(std::move(document));
  for (size_t i = 0; i < patch.operations.size(); ++i) {
    RETURN_IF_ERROR(editor.Apply(patch.operations[i], i));
  }
  Content result = Content::FromTrusted(editor.Take());
  RETURN_IF_ERROR(CheckLimits(result, limits));
  return result;
}

}  // namespace strata::document
