// Evaluates compiled filters on the bytes of a document.
#include "schemas/document/filter.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/document/bson_view.h"
#include "schemas/document/compare.h"
#include "schemas/document/filter_tree.h"

namespace strata::document {
namespace {

// Whether an evaluation goes on. Once it does not, every condition counts as met without a look, so
// that all that is under way comes to its end at once; the result then means nothing.
class Interruption {
 public:
  explicit Interruption(const StopCheck& stopped) : stopped_(stopped) {}

  // A search would be more work than one may be; the first that is.
  void Refuse(const Pattern& pattern, std::string_view text) {
    ended_ = true;
    if (!refusal_.ok()) return;
    refusal_ = Error(ErrorReason::kInvalidFilter,
                     absl::StrCat("a regular expression of ", pattern.Size(),
                                  " instructions meets a text of ", text.size(),
                                  " bytes, and their product may be ", Filter::kSearchWorkMax,
                                  " at most; make it simpler"))
                   .With("field", "filter")
                   .With("path", "")
                   .With("problem", "has a regular expression that is too costly for a text")
                   .With("limit", static_cast<int64_t>(Filter::kSearchWorkMax));
  }
  // Why there is no result.
  absl::Status status() const { return refusal_.ok() ? StoppedError() : refusal_; }

  // Asks.
  bool Ended() { return ended_ = ended_ || Stopped(stopped_); }
  // For what is much quicker than asking: asks now and then.
  bool EndedByNow() {
    if (--unasked_ > 0) return ended_;
    unasked_ = kUnaskedMax;
    return Ended();
  }

 private:
  static constexpr int kUnaskedMax = 64;

