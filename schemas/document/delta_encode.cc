// Finds what changed from one version of a document to the next, as a delta.
#include <algorithm>
#include <utility>
#include <vector>

#include "schemas/document/bson_view.h"
#include "schemas/document/delta.h"
#include "schemas/document/increasing.h"
#include "schemas/document/member_index.h"
#include "schemas/document/path.h"

namespace strata::document {
namespace {

struct Change {
  std::string action;  // the name without the pointer: "=", "+7", "*3:1", …
  std::string pointer;
  uint8_t type = kBsonNull;
  std::string_view value;  // of the next version, unless `made` holds it
  std::string made;

  std::string_view bytes() const { return made.empty() ? value : std::string_view(made); }
  size_t size() const { return 2 + action.size() + pointer.size() + bytes().size(); }
};
using MemberChanges = std::vector<Change>;

Change Whole(const Member& next, std::string pointer) {
  return Change{"=", std::move(pointer), next.type, next.value, {}};
}

std::string Pointer(std::string_view segment) {
  std::string pointer;
  AppendSegment(segment, pointer);
  return pointer;
}

void AppendChanges(const MemberChanges& changes, std::string& out) {
  const size_t start = BeginDocument(out);
  for (const Change& change : changes) {
    out.push_back(static_cast<char>(change.type));
    out += change.action;
    out += change.pointer;
    out.push_back('\0');
    out += change.bytes();
  }
  EndDocument(start, out);
}

// A run of elements in the base's array and the run that takes its place.
struct Runs {
  size_t base_begin;
  size_t base_end;
  size_t next_begin;
  size_t next_end;

  size_t base_size() const { return base_end - base_begin; }
  size_t next_size() const { return next_end - next_begin; }
};

MemberChanges ChangesOf(const Member& base, const Member& next);

// What turns one member into the other, as one change of their parent.
Change MemberChange(const Member& base, const Member& next, std::string_view segment) {
  Change whole = Whole(next, Pointer(segment));
  if (base.type != next.type || !IsContainer(base.type)) return whole;
  MemberChanges inside = ChangesOf(base, next);
  Change change;
  if (inside.size() == 1) {
    change = std::move(inside[0]);
    change.pointer.insert(0, whole.pointer);
  } else {
    change = Change{"~", whole.pointer, kBsonObject, {}, {}};
    AppendChanges(inside, change.made);
  }
  return change.size() < whole.size() ? change : whole;
}

// How one object becomes another.
class ObjectChanges {
 public:
  ObjectChanges(std::string_view base, std::string_view next)
      : base_(ReadMembers(base)), next_(ReadMembers(next)) {}

  MemberChanges Find() {
    Match();
    for (size_t i = 0; i < base_.size(); ++i) {
      const size_t j = next_of_[i];
      if (j == kNoMember) {
        changes_.push_back({"-", Pointer(base_[i].name), kBsonNull, {}, {}});
      } else if (!SameBytes(base_[i], next_[j])) {
        changes_.push_back(MemberChange(base_[i], next_[j], base_[i].name));
      }
    }
    Places();
    return std::move(changes_);
  }

 private:
  void Match() {
    const MemberIndex index(base_);
    base_of_.assign(next_.size(), kNoMember);
    next_of_.assign(base_.size(), kNoMember);
    size_t expected = 0;
    for (size_t j = 0; j < next_.size(); ++j) {
      const size_t i = index.Find(next_[j].name, expected);
      if (i == kNoMember) continue;
      base_of_[j] = i;
      next_of_[i] = j;
      expected = i + 1;
    }
  }

  void Places() {
    // Mostly, nothing is new and nothing has moved.
    if (base_of_.empty() ||
        (base_of_.back() != kNoMember && std::is_sorted(base_of_.begin(), base_of_.end()))) {
      return;
    }
    std::vector<size_t> kept;
    for (const size_t i : base_of_) {
      if (i != kNoMember) kept.push_back(i);
    }
    const std::vector<bool> stays = LongestIncreasing(kept);
    std::vector<bool> placed(next_.size());
    size_t after_last = 0;  // from here on in `next` nothing stays where it was
    for (size_t j = 0, k = 0; j < next_.size(); ++j) {
      placed[j] = base_of_[j] == kNoMember || !stays[k];
      if (base_of_[j] != kNoMember) ++k;
      if (!placed[j]) after_last = j + 1;
    }
    for (size_t j = 0; j < next_.size(); ++j) {
      if (!placed[j]) continue;
      const std::string index = j < after_last ? std::to_string(j) : std::string();
      if (base_of_[j] == kNoMember) {
        changes_.push_back(
            {"+" + index, Pointer(next_[j].name), next_[j].type, next_[j].value, {}});
      } else {
        changes_.push_back({">" + index, Pointer(next_[j].name), kBsonNull, {}, {}});
      }
    }
  }

