// The differences between two contents, and the parts of one content.
#include "schemas/document/diff.h"

#include <algorithm>
#include <utility>

#include "schemas/document/bson_view.h"
#include "schemas/document/meaning.h"
#include "schemas/document/member_index.h"
#include "schemas/document/struct_codec.h"
#include "schemas/document/struct_wire.h"

namespace strata::document {
namespace {

Value ValueOf(const Member& member) { return Value{member.type, std::string(member.value)}; }

bool SameMember(const Member& a, const Member& b) {
  return SameMeaning(a.type, a.value, b.type, b.value);
}

bool HasLongName(std::string_view object) {
  Member member;
  for (MemberReader reader(object); reader.Next(member);) {
    if (member.name.size() > kDiffNameMax) return true;
  }
  return false;
}

class Differ {
 public:
  Differ(int64_t skip, const ChangeVisitor& visitor) : skip_(skip), visitor_(visitor) {}

  bool stopped() const { return stopped_; }

  void Contents(const Content& before, const Content& after) {
    const Member old_whole{kBsonObject, "", before.bytes()};
    const Member new_whole{kBsonObject, "", after.bytes()};
    if (Comparable(old_whole, new_whole)) return Objects(before.bytes(), after.bytes());
    if (!SameMember(old_whole, new_whole)) Report(&old_whole, &new_whole);
  }

 private:
  // Whether what is in the members can be told apart, instead of the members as a whole.
  bool Comparable(const Member& before, const Member& after) const {
    if (before.type != after.type || path_.size() > kDiffPathMax) return false;
    if (before.type == kBsonArray) return true;
    return before.type == kBsonObject && !HasLongName(before.value) && !HasLongName(after.value);
  }

  void Objects(std::string_view before, std::string_view after) {
    const std::vector<Member> old_members = ReadMembers(before);
    const std::vector<Member> new_members = ReadMembers(after);
    const MemberIndex index(new_members);
    std::vector<bool> met(new_members.size());
    size_t expected = 0;
    for (const Member& member : old_members) {
      if (stopped_) return;
      const size_t found = index.Find(member.name, expected);
      if (found == kNoMember) {
        Removed(member);
        continue;
      }
      met[found] = true;
      expected = found + 1;
      Members(member, new_members[found]);
    }
    for (size_t i = 0; !stopped_ && i < new_members.size(); ++i) {
      if (!met[i]) Added(new_members[i]);
    }
  }

  // The name of an element in its own array is its index there, as the path wants it.
  void Arrays(std::string_view before, std::string_view after) {
    const std::vector<Member> old_elements = ReadMembers(before);
    const std::vector<Member> new_elements = ReadMembers(after);
    const size_t shorter = std::min(old_elements.size(), new_elements.size());
    size_t begin = 0;
    while (begin < shorter && SameMember(old_elements[begin], new_elements[begin])) ++begin;
    size_t old_end = old_elements.size();
    size_t new_end = new_elements.size();
    while (old_end > begin && new_end > begin &&
           SameMember(old_elements[old_end - 1], new_elements[new_end - 1])) {
      --old_end;
      --new_end;
    }
    const size_t pairs_end = std::min(old_end, new_end);
    for (size_t i = begin; !stopped_ && i < pairs_end; ++i) {
      Members(old_elements[i], new_elements[i]);
    }
    for (size_t i = pairs_end; !stopped_ && i < old_end; ++i) Removed(old_elements[i]);
    for (size_t i = pairs_end; !stopped_ && i < new_end; ++i) Added(new_elements[i]);
  }

  void Members(const Member& before, const Member& after) {
    if (SameMember(before, after)) return;
    const size_t parent_size = path_.size();
    AppendSegment(before.name, path_);
    if (!Comparable(before, after)) {
      Report(&before, &after);
    } else if (before.type == kBsonObject) {
      Objects(before.value, after.value);
    } else {
      Arrays(before.value, after.value);
    }
    path_.resize(parent_size);
  }

  void Removed(const Member& member) { ReportAt(member.name, &member, nullptr); }
  void Added(const Member& member) { ReportAt(member.name, nullptr, &member); }

  void ReportAt(std::string_view name, const Member* before, const Member* after) {
    const size_t parent_size = path_.size();
    AppendSegment(name, path_);
    Report(before, after);
    path_.resize(parent_size);
  }