  const StopCheck& stopped_;
  int unasked_ = kUnaskedMax;
  bool ended_ = false;
  absl::Status refusal_;
};

bool MatchesObject(const FilterNode& node, std::string_view object, Interruption& interruption);
bool MatchesElement(const FilterNode& node, const Element& element, Interruption& interruption);

// Whether the element compares as the node asks, once both are known to be of different types.
bool ComparesAcrossTypes(FilterKind kind, TypeBracket element, TypeBracket operand) {
  switch (kind) {
    case FilterKind::kGreater:
      return operand == TypeBracket::kMinKey;
    case FilterKind::kLess:
      return operand == TypeBracket::kMaxKey;
    case FilterKind::kGreaterOrEqual:
    case FilterKind::kLessOrEqual:
      if (element == TypeBracket::kMissing && operand == TypeBracket::kNull) return true;
      return operand ==
             (kind == FilterKind::kLessOrEqual ? TypeBracket::kMaxKey : TypeBracket::kMinKey);
    default:
      return element == TypeBracket::kMissing && operand == TypeBracket::kNull;
  }
}

bool Compares(const FilterNode& node, const Element& element) {
  if (element.type != node.operand.type) {
    const TypeBracket bracket = BracketOf(element.type);
    const TypeBracket operand = BracketOf(node.operand.type);
    if (bracket != operand) return ComparesAcrossTypes(node.kind, bracket, operand);
  }
  if (node.kind == FilterKind::kEqual && element.type == kBsonString) {
    return element.value == node.operand.value;
  }
  const int order = Compare(element.type, element.value, node.operand.type, node.operand.value);
  switch (node.kind) {
    case FilterKind::kGreater:
      return order > 0;
    case FilterKind::kGreaterOrEqual:
      return order >= 0;
    case FilterKind::kLess:
      return order < 0;
    case FilterKind::kLessOrEqual:
      return order <= 0;
    default:
      return order == 0;
  }
}

bool MatchesPattern(const FilterNode& node, const Element& element, Interruption& interruption) {
  if (element.type != kBsonString && element.type != kBsonRegex) return false;
  return std::any_of(node.patterns.begin(), node.patterns.end(), [&](const Pattern& pattern) {
    if (element.type != kBsonString) return pattern.Equals(element.value);
    if (interruption.Ended()) return true;
    const std::string_view text = StringText(element.value);
    const auto instructions = static_cast<size_t>(pattern.Size());
    if (instructions * text.size() > Filter::kSearchWorkMax) {
      interruption.Refuse(pattern, text);
      return true;
    }
    return pattern.Finds(text);
  });
}

bool IsIn(const FilterNode& node, Element element, Interruption& interruption) {
  if (element.type == kMissingType) element.type = kBsonNull;  // which are the same in a list
  const auto found = std::lower_bound(node.values.begin(), node.values.end(), element,
                                      [](const Element& a, const Element& b) {
                                        return Compare(a.type, a.value, b.type, b.value) < 0;
                                      });
  if (found != node.values.end() &&
      Compare(found->type, found->value, element.type, element.value) == 0) {
    return true;
  }
  return MatchesPattern(node, element, interruption);
}

bool HasSize(std::string_view array, int64_t size) {
  int64_t count = 0;
  Member member;
  for (MemberReader reader(array); reader.Next(member);) {
    if (++count > size) return false;
  }
  return count == size;
}

bool HasMatchingElement(const FilterNode& node, std::string_view array,
                        Interruption& interruption) {
  const bool objects = node.kind == FilterKind::kElementObject;
  Member member;
  for (MemberReader reader(array); reader.Next(member);) {
    // An array inside the array is taken for an object whose names are the indices.
    if (objects && !IsContainer(member.type)) continue;
    const bool matches =
        std::all_of(node.children.begin(), node.children.end(), [&](const FilterNode& child) {
          return objects ? MatchesObject(child, member.value, interruption)
                         : MatchesElement(child, {member.type, member.value}, interruption);
        });
    if (matches) return true;
  }
  return false;
}

// Whether the element itself meets the condition; its own elements are not asked.
// REQUIRES: a node of one element.
bool Meets(const FilterNode& node, const Element& element, Interruption& interruption) {
  if (interruption.EndedByNow()) return true;
  switch (node.kind) {
    case FilterKind::kIn:
      return IsIn(node, element, interruption);
    case FilterKind::kExists:
      return element.type != kMissingType;
    case FilterKind::kType:
      return element.type != kMissingType && (node.types & TypeBit(element.type)) != 0;
    case FilterKind::kPattern:
      return MatchesPattern(node, element, interruption);
    case FilterKind::kSize:
      return element.type == kBsonArray && HasSize(element.value, node.size);
    case FilterKind::kElementObject:
    case FilterKind::kElementValue:
      return element.type == kBsonArray && HasMatchingElement(node, element.value, interruption);
    default:
      return Compares(node, element);
  }
}

// Looks for anything that a path leads to and that meets the node's condition.
//
// A path may lead to many places: each object of an array is searched, and where digits follow,
// also the element of that index. So that an object that both ways reach is entered only once (or
// nested arrays would be entered 2^depth times), the walk carries a set: the segments that may come
// next, a bit for each.
class PathWalk {
 public:
  PathWalk(const FilterNode& node, Interruption& interruption)
      : node_(node),
        interruption_(interruption),
        path_(*node.path),
        last_(uint64_t{1} << (node.path->size() - 1)),
        whole_only_(node.kind == FilterKind::kSize || node.kind == FilterKind::kElementObject ||
                    node.kind == FilterKind::kElementValue) {}

  bool Find(std::string_view object) const { return InObject(object, 1); }

 private:
  static constexpr Element kMissing{kMissingType, {}};

  // Those of the segments `next` that are this name.
  uint64_t Named(std::string_view name, uint64_t next) const {
    uint64_t named = 0;
    for (uint64_t left = next; left != 0; left &= left - 1) {
      if (path_[static_cast<size_t>(std::countr_zero(left))] == name) named |= left & (~left + 1);
    }
    return named;
  }

  uint64_t After(uint64_t segments) const { return (segments & ~last_) << 1; }

  bool InObject(std::string_view object, uint64_t next) const {
    uint64_t missing = next;
    Member member;
    for (MemberReader reader(object); missing != 0 && reader.Next(member);) {
      const uint64_t named = Named(member.name, missing);
      if (named == 0) continue;
      missing &= ~named;
      if ((named & last_) != 0 && AtEnd({member.type, member.value})) return true;
      const uint64_t after = After(named);
      if (after != 0 && BelowMember(member, after)) return true;
    }
    return missing != 0 && Meets(node_, kMissing, interruption_);
  }