  const std::vector<Member> base_;
  const std::vector<Member> next_;
  std::vector<size_t> base_of_;  // for each member of next_ its position in base_, or kNoMember
  std::vector<size_t> next_of_;
  MemberChanges changes_;
};

// How one array becomes another: elements that stand once on each side pair up (patience diff), and
// what lies between them by position. O(n log n), never the product of the two lengths.
class ArrayChanges {
 public:
  ArrayChanges(std::string_view base, std::string_view next)
      : base_(ReadMembers(base)), next_(ReadMembers(next)) {}

  MemberChanges Find() {
    Runs gap = Trimmed({0, base_.size(), 0, next_.size()});
    const size_t base_end = gap.base_end;
    const size_t next_end = gap.next_end;
    for (const auto& [i, j] : Anchors(gap)) {
      if (i < gap.base_begin || j < gap.next_begin) continue;  // an equal run has passed it
      Gap({gap.base_begin, i, gap.next_begin, j});
      const Runs rest = Trimmed({i, base_end, j, next_end});
      gap.base_begin = rest.base_begin;
      gap.next_begin = rest.next_begin;
    }
    Gap({gap.base_begin, base_end, gap.next_begin, next_end});
    Flush();
    return std::move(changes_);
  }

 private:
  // Without the equal elements at both ends.
  Runs Trimmed(Runs runs) const {
    while (runs.base_size() > 0 && runs.next_size() > 0 &&
           SameBytes(base_[runs.base_begin], next_[runs.next_begin])) {
      ++runs.base_begin;
      ++runs.next_begin;
    }
    while (runs.base_size() > 0 && runs.next_size() > 0 &&
           SameBytes(base_[runs.base_end - 1], next_[runs.next_end - 1])) {
      --runs.base_end;
      --runs.next_end;
    }
    return runs;
  }

  static bool Less(const Member& a, const Member& b) {
    return a.type != b.type ? a.type < b.type : a.value < b.value;
  }

  // The positions of elements that stand once in the run, sorted by value.
  static std::vector<size_t> Unique(const std::vector<Member>& members, size_t begin, size_t end) {
    std::vector<size_t> order;
    for (size_t i = begin; i < end; ++i) order.push_back(i);
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return Less(members[a], members[b]); });
    std::vector<size_t> unique;
    for (size_t i = 0; i < order.size(); ++i) {
      const bool like_last = i > 0 && SameBytes(members[order[i]], members[order[i - 1]]);
      const bool like_next =
          i + 1 < order.size() && SameBytes(members[order[i]], members[order[i + 1]]);
      if (!like_last && !like_next) unique.push_back(order[i]);
    }
    return unique;
  }

  // Equal elements on both sides that keep their order, as pairs of positions.
  std::vector<std::pair<size_t, size_t>> Anchors(const Runs& runs) const {
    std::vector<std::pair<size_t, size_t>> pairs;
    if (runs.base_size() == 0 || runs.next_size() == 0) return pairs;
    const std::vector<size_t> base = Unique(base_, runs.base_begin, runs.base_end);
    const std::vector<size_t> next = Unique(next_, runs.next_begin, runs.next_end);
    for (size_t b = 0, n = 0; b < base.size() && n < next.size();) {
      if (SameBytes(base_[base[b]], next_[next[n]])) {
        pairs.emplace_back(base[b++], next[n++]);
      } else if (Less(base_[base[b]], next_[next[n]])) {
        ++b;
      } else {
        ++n;
      }
    }
    std::sort(pairs.begin(), pairs.end());
    std::vector<size_t> positions;
    for (const auto& pair : pairs) positions.push_back(pair.second);
    const std::vector<bool> stays = LongestIncreasing(positions);
    std::vector<std::pair<size_t, size_t>> anchors;
    for (size_t i = 0; i < pairs.size(); ++i) {
      if (stays[i]) anchors.push_back(pairs[i]);
    }
    return anchors;
  }

