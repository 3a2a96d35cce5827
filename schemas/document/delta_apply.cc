// Applies deltas to their base.
#include <algorithm>
#include <charconv>
#include <vector>

#include "schemas/base/error.h"
#include "schemas/document/bson_check.h"
#include "schemas/document/bson_view.h"
#include "schemas/document/delta.h"
#include "schemas/document/path.h"

namespace strata::document {
namespace {

// A delta is hardly deeper than its documents; this only keeps the stack safe.
constexpr int kDeltaDepthMax = 256;

struct Change {
  char action = 0;
  bool has_index = false;
  size_t index = 0;
  size_t count = 0;
  std::string_view pointer;  // what is left of it
  uint8_t type = kBsonNull;
  std::string_view value;
};

bool TakeNumber(std::string_view& text, size_t& number) {
  const std::from_chars_result result =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (result.ec != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(result.ptr - text.data()));
  return true;
}

bool ParseChange(const Member& member, Change& change) {
  std::string_view name = member.name;
  if (name.empty()) return false;
  change = Change{};
  change.action = name[0];
  name.remove_prefix(1);
  const bool placing = change.action == '+' || change.action == '>';
  if (placing && !name.empty() && name[0] != '/') {
    if (!TakeNumber(name, change.index)) return false;
    change.has_index = true;
  } else if (change.action == '*') {
    if (!TakeNumber(name, change.index) || name.empty() || name[0] != ':') return false;
    name.remove_prefix(1);
    if (!TakeNumber(name, change.count) || member.type != kBsonArray) return false;
  } else if (change.action == '~') {
    if (member.type != kBsonObject || name.empty()) return false;
  } else if (!placing && change.action != '=' && change.action != '-') {
    return false;
  }
  if (!name.empty() && name[0] != '/') return false;
  change.pointer = name;
  change.type = member.type;
  change.value = member.value;
  return true;
}

// The first segment of the change's pointer, with its escapes, and what comes after.
std::string_view FirstSegment(std::string_view pointer) {
  return pointer.substr(1, pointer.find('/', 1) - 1);
}
std::string_view AfterFirst(std::string_view pointer) {
  const size_t end = pointer.find('/', 1);
  return end == std::string_view::npos ? std::string_view() : pointer.substr(end);
}

// The name that a segment means; views either the segment or `buffer`.
bool Unescape(std::string_view segment, std::string& buffer, std::string_view& name) {
  name = segment;
  if (segment.find('~') == std::string_view::npos) return true;
  buffer.clear();
  for (size_t i = 0; i < segment.size(); ++i) {
    if (segment[i] != '~') {
      buffer.push_back(segment[i]);
      continue;
    }
    if (++i == segment.size() || (segment[i] != '0' && segment[i] != '1')) return false;
    buffer.push_back(segment[i] == '0' ? '~' : '/');
  }
  name = buffer;
  return true;
}

using Changes = std::vector<Change>;

bool ParseChanges(std::string_view delta, Changes& changes) {
  Member member;
  for (MemberReader reader(delta); reader.Next(member);) {
    changes.emplace_back();
    if (!ParseChange(member, changes.back())) return false;
  }
  return true;
}

// Everything returns false on what is no delta of the base, and has then written something.
bool ApplyToContainer(const Member& base, const Changes& changes, std::string& out);

// Writes the member (under `name`) as the change, which begins with its segment, makes it.
bool ApplyToMember(const Member& base, std::string_view name, Change change, std::string& out) {
  change.pointer = AfterFirst(change.pointer);
  if (change.pointer.empty() && change.action == '-') return true;
  if (change.pointer.empty() && change.action == '=') {
    AppendMember(change.type, name, change.value, out);
    return true;
  }
  AppendMemberHead(base.type, name, out);
  Changes changes;
  if (change.pointer.empty() && change.action == '~') {
    if (!ParseChanges(change.value, changes)) return false;
  } else {
    changes.push_back(change);
  }
  return ApplyToContainer(base, changes, out);
}

// A member that is new in the object or takes another place in it.
struct PlacedMember {
  Change change;
  std::string name;
  std::string bytes;  // the whole member; of a moved one once it was met in the base
};

class ObjectPatcher {
 public:
  ObjectPatcher(std::string_view base, const Changes& changes, std::string& out)
      : base_(base), changes_(changes), out_(out) {}