  // A change of what the path names; null: not there.
  void Report(const Member* before, const Member* after) {
    if (skip_ > 0) {
      --skip_;
      return;
    }
    FieldChange change;
    change.path = path_;
    change.type = before == nullptr  ? ChangeType::kAdded
                  : after == nullptr ? ChangeType::kRemoved
                                     : ChangeType::kChanged;
    if (before != nullptr) change.before = ValueOf(*before);
    if (after != nullptr) change.after = ValueOf(*after);
    if (WireSize(change) > kChangeBytesMax) {
      change.before.reset();
      change.after.reset();
      change.values_omitted = true;
    }
    stopped_ = !visitor_(std::move(change));
  }

  int64_t skip_;
  const ChangeVisitor& visitor_;
  bool stopped_ = false;
  std::string path_;  // of what is compared
};

// The paths that begin with the same segments, as a range of the sorted list of all paths.
using PathRange = std::pair<const Path*, const Path*>;

// Whether a path ends with the segments that all in the range share.
bool IsWhole(PathRange paths, size_t depth) { return paths.first->segments().size() == depth; }

// Those of the range whose segment at `depth` is `name`; all of them go on after `depth`.
PathRange Under(PathRange paths, size_t depth, std::string_view name) {
  const auto less = [depth](const Path& path, std::string_view wanted) {
    return path.segments()[depth] < wanted;
  };
  const auto greater = [depth](std::string_view wanted, const Path& path) {
    return wanted < path.segments()[depth];
  };
  const Path* const begin = std::lower_bound(paths.first, paths.second, name, less);
  return {begin, std::upper_bound(begin, paths.second, name, greater)};
}

// Appends the members that the paths name after their first `depth` segments; false if there is
// none.
bool AppendProjected(std::string_view document, bool is_array, PathRange paths, size_t depth,
                     std::string& out) {
  const size_t start = BeginDocument(out);
  const size_t empty_size = out.size();
  IndexName index;
  Member member;
  for (MemberReader reader(document); reader.Next(member);) {
    const PathRange under = Under(paths, depth, member.name);
    if (under.first == under.second) continue;
    const size_t member_start = out.size();
    AppendMemberHead(member.type, is_array ? index.text() : member.name, out);
    bool found = true;
    if (IsWhole(under, depth + 1)) {
      out += member.value;
    } else {
      found = IsContainer(member.type) &&
              AppendProjected(member.value, member.type == kBsonArray, under, depth + 1, out);
    }
    if (!found) {
      out.resize(member_start);
    } else if (is_array) {
      index.Next();
    }
  }
  const bool any = out.size() > empty_size;
  EndDocument(start, out);
  return any;
}

}  // namespace

bool VisitChanges(const Content& before, const Content& after, int64_t skip,
                  const ChangeVisitor& visitor) {
  Differ differ(skip, visitor);
  if (!(before == after)) differ.Contents(before, after);
  return !differ.stopped();
}

size_t WireSize(const FieldChange& change) {
  size_t size = 2;  // the type
  if (!change.path.empty()) size += LengthFieldSize(change.path.size());
  if (change.before) size += LengthFieldSize(ValueSize(*change.before));
  if (change.after) size += LengthFieldSize(ValueSize(*change.after));
  if (change.values_omitted) size += 2;
  return LengthFieldSize(size);
}

Changes Diff(const Content& before, const Content& after, size_t bytes_max) {
  Changes changes;
  size_t bytes = 0;
  changes.truncated = !VisitChanges(before, after, /*skip=*/0, [&](FieldChange&& change) {
    bytes += WireSize(change);
    if (bytes > bytes_max) return false;
    changes.list.push_back(std::move(change));
    return true;
  });
  return changes;
}

Content Project(const Content& content, const std::vector<Path>& paths) {
  if (paths.empty()) return Content();
  std::vector<Path> sorted = paths;
  // A path stands before those that it begins, so the first of a range says whether all is wanted.
  std::sort(sorted.begin(), sorted.end(),
            [](const Path& a, const Path& b) { return a.segments() < b.segments(); });
  const PathRange all{sorted.data(), sorted.data() + sorted.size()};
  if (IsWhole(all, 0)) return content;
  std::string projected;
  projected.reserve(content.size());
  AppendProjected(content.bytes(), /*is_array=*/false, all, 0, projected);
  return Content::FromTrusted(std::move(projected));
}

}  // namespace strata::document
