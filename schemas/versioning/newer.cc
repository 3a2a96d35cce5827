#include "schemas/versioning/newer.h"

#include <charconv>
#include <optional>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/document/bson_view.h"
#include "schemas/document/content_error.h"
#include "schemas/document/patch.h"
#include "schemas/versioning/document_errors.h"
#include "schemas/versioning/read_limits.h"
#include "schemas/versioning/write_path.h"

namespace strata::versioning {
namespace {

using document::Content;
using document::Member;

// How many versions a thread that others wait for looks back.
constexpr int kBriefReadsMax = 16;

// What is found where a path leads.
struct Found {
  enum class Kind { kNothing, kInteger, kOther, kThroughArray, kThroughScalar };
  Kind kind = Kind::kNothing;
  int64_t integer = 0;
};

bool FindMember(std::string_view object, std::string_view name, Member& member) {
  for (document::MemberReader reader(object); reader.Next(member);) {
    if (member.name == name) return true;
  }
  return false;
}

Found FindNumber(const Content& content, const document::Path& path) {
  Member member{document::kBsonObject, {}, content.bytes()};
  for (const std::string& segment : path.segments()) {
    if (member.type == document::kBsonArray) return {Found::Kind::kThroughArray};
    if (member.type != document::kBsonObject) return {Found::Kind::kThroughScalar};
    if (!FindMember(member.value, segment, member)) return {};
  }
  if (!document::IsInteger(member.type)) return {Found::Kind::kOther};
  return {Found::Kind::kInteger, document::LoadInteger(member.type, member.value)};
}

absl::Status InvalidPath(std::string_view field, std::string_view path, std::string_view problem) {
  return Error(ErrorReason::kInvalidPath,
               "the path \"" + std::string(path) + "\" " + std::string(problem))
      .With("field", field)
      .With("path", path);
}

// The content's number; none if there is nothing at the path.
absl::StatusOr<std::optional<int64_t>> NumberOf(const DocumentName& name, const Newer& newer,
                                                const StoredVersion& version) {
  const Found found = FindNumber(*version.content, newer.path);
  const int64_t number = version.header.version;
  switch (found.kind) {
    case Found::Kind::kNothing:
      return std::nullopt;
    case Found::Kind::kInteger:
      return found.integer;
    case Found::Kind::kOther:
      return NumberExpected(name, newer.path.ToString(), "is no integer", number);
    case Found::Kind::kThroughArray:
      return NumberExpected(name, newer.path.ToString(), "goes through an array", number);
    case Found::Kind::kThroughScalar:
      break;
  }
  return NumberExpected(name, newer.path.ToString(), "goes through a value that is no object",
                        number);
}

// The number that a deletion keeps, if it keeps one: a label that a client made before there were
// such numbers may be anything.
std::optional<int64_t> NumberKept(const StoredVersion& deletion, const std::string& label) {
  const auto& labels = deletion.header.change.labels;
  const auto found = labels.find(label);
  if (found == labels.end()) return std::nullopt;
  const std::string& text = found->second;
  int64_t number = 0;
  const std::from_chars_result read =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

// A version that was taken back leaves what was there before the one that it takes back.
int64_t VersionBefore(const VersionHeader& header) {
  return header.version - (header.mark == VersionMark::kUndone ? 2 : 1);
}

absl::StatusOr<std::optional<int64_t>> KnownNumber(const DocumentName& name, const Newer& newer,
                                                   const CurrentState& current) {
  if (current.version == nullptr) return std::nullopt;
  if (current.live()) return NumberOf(name, newer, *current.version);
  const std::string label = newer.Label();
  // What a deletion keeps was above all before it, so the newest that is found is the greatest.
  StoredVersion older;
  const StoredVersion* version = current.version;
  for (int reads = 0;; ++reads) {
    if (const std::optional<int64_t> kept = NumberKept(*version, label)) return kept;
    const int64_t before = VersionBefore(version->header);
    if (before < 1) return std::nullopt;
    if (current.brief && reads == kBriefReadsMax) return TakesLong();
    ASSIGN_OR_RETURN(older, current.read(before));
    if (!older.deleted()) return NumberOf(name, newer, older);
    version = &older;
  }
}

// As content from JSON has them.
document::Value IntegerValue(int64_t number) {
  document::Value value;
  if (number == static_cast<int32_t>(number)) {
    value.type = document::kBsonInt32;
    document::AppendNumber(static_cast<int32_t>(number), value.bytes);
  } else {
    value.type = document::kBsonInt64;
    document::AppendNumber(number, value.bytes);
  }
  return value;
}

}  // namespace

absl::StatusOr<Newer> Newer::Make(std::string_view path, int64_t value) {
  absl::StatusOr<document::Path> parsed = document::Path::Parse(path);
  if (!parsed.ok()) return InField(parsed.status(), "path");
  if (path.size() > kNewerPathBytesMax) {
    return InvalidPath("path", document::ShownPath(path),
                       "has " + std::to_string(path.size()) + " bytes, at most " +
                           std::to_string(kNewerPathBytesMax) + " are allowed");
  }
  if (parsed->segments().empty()) {
    return InvalidPath("path", path, "names no member; a JSON Pointer such as \"/version\" does");
  }
  return Newer{*std::move(parsed), value};
}

std::string Newer::Label() const { return std::string(kNewerLabelPrefix) + path.ToString(); }

std::string Newer::LabelValue() const { return std::to_string(value); }

absl::StatusOr<bool> IsStale(const DocumentName& name, const Newer& newer,
                             const CurrentState& current) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> known, KnownNumber(name, newer, current));
  return known && *known >= newer.value;
}

absl::StatusOr<Content> WithNumber(const Content& content, const Newer& newer,
                                   const document::Limits& limits) {
  const auto refuse = [&](std::string_view problem) {
    return InvalidPath("precondition.newer.path", newer.path.ToString(), problem);
  };
  const Found::Kind found = FindNumber(content, newer.path).kind;
  if (found == Found::Kind::kThroughArray)
    return refuse("goes through an array of the new content");
  if (found == Found::Kind::kThroughScalar) {
    return refuse("goes through a value of the new content that is no object");
  }
  document::Patch patch;
  patch.operations.push_back(
      {newer.path, document::OperationKind::kSet, IntegerValue(newer.value)});
  absl::StatusOr<Content> made = document::ApplyPatch(content, patch, limits);
  if (made.ok() || ReasonOf(made.status()) == ErrorReason::kDocumentTooLarge) return made;
  return refuse("makes an invalid content: " + std::string(made.status().message()));
}

bool KeepsNumber(const VersionHeader& header) {
  const auto& labels = header.change.labels;
  const auto first = labels.lower_bound(std::string(kNewerLabelPrefix));
  return first != labels.end() && first->first.starts_with(kNewerLabelPrefix);
}

std::map<std::string, std::string> NumbersKept(const StoredVersion& version) {
  std::map<std::string, std::string> kept;
  for (const auto& [name, value] : version.header.change.labels) {
    if (name.starts_with(kNewerLabelPrefix)) kept.emplace(name, value);
  }
  return kept;
}

}  // namespace strata::versioning