  bool BelowMember(const Member& member, uint64_t next) const {
    if (member.type == kBsonObject) return InObject(member.value, next);
    if (member.type == kBsonArray) return InArray(member.value, next);
    return Meets(node_, kMissing, interruption_);
  }

  // Elements that are no objects, and that no index names, lead nowhere: not even to what is
  // missing.
  bool InArray(std::string_view array, uint64_t next) const {
    Member member;
    for (MemberReader reader(array); reader.Next(member);) {
      const uint64_t named = Named(member.name, next);
      // An element that an index names last is asked as it is, even if it is an array.
      if ((named & last_) != 0 && Meets(node_, {member.type, member.value}, interruption_))
        return true;
      const uint64_t after = After(named);
      if (member.type == kBsonObject) {
        if (InObject(member.value, next | after)) return true;
      } else if (member.type == kBsonArray && after != 0) {
        if (InArray(member.value, after)) return true;
      }
    }
    return false;
  }

  // The path ends at this member: an array's elements are asked, and the array as a whole.
  bool AtEnd(const Element& element) const {
    if (element.type == kBsonArray && !whole_only_) {
      Member member;
      for (MemberReader reader(element.value); reader.Next(member);) {
        if (Meets(node_, {member.type, member.value}, interruption_)) return true;
      }
    }
    return Meets(node_, element, interruption_);
  }

  const FilterNode& node_;
  Interruption& interruption_;
  const FilterPath& path_;
  const uint64_t last_;
  const bool whole_only_;
};

// `leaf` says how to ask a node that has no children of its own kind.
template <typename Leaf>
bool Combine(const FilterNode& node, Leaf leaf) {
  const auto matches = [&](const FilterNode& child) { return Combine(child, leaf); };
  switch (node.kind) {
    case FilterKind::kAll:
      return std::all_of(node.children.begin(), node.children.end(), matches);
    case FilterKind::kAny:
      return std::any_of(node.children.begin(), node.children.end(), matches);
    case FilterKind::kNot:
      return !matches(node.children.front());
    default:
      return leaf(node);
  }
}

bool MatchesObject(const FilterNode& node, std::string_view object, Interruption& interruption) {
  return Combine(node, [&](const FilterNode& leaf) {
    return interruption.Ended() || PathWalk(leaf, interruption).Find(object);
  });
}

bool MatchesElement(const FilterNode& node, const Element& element, Interruption& interruption) {
  return Combine(node, [&](const FilterNode& leaf) { return Meets(leaf, element, interruption); });
}

size_t WorkPerByte(const FilterNode& node) {
  size_t work = 1;
  for (const Pattern& pattern : node.patterns) work += static_cast<size_t>(pattern.Size());
  for (const FilterNode& child : node.children) work += WorkPerByte(child);
  return work;
}

}  // namespace

absl::StatusOr<Filter> Filter::Compile(const Content& filter) {
  auto tree = std::make_shared<FilterTree>(filter);
  RETURN_IF_ERROR(CompileFilter(*tree));
  return Filter(std::move(tree));
}

bool Filter::Matches(const Content& content) const {
  return *Matches(content, /*stopped=*/nullptr);
}

absl::StatusOr<bool> Filter::Matches(const Content& content, const StopCheck& stopped) const {
  Interruption interruption(stopped);
  const bool matches = MatchesObject(tree_->root, content.bytes(), interruption);
  if (interruption.Ended()) return interruption.status();
  return matches;
}

Filter::Filter(std::shared_ptr<const FilterTree> tree)
    : tree_(std::move(tree)), work_per_byte_(WorkPerByte(tree_->root)) {}

std::string_view Filter::bytes() const { return tree_->filter.bytes(); }

bool Filter::empty() const { return bytes() == kEmptyDocument; }

}  // namespace strata::document
