// State is read into a vector sorted by name, changed there and written back; members that are no
// part of it are copied as bytes.
#include "schemas/enrollment/sequence_guard.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/document/bson_view.h"
#include "schemas/document/path.h"

namespace strata::enrollment {
namespace {

using document::Content;
using document::Member;
using document::MemberReader;

constexpr size_t kSetBytesMax = 64;
constexpr std::string_view kStudentId = "student_id";

// The members that hold the state of one set.
struct Names {
  explicit Names(std::string_view set_name)
      : set(set_name),
        tombstones("deleted_" + set),
        floor(set == kDefaultSet ? "purged_through" : "purged_through_" + set) {}

  bool Hold(std::string_view name) const {
    return name == set || name == tombstones || name == floor;
  }

  std::string set;
  std::string tombstones;
  std::string floor;
};

absl::Status ShapeError(const std::string& path, std::string_view problem) {
  return Error(ErrorReason::kEnrollmentShape,
               path + " " + std::string(problem) +
                   "; an enrollment is {\"name\": string, \"seq\": integer}, or a string for one "
                   "that is older than the numbers")
      .With("path", path);
}

std::string PathOf(std::string_view name) {
  std::string path;
  document::AppendSegment(name, path);
  return path;
}

absl::StatusOr<Enrollment> ReadEntry(const Member& element, const std::string& path) {
  Enrollment entry;
  if (element.type == document::kBsonString) {
    entry.class_name = document::StringText(element.value);
    return entry;
  }
  if (element.type != document::kBsonObject) {
    return ShapeError(path, "is neither an object nor a string");
  }
  bool named = false;
  bool numbered = false;
  Member member;
  for (MemberReader reader(element.value); reader.Next(member);) {
    if (member.name == "name" && member.type == document::kBsonString) {
      entry.class_name = document::StringText(member.value);
      named = true;
    } else if (member.name == "seq" && document::IsInteger(member.type)) {
      entry.sequence_number = document::LoadInteger(member.type, member.value);
      numbered = true;
      if (entry.sequence_number < 0) return ShapeError(path + "/seq", "is negative");
    } else {
      return ShapeError(path + PathOf(member.name), "is not expected here, or of another type");
    }
  }
  if (!named) return ShapeError(path, "has no name");
  if (!numbered) return ShapeError(path, "has no seq");
  return entry;
}

absl::Status ReadEntries(const Member& array, bool enrolled, std::vector<Enrollment>& all) {
  const std::string path = PathOf(array.name);
  if (array.type != document::kBsonArray) return ShapeError(path, "is not an array");
  Member element;
  for (MemberReader reader(array.value); reader.Next(element);) {
    ASSIGN_OR_RETURN(Enrollment entry, ReadEntry(element, path + PathOf(element.name)));
    entry.enrolled = enrolled;
    all.push_back(std::move(entry));
  }
  return absl::OkStatus();
}

bool ByName(const Enrollment& a, const Enrollment& b) { return a.class_name < b.class_name; }

// The class's place in the sorted entries; where it would go, if it is not known.
std::vector<Enrollment>::iterator Find(std::vector<Enrollment>& all, const std::string& name) {
  return std::lower_bound(all.begin(), all.end(), Enrollment{name, 0, false}, ByName);
}

void AppendEntries(const std::string& name, const std::vector<Enrollment>& all, bool enrolled,
                   std::string& out) {
  document::AppendMemberHead(document::kBsonArray, name, out);
  const size_t array = document::BeginDocument(out);
  document::IndexName index;
  for (const Enrollment& entry : all) {
    if (entry.enrolled != enrolled) continue;
    document::AppendMemberHead(document::kBsonObject, index.text(), out);
    const size_t object = document::BeginDocument(out);
    document::AppendMemberHead(document::kBsonString, "name", out);
    document::AppendStringValue(entry.class_name, out);
    document::AppendMemberHead(document::kBsonInt64, "seq", out);
    document::AppendNumber(entry.sequence_number, out);
    document::EndDocument(object, out);
    index.Next();
  }
  document::EndDocument(array, out);
}

// The content with the set's state in place of what it had: where the set stands, or at the end. An
// empty `student_id` is not added.
Content WithEnrollments(const Content& student, std::string_view student_id, const Names& names,
                        const EnrollmentSet& state) {
  std::string out;
  const size_t begin = document::BeginDocument(out);
  bool written = false;
  const auto write = [&] {
    if (std::exchange(written, true)) return;
    AppendEntries(names.set, state.all, true, out);
    AppendEntries(names.tombstones, state.all, false, out);
    if (state.purged_through == 0) return;
    document::AppendMemberHead(document::kBsonInt64, names.floor, out);
    document::AppendNumber(state.purged_through, out);
  };
  bool identified = false;
  Member member;
  for (MemberReader reader(student.bytes()); reader.Next(member);) {
    identified = identified || member.name == kStudentId;
  }
  if (!identified && !student_id.empty()) {
    document::AppendMemberHead(document::kBsonString, kStudentId, out);
    document::AppendStringValue(student_id, out);
  }
  for (MemberReader reader(student.bytes()); reader.Next(member);) {
    if (names.Hold(member.name)) {
      write();
    } else {
      document::AppendMember(member, out);
    }
  }
  write();
  document::EndDocument(begin, out);
  return Content::FromTrusted(std::move(out));
}

// What becomes of `message`, with `state` changed if it takes effect.
Result Decide(const Message& message, EnrollmentSet& state) {
  const bool enroll = message.operation == Operation::kEnroll;
  const int64_t number = message.sequence_number;
  const auto known = Find(state.all, message.class_name);
  if (known == state.all.end() || known->class_name != message.class_name) {
    if (number <= state.purged_through) return Result::kBelowFloor;
    state.all.insert(known, {message.class_name, number, enroll});
    return Result::kApplied;
  }
  if (number < known->sequence_number) return Result::kSuperseded;
  if (number > known->sequence_number) {
    known->sequence_number = number;
    known->enrolled = enroll;
    return Result::kApplied;
  }
  if (known->enrolled == enroll) return Result::kDuplicate;
  known->enrolled = false;
  return Result::kConflict;
}

}  // namespace

std::optional<Enrollment> FindEnrollment(const Content& student, std::string_view set,
                                         std::string_view class_name) {
  Member member;
  for (MemberReader reader(student.bytes()); reader.Next(member);) {
    if (member.name != set || member.type != document::kBsonArray) continue;
    Member element;
    for (MemberReader elements(member.value); elements.Next(element);) {
      absl::StatusOr<Enrollment> entry = ReadEntry(element, "");
      if (!entry.ok() || entry->class_name != class_name) continue;
      entry->enrolled = true;
      return *std::move(entry);
    }
  }
  return std::nullopt;
}

absl::StatusOr<EnrollmentSet> ReadEnrollments(const Content& student, std::string_view set) {
  const Names names(set);
  EnrollmentSet state;
  Member member;
  for (MemberReader reader(student.bytes()); reader.Next(member);) {
    if (member.name == names.set) {
      RETURN_IF_ERROR(ReadEntries(member, true, state.all));
    } else if (member.name == names.tombstones) {
      RETURN_IF_ERROR(ReadEntries(member, false, state.all));
    } else if (member.name == names.floor) {
      const bool fits =
          document::IsInteger(member.type) && document::LoadInteger(member.type, member.value) >= 0;
      if (!fits) return ShapeError(PathOf(member.name), "is no integer from 0");
      state.purged_through = document::LoadInteger(member.type, member.value);
    }
  }
  std::stable_sort(state.all.begin(), state.all.end(), ByName);
  const auto twice = std::adjacent_find(
      state.all.begin(), state.all.end(),
      [](const Enrollment& a, const Enrollment& b) { return a.class_name == b.class_name; });
  if (twice != state.all.end()) {
    const bool both = twice->enrolled != std::next(twice)->enrolled;
    return ShapeError(
        PathOf(both || twice->enrolled ? names.set : names.tombstones),
        both ? "has a class that is in " + PathOf(names.tombstones) + " too" : "has a class twice");
  }
  return state;
}

absl::StatusOr<Decision> ApplyMessage(const Content& student, std::string_view student_id,
                                      const Message& message, const document::Limits& limits) {
  ASSIGN_OR_RETURN(EnrollmentSet state, ReadEnrollments(student, message.set));
  const EnrollmentSet before = state;
  Decision decision;
  decision.result = Decide(message, state);
  const auto known = Find(state.all, message.class_name);
  decision.enrolled =
      known != state.all.end() && known->class_name == message.class_name && known->enrolled;
  decision.content = student;
  if (state.all == before.all) return decision;
  decision.content = WithEnrollments(student, student_id, Names(message.set), state);
  RETURN_IF_ERROR(document::CheckLimits(decision.content, limits));
  return decision;
}

absl::StatusOr<Purge> PurgeTombstones(const Content& student, std::string_view set, int64_t through,
                                      const document::Limits& limits) {
  ASSIGN_OR_RETURN(EnrollmentSet state, ReadEnrollments(student, set));
  Purge purge;
  purge.content = student;
  purge.tombstones = static_cast<int64_t>(std::erase_if(state.all, [&](const Enrollment& entry) {
    return !entry.enrolled && entry.sequence_number <= through;
  }));
  if (purge.tombstones == 0) return purge;
  state.purged_through = std::max(state.purged_through, through);
  purge.content = WithEnrollments(student, "", Names(set), state);
  RETURN_IF_ERROR(document::CheckLimits(purge.content, limits));
  return purge;
}

absl::Status ValidateSet(std::string_view set) {
  const bool fits =
      !set.empty() && set.size() <= kSetBytesMax && std::all_of(set.begin(), set.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '-';
      });
  const bool taken =
      set == kStudentId || set.starts_with("deleted_") || set.starts_with("purged_through");
  if (fits && !taken) return absl::OkStatus();
  return Error(ErrorReason::kInvalidField,
               taken
                   ? "set must not be student_id or begin with deleted_ or purged_through: members "
                     "of these names are kept beside a set"
                   : "set must be 1 to 64 letters, digits, \"_\" or \"-\"")
      .With("field", "set")
      .With("limit", int64_t{kSetBytesMax});
}

}  // namespace strata::enrollment
