// The differences between two contents, and the parts of one content.
#include "schemas/document/diff.h"

#include <algorithm>
#include <utility>

#include "schemas/document/bson_view.h"
#include "schemas/document/meaning.h"
#include "schemas/document/member_index.h"

namespace strata::document {
namespace {

Value ValueOf(const Member& member) { return Value{member.type, std::string(member.value)}; }

bool SameMember(const Member& a, const Member& b) {
  return SameMeaning(a.type, a.value, b.type, b.value);
}

class Differ {
 public:
  void Objects(std::string_view before, std::string_view after) {
    const std::vector<Member> old_members = ReadMembers(before);
    const std::vector<Member> new_members = ReadMembers(after);
    const MemberIndex index(new_members);
    std::vector<bool> met(new_members.size());
    size_t expected = 0;
    for (const Member& member : old_members) {
      const size_t found = index.Find(member.name, expected);
      if (found == kNoMember) {
        Removed(member);
        continue;
      }
      met[found] = true;
      expected = found + 1;
      Members(member, new_members[found]);
    }
    for (size_t i = 0; i < new_members.size(); ++i) {
      if (!met[i]) Added(new_members[i]);
    }
  }

  std::vector<FieldChange> Take() { return std::move(changes_); }

 private:
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
    for (size_t i = begin; i < pairs_end; ++i) Members(old_elements[i], new_elements[i]);
    for (size_t i = pairs_end; i < old_end; ++i) Removed(old_elements[i]);
    for (size_t i = pairs_end; i < new_end; ++i) Added(new_elements[i]);
  }

  void Members(const Member& before, const Member& after) {
    if (SameMember(before, after)) return;
    const size_t parent_size = path_.size();
    AppendSegment(before.name, path_);
    const bool deeper = before.type == after.type && path_.size() <= kDiffPathMax;
    if (deeper && before.type == kBsonObject) {
      Objects(before.value, after.value);
    } else if (deeper && before.type == kBsonArray) {
      Arrays(before.value, after.value);
    } else {
      changes_.push_back({path_, ChangeType::kChanged, ValueOf(before), ValueOf(after)});
    }
    path_.resize(parent_size);
  }

  void Removed(const Member& member) {
    changes_.push_back({PathTo(member.name), ChangeType::kRemoved, ValueOf(member), std::nullopt});
  }
  void Added(const Member& member) {
    changes_.push_back({PathTo(member.name), ChangeType::kAdded, std::nullopt, ValueOf(member)});
  }

  std::string PathTo(std::string_view name) const {
    std::string path = path_;
    AppendSegment(name, path);
    return path;
  }

  std::string path_;  // of the object or array that is compared
  std::vector<FieldChange> changes_;
};

// The paths that begin with the same segments, as a range of the sorted list of all paths.
using PathRange = std::pair<const Path*, const Path*>;

// Whether a path ends with the segments that all in the range share.
bool IsWhole(PathRange paths, size_t depth) { return paths.first->segments().size() == depth; }

// Those of the range whose segment at `depth` is `name`; all of them go on behind `depth`.
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

// Appends the members that the paths name behind their first `depth` segments; false if there is
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

std::vector<FieldChange> Diff(const Content& before, const Content& after) {
  Differ differ;
  if (!(before == after)) differ.Objects(before.bytes(), after.bytes());
  return differ.Take();
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