  // How much two elements have in common, roughly: bytes of members (elements) side by side.
  static size_t Likeness(const Member& a, const Member& b) {
    if (a.type != b.type || !IsContainer(a.type)) return 0;
    size_t likeness = 1;
    MemberReader reader_a(a.value);
    MemberReader reader_b(b.value);
    Member member_a;
    Member member_b;
    while (reader_a.Next(member_a) && reader_b.Next(member_b)) {
      if (member_a.name == member_b.name) {
        likeness += 1 + (SameBytes(member_a, member_b) ? member_a.value.size() : 0);
      }
    }
    return likeness;
  }

  // Whether the shorter run goes better with the end of the longer one than with its beginning.
  bool AlignsAtEnd(const Runs& gap) const {
    constexpr size_t kLooks = 64;
    const size_t count = std::min({gap.base_size(), gap.next_size(), kLooks});
    size_t at_begin = 0;
    size_t at_end = 0;
    for (size_t k = 0; k < count; ++k) {
      at_begin += Likeness(base_[gap.base_begin + k], next_[gap.next_begin + k]);
      at_end += Likeness(base_[gap.base_end - 1 - k], next_[gap.next_end - 1 - k]);
    }
    return at_end > at_begin;
  }

  void Gap(Runs gap) {
    gap = Trimmed(gap);
    const size_t pairs = std::min(gap.base_size(), gap.next_size());
    const bool at_end = gap.base_size() != gap.next_size() && AlignsAtEnd(gap);
    size_t i = gap.base_begin;
    size_t j = gap.next_begin;
    if (at_end) {
      Replace({i, gap.base_end - pairs, j, gap.next_end - pairs});
      i = gap.base_end - pairs;
      j = gap.next_end - pairs;
    }
    for (size_t k = 0; k < pairs; ++k, ++i, ++j) Pair(i, j);
    Replace({i, gap.base_end, j, gap.next_end});
  }

  void Pair(size_t i, size_t j) {
    if (SameBytes(base_[i], next_[j])) return;
    if (base_[i].type == next_[j].type && IsContainer(base_[i].type)) {
      Change change = MemberChange(base_[i], next_[j], base_[i].name);
      if (change.action != "=" || change.pointer.find('/', 1) != std::string::npos) {
        Flush();
        changes_.push_back(std::move(change));
        return;
      }
    }
    Replace({i, i + 1, j, j + 1});
  }

  // Collects runs that are replaced and touch each other.
  void Replace(const Runs& runs) {
    if (runs.base_size() == 0 && runs.next_size() == 0) return;
    if (pending_.base_end != runs.base_begin || pending_.next_end != runs.next_begin) {
      Flush();
      pending_ = runs;
    } else {
      pending_.base_end = runs.base_end;
      pending_.next_end = runs.next_end;
    }
  }

  void Flush() {
    const Runs runs = std::exchange(pending_, Runs{0, 0, 0, 0});
    if (runs.base_size() == 0 && runs.next_size() == 0) return;
    if (runs.base_size() == 1 && runs.next_size() == 1) {
      changes_.push_back(Whole(next_[runs.next_begin], Pointer(base_[runs.base_begin].name)));
      return;
    }
    Change splice{"*" + std::to_string(runs.base_begin) + ":" + std::to_string(runs.base_size()),
                  {},
                  kBsonArray,
                  {},
                  {}};
    const size_t start = BeginDocument(splice.made);
    IndexName index;
    for (size_t j = runs.next_begin; j < runs.next_end; ++j, index.Next()) {
      AppendMember(next_[j].type, index.text(), next_[j].value, splice.made);
    }
    EndDocument(start, splice.made);
    changes_.push_back(std::move(splice));
  }

  const std::vector<Member> base_;
  const std::vector<Member> next_;
  Runs pending_{0, 0, 0, 0};
  MemberChanges changes_;
};

// REQUIRES: both are objects or both are arrays.
MemberChanges ChangesOf(const Member& base, const Member& next) {
  if (base.type == kBsonArray) return ArrayChanges(base.value, next.value).Find();
  return ObjectChanges(base.value, next.value).Find();
}

}  // namespace

std::string EncodeDelta(const Content& base, const Content& next) {
  MemberChanges changes;
  const Member root_base{kBsonObject, {}, base.bytes()};
  const Member root_next{kBsonObject, {}, next.bytes()};
  if (!(base == next)) changes = ChangesOf(root_base, root_next);
  std::string delta;
  AppendChanges(changes, delta);
  const MemberChanges whole = {Whole(root_next, {})};
  if (delta.size() > 5 + whole[0].size()) {
    delta.clear();
    AppendChanges(whole, delta);
  }
  return delta;
}

}  // namespace strata::document