  bool Apply() {
    if (!Sort()) return false;
    const size_t start = BeginDocument(out_);
    stays_begin_ = out_.size();
    if (!Walk()) return false;
    if (!Assemble()) return false;
    EndDocument(start, out_);
    return true;
  }

 private:
  // Tells edits, which walk along with the base, from places.
  bool Sort() {
    for (const Change& change : changes_) {
      if (change.pointer.empty()) return false;
      const bool placing = change.action == '+' || change.action == '>';
      if (!placing || !AfterFirst(change.pointer).empty()) {
        edits_.push_back(change);
        continue;
      }
      PlacedMember place{change, {}, {}};
      std::string_view name;
      if (!Unescape(FirstSegment(change.pointer), buffer_, name)) return false;
      place.name = name;
      if (change.action == '+') AppendMember(change.type, name, change.value, place.bytes);
      places_.push_back(std::move(place));
    }
    for (size_t i = 0; i < places_.size(); ++i) by_name_.push_back(i);
    const auto less = [&](size_t a, size_t b) { return places_[a].name < places_[b].name; };
    std::sort(by_name_.begin(), by_name_.end(), less);
    for (size_t i = 1; i < by_name_.size(); ++i) {
      if (places_[by_name_[i - 1]].name == places_[by_name_[i]].name) return false;
    }
    return true;
  }

  PlacedMember* FindPlace(std::string_view name) {
    if (places_.empty()) return nullptr;
    const auto found = std::lower_bound(
        by_name_.begin(), by_name_.end(), name,
        [&](size_t i, std::string_view wanted) { return places_[i].name < wanted; });
    if (found == by_name_.end() || places_[*found].name != name) return nullptr;
    return &places_[*found];
  }

  // Writes the members that stay to `out_`, those that move to their places.
  bool Walk() {
    size_t next_edit = 0;
    std::string_view edited;
    if (!EditedName(next_edit, edited)) return false;
    Member member;
    for (MemberReader reader(base_); reader.Next(member);) {
      PlacedMember* const place = FindPlace(member.name);
      const size_t begin = out_.size();
      if (next_edit < edits_.size() && member.name == edited) {
        if (!ApplyToMember(member, member.name, edits_[next_edit], out_)) return false;
        if (!EditedName(++next_edit, edited)) return false;
      } else {
        AppendMember(member, out_);
      }
      if (out_.size() == begin) continue;  // removed
      if (place == nullptr) {
        if (HasIndices()) stay_ends_.push_back(out_.size());
        continue;
      }
      if (place->change.action != '>' || !place->bytes.empty()) return false;
      place->bytes = out_.substr(begin);
      out_.resize(begin);
    }
    return next_edit == edits_.size();
  }

  bool EditedName(size_t edit, std::string_view& name) {
    return edit == edits_.size() || Unescape(FirstSegment(edits_[edit].pointer), buffer_, name);
  }

  bool HasIndices() const { return !places_.empty() && places_.front().change.has_index; }

  // Puts the placed members where they belong between those that stay.
  bool Assemble() {
    for (const PlacedMember& place : places_) {
      if (place.bytes.empty()) return false;  // moves a member that the base does not have
    }
    size_t next = 0;
    if (HasIndices() && !Interleave(next)) return false;
    for (; next < places_.size(); ++next) {
      if (places_[next].change.has_index) return false;
      out_ += places_[next].bytes;
    }
    return true;
  }

