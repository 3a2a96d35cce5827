#include "schemas/document/filter_conditions.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "schemas/base/status_macros.h"
#include "schemas/document/compare.h"
#include "schemas/document/filter_operands.h"
#include "schemas/document/filter_operators.h"

namespace strata::document {
namespace {

struct Comparison {
  std::string_view name;
  FilterKind kind;
};
constexpr Comparison kComparisons[] = {
    {"$eq", FilterKind::kEqual},   {"$ne", FilterKind::kEqual},
    {"$gt", FilterKind::kGreater}, {"$gte", FilterKind::kGreaterOrEqual},
    {"$lt", FilterKind::kLess},    {"$lte", FilterKind::kLessOrEqual},
};

absl::Status CompareWith(FilterKind kind, const ConditionPlace& place, const Member& operand) {
  RETURN_IF_ERROR(place.walk.CountClause());
  FilterNode node(kind, place.path);
  node.operand = {operand.type, operand.value};
  place.nodes.push_back(std::move(node));
  return absl::OkStatus();
}

absl::Status Compare(FilterKind kind, const ConditionPlace& place, const Member& operand) {
  if (operand.type == kBsonRegex && operand.name != "$eq") {
    return place.walk.Refuse("compares with a regular expression",
                             operand.name == "$ne" ? "write {\"$not\": regex}"
                                                   : "compare with a string, or match with $regex");
  }
  RETURN_IF_ERROR(CompareWith(kind, place, operand));
  if (operand.name == "$ne") place.nodes.back() = NotNode(std::move(place.nodes.back()));
  return absl::OkStatus();
}

absl::Status In(const ConditionPlace& place, const Member& list) {
  FilterWalk& walk = place.walk;
  if (list.type != kBsonArray) return walk.Refuse("is not an array", "list the values: [1, 2]");
  if (list.value == kEmptyDocument) RETURN_IF_ERROR(walk.CountClause());
  FilterNode node(FilterKind::kIn, place.path);
  Trail::Level level(walk.trail());
  Member element;
  int64_t index = 0;
  for (MemberReader reader(list.value); reader.Next(element); level.Leave()) {
    level.At(index++);
    RETURN_IF_ERROR(walk.CountClause());
    if (HoldsOperators(element)) {
      return walk.Refuse(
          "is an object of operators in a list of values",
          "list values and regular expressions only, and combine conditions with $or");
    }
    if (element.type == kBsonRegex) {
      RETURN_IF_ERROR(walk.AddPattern(PartsOf(element.value), node.patterns));
    } else {
      node.values.push_back({element.type, element.value});
    }
  }
  std::sort(node.values.begin(), node.values.end(), [](const Element& a, const Element& b) {
    return document::Compare(a.type, a.value, b.type, b.value) < 0;
  });
  place.nodes.push_back(list.name == "$nin" ? NotNode(std::move(node)) : std::move(node));
  return absl::OkStatus();
}

absl::Status Exists(const ConditionPlace& place, const Member& operand) {
  RETURN_IF_ERROR(place.walk.CountClause());
  FilterNode node(FilterKind::kExists, place.path);
  place.nodes.push_back(IsTrueInFilter(operand) ? std::move(node) : NotNode(std::move(node)));
  return absl::OkStatus();
}

absl::Status Type(const ConditionPlace& place, const Member& operand) {
  FilterWalk& walk = place.walk;
  RETURN_IF_ERROR(walk.CountClause());
  FilterNode node(FilterKind::kType, place.path);
  if (operand.type != kBsonArray) {
    RETURN_IF_ERROR(walk.Check(AddFilterTypes(operand, node.types)));
  } else {
    if (operand.value == kEmptyDocument) {
      return walk.Refuse("lists no type", "list at least one, such as [\"string\", \"null\"]");
    }
    Trail::Level level(walk.trail());
    Member element;
    int64_t index = 0;
    for (MemberReader reader(operand.value); reader.Next(element); level.Leave()) {
      level.At(index++);
      RETURN_IF_ERROR(walk.Check(AddFilterTypes(element, node.types)));
    }
  }
  place.nodes.push_back(std::move(node));
  return absl::OkStatus();
}

absl::Status Size(const ConditionPlace& place, const Member& operand) {
  RETURN_IF_ERROR(place.walk.CountClause());
  FilterNode node(FilterKind::kSize, place.path);
  RETURN_IF_ERROR(place.walk.Check(ParseFilterSize(operand, node.size)));
  place.nodes.push_back(std::move(node));
  return absl::OkStatus();
}

absl::Status MatchPattern(const ConditionPlace& place, const RegexParts& regex) {
  RETURN_IF_ERROR(place.walk.CountClause());
  FilterNode node(FilterKind::kPattern, place.path);
  RETURN_IF_ERROR(place.walk.AddPattern(regex, node.patterns));
  place.nodes.push_back(std::move(node));
  return absl::OkStatus();
}

absl::Status Regex(const ConditionPlace& place, std::string_view siblings, const Member& regex) {
  if (regex.type != kBsonString && regex.type != kBsonRegex) {
    return place.walk.Refuse("is neither a string nor a regular expression",
                             "write the pattern as a string");
  }
  RegexParts parts;
  if (regex.type == kBsonRegex) {
    parts = PartsOf(regex.value);
  } else {
    parts.pattern = StringText(regex.value);
  }
  Member options;
  if (FindMember(siblings, "$options", options) && options.type == kBsonString) {
    const std::string_view given = StringText(options.value);
    if (!parts.options.empty() && !given.empty()) {
      return place.walk.Refuse("has options of its own beside $options", "give them once");
    }
    if (!given.empty()) parts.options = given;
  }
  return MatchPattern(place, parts);
}

// What they say, $regex takes along.
absl::Status Options(const ConditionPlace& place, std::string_view siblings,
                     const Member& options) {
  Member regex;
  if (!FindMember(siblings, "$regex", regex)) {
    return place.walk.Refuse("stands without $regex", "add the pattern, or leave the options out");
  }
  if (options.type == kBsonString) return absl::OkStatus();
  return place.walk.Refuse("is not a string", "write letters, such as \"im\"");
}

}  // namespace

FilterNode NotNode(FilterNode node) {
  FilterNode result(FilterKind::kNot);
  result.children.push_back(std::move(node));
  return result;
}

absl::Status CompileEqual(const ConditionPlace& place, const Member& value) {
  return CompareWith(FilterKind::kEqual, place, value);
}

absl::Status CompileRegex(const ConditionPlace& place, const Member& regex) {
  return MatchPattern(place, PartsOf(regex.value));
}

absl::Status CompileCondition(const ConditionPlace& place, std::string_view siblings,
                              const Member& condition, bool& known) {
  const std::string_view name = condition.name;
  known = true;
  for (const Comparison& comparison : kComparisons) {
    if (comparison.name == name) return Compare(comparison.kind, place, condition);
  }
  if (name == "$in" || name == "$nin") return In(place, condition);
  if (name == "$exists") return Exists(place, condition);
  if (name == "$type") return Type(place, condition);
  if (name == "$size") return Size(place, condition);
  if (name == "$regex") return Regex(place, siblings, condition);
  if (name == "$options") return Options(place, siblings, condition);
  known = false;
  return absl::OkStatus();
}

}  // namespace strata::document