  // Places the members that have an index; those that stay move back to make room.
  bool Interleave(size_t& next) {
    size_t stay = std::min(places_.front().change.index, stay_ends_.size());
    size_t count = stay;
    const size_t tail_begin = stay == 0 ? stays_begin_ : stay_ends_[stay - 1];
    const std::string tail = out_.substr(tail_begin);
    size_t written = 0;
    out_.resize(tail_begin);
    for (; next < places_.size() && places_[next].change.has_index; ++next, ++count) {
      const size_t index = places_[next].change.index;
      if (index < count || index - count > stay_ends_.size() - stay) return false;
      if (index > count) {
        stay += index - count;
        count = index;
        const size_t end = stay_ends_[stay - 1] - tail_begin;
        out_.append(tail, written, end - written);
        written = end;
      }
      out_ += places_[next].bytes;
    }
    out_.append(tail, written, tail.size() - written);
    return true;
  }

  const std::string_view base_;
  const Changes& changes_;
  std::string& out_;
  Changes edits_;
  std::vector<PlacedMember> places_;
  std::vector<size_t> by_name_;    // positions in places_, sorted by name
  size_t stays_begin_ = 0;         // where in out_ the members that stay begin
  std::vector<size_t> stay_ends_;  // where in out_ each of them ends; only for indices
  std::string buffer_;
};

class ArrayPatcher {
 public:
  ArrayPatcher(std::string_view base, const Changes& changes, std::string& out)
      : reader_(base), changes_(changes), out_(out) {}

  bool Apply() {
    const size_t start = BeginDocument(out_);
    Member element;
    size_t next = 0;
    while (true) {
      for (; next < changes_.size() && IsSplice(changes_[next]); ++next) {
        if (changes_[next].index != position_) break;
        if (!Splice(changes_[next])) return false;
      }
      if (!reader_.Next(element)) break;
      if (next < changes_.size() && Edits(changes_[next])) {
        if (!ApplyToMember(element, index_.text(), changes_[next++], out_)) return false;
      } else {
        AppendMember(element.type, index_.text(), element.value, out_);
      }
      index_.Next();
      ++position_;
    }
    EndDocument(start, out_);
    return next == changes_.size();
  }

 private:
  static bool IsSplice(const Change& change) {
    return change.action == '*' && change.pointer.empty();
  }

  // Whether the change is one of the element that was just read. Elements are removed by splices.
  bool Edits(const Change& change) const {
    if (change.pointer.empty()) return false;
    const int index = ArrayIndex(FirstSegment(change.pointer));
    if (index < 0 || static_cast<size_t>(index) != position_) return false;
    return change.action != '-' || !AfterFirst(change.pointer).empty();
  }

  bool Splice(const Change& change) {
    Member element;
    for (size_t i = 0; i < change.count; ++i, ++position_) {
      if (!reader_.Next(element)) return false;
    }
    for (MemberReader added(change.value); added.Next(element); index_.Next()) {
      AppendMember(element.type, index_.text(), element.value, out_);
    }
    return true;
  }

  MemberReader reader_;
  const Changes& changes_;
  std::string& out_;
  size_t position_ = 0;  // in the base
  IndexName index_;      // in the result
};

bool ApplyToContainer(const Member& base, const Changes& changes, std::string& out) {
  if (base.type == kBsonObject) return ObjectPatcher(base.value, changes, out).Apply();
  if (base.type == kBsonArray) return ArrayPatcher(base.value, changes, out).Apply();
  return false;
}

bool Apply(std::string_view base, std::string_view delta, std::string& out) {
  Changes changes;
  if (!IsWellFormed(delta, kDeltaDepthMax) || !ParseChanges(delta, changes)) return false;
  if (changes.size() == 1 && changes[0].action == '=' && changes[0].pointer.empty()) {
    out = changes[0].value;
    return changes[0].type == kBsonObject;
  }
  out.reserve(base.size() + delta.size());
  return ApplyToContainer(Member{kBsonObject, {}, base}, changes, out);
}

}  // namespace

absl::StatusOr<Content> ApplyDelta(const Content& base, std::string_view delta) {
  std::string next;
  if (!Apply(base.bytes(), delta, next) || next.size() > Limits::kBytesCeiling) {
    return Error(ErrorReason::kRecordCorrupt,
                 "a stored delta does not fit the version before it; verify the document");
  }
  return Content::FromTrusted(std::move(next));
}

}  // namespace strata::document
