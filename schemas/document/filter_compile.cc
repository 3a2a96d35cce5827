// Checks a filter and makes a tree of conditions of it.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"
#include "schemas/document/bson_view.h"
#include "schemas/document/compare.h"
#include "schemas/document/content_error.h"
#include "schemas/document/filter.h"
#include "schemas/document/filter_operands.h"
#include "schemas/document/filter_tree.h"

namespace strata::document {
namespace {

constexpr std::string_view kOperatorList =
    "$eq, $ne, $gt, $gte, $lt, $lte, $in, $nin, $exists, $type, $size, $regex (with $options), "
    "$elemMatch, $all and $not under a member name, and $and, $or and $nor beside member names";
constexpr std::string_view kLiteralAdvice = "write {\"$eq\": …} to compare with the object itself";

constexpr std::string_view kMemberOperators[] = {
    "$eq",  "$ne",     "$gt",   "$gte",  "$lt",    "$lte",     "$in",        "$nin",
    "$all", "$exists", "$type", "$size", "$regex", "$options", "$elemMatch", "$not"};

struct Named {
  std::string_view name;
  FilterKind kind;
};
constexpr Named kComparisons[] = {
    {"$eq", FilterKind::kEqual},   {"$ne", FilterKind::kEqual},
    {"$gt", FilterKind::kGreater}, {"$gte", FilterKind::kGreaterOrEqual},
    {"$lt", FilterKind::kLess},    {"$lte", FilterKind::kLessOrEqual},
};

bool IsOperatorName(std::string_view name) { return !name.empty() && name[0] == '$'; }
bool IsListName(std::string_view name) { return name == "$and" || name == "$or" || name == "$nor"; }
bool IsMemberOperator(std::string_view name) {
  return std::find(std::begin(kMemberOperators), std::end(kMemberOperators), name) !=
         std::end(kMemberOperators);
}
bool IsReferenceName(std::string_view name) {
  return name == "$ref" || name == "$id" || name == "$db";
}

bool FindMember(std::string_view object, std::string_view name, Member& member) {
  for (MemberReader reader(object); reader.Next(member);) {
    if (member.name == name) return true;
  }
  return false;
}

std::string_view FirstName(std::string_view object) {
  Member member;
  return MemberReader(object).Next(member) ? member.name : std::string_view();
}

// A DBRef, which is a value although its names begin with "$".
bool IsReference(std::string_view object) {
  Member member;
  return FindMember(object, "$ref", member) && FindMember(object, "$id", member);
}

// An object of operators, not a value to compare with.
bool HoldsOperators(const Member& member) {
  return member.type == kBsonObject && IsOperatorName(FirstName(member.value)) &&
         !IsReference(member.value);
}

class Compiler {
 public:
  explicit Compiler(FilterTree& tree) : tree_(tree) {}

  absl::Status Compile() {
    const std::string_view filter = tree_.filter.bytes();
    if (filter.size() > Filter::kBytesMax) {
      return RefuseLimit(absl::StrCat("has ", filter.size(), " bytes"), Filter::kBytesMax,
                         "ask for less in one filter");
    }
    return Object(filter, tree_.root.children);
  }

 private:
  using Nodes = std::vector<FilterNode>;

  Error Refuse(std::string_view problem, std::string_view advice) const {
    const std::string pointer = trail_.Pointer();
    std::string message = "the filter ";
    if (!pointer.empty()) message = absl::StrCat("\"", pointer, "\" in the filter ");
    absl::StrAppend(&message, ToAbsl(problem), "; ", ToAbsl(advice));
    return Error(ErrorReason::kInvalidFilter, message)
        .With("path", std::string_view(pointer))
        .With("problem", problem);
  }

  absl::Status Check(const MaybeFault& fault) const {
    if (!fault) return absl::OkStatus();
    Error error = Refuse(fault->problem, fault->advice);
    if (fault->limit) error.With("limit", static_cast<int64_t>(*fault->limit));
    return error;
  }

  absl::Status RefuseLimit(std::string_view problem, size_t limit, std::string_view advice) const {
    return Check(LimitFault(problem, limit, advice));
  }

  absl::Status Count() {
    if (++clauses_ <= Filter::kClausesMax) return absl::OkStatus();
    return RefuseLimit("is one condition or listed value too many", Filter::kClausesMax,
                       "ask in several requests");
  }

  absl::Status CheckDepth() const {
    if (depth_ <= Filter::kDepthMax) return absl::OkStatus();
    return RefuseLimit("nests $and, $or, $nor, $not and $elemMatch too deep", Filter::kDepthMax,
                       "write a flatter filter");
  }

  // One level of nested operators, for as long as it is compiled.
  class Deeper {
   public:
    explicit Deeper(int& depth) : depth_(depth) { ++depth_; }
    ~Deeper() { --depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    int& depth_;
  };

  // The filter itself, an element of $and and the like, or what an object in an array is asked.
  absl::Status Object(std::string_view object, Nodes& nodes, bool in_array = false) {
    Trail::Level level(trail_);
    Member member;
    for (MemberReader reader(object); reader.Next(member); level.Leave()) {
      level.At(member.name);
      if (IsListName(member.name)) {
        RETURN_IF_ERROR(List(member, nodes));
      } else if (IsOperatorName(member.name) && !(in_array && IsReferenceName(member.name))) {
        return RefuseOperatorInObject(member.name);
      } else {
        RETURN_IF_ERROR(OfMember(member, nodes));
      }
    }
    return absl::OkStatus();
  }

  absl::Status RefuseOperatorInObject(std::string_view name) const {
    if (!IsMemberOperator(name)) return RefuseUnknown(name);
    return Refuse(
        "stands where a member name is expected",
        absl::StrCat("put it under a name, such as {\"price\": {\"", ToAbsl(name), "\": …}}"));
  }

  absl::Status RefuseUnknown(std::string_view name) const {
    return Refuse(absl::StrCat("is no operator: ", ToAbsl(ShownPath(name))),
                  absl::StrCat("there are ", ToAbsl(kOperatorList),
                               "; name a member that begins with \"$\" by a pointer, \"/$…\""));
  }

  // $and, $or, $nor.
  absl::Status List(const Member& list, Nodes& nodes) {
    const Deeper deeper(depth_);
    RETURN_IF_ERROR(CheckDepth());
    if (list.type != kBsonArray || list.value == kEmptyDocument) {
      return Refuse("is not an array of at least one object",
                    absl::StrCat("write {\"", ToAbsl(list.name), "\": [{…}, {…}]}"));
    }
    FilterNode all(list.name == "$and" ? FilterKind::kAll : FilterKind::kAny);
    Trail::Level level(trail_);
    Member element;
    int64_t index = 0;
    for (MemberReader reader(list.value); reader.Next(element); level.Leave()) {
      level.At(index++);
      if (element.type != kBsonObject) {
        return Refuse("is not an object", "list filters, such as {\"price\": {\"$gt\": 5}}");
      }
      if (element.value == kEmptyDocument) RETURN_IF_ERROR(Count());
      FilterNode each(FilterKind::kAll);
      RETURN_IF_ERROR(Object(element.value, each.children));
      all.children.push_back(std::move(each));
    }
    if (list.name == "$nor") all = Not(std::move(all));
    nodes.push_back(std::move(all));
    return absl::OkStatus();
  }

  static FilterNode Not(FilterNode node) {
    FilterNode result(FilterKind::kNot);
    result.children.push_back(std::move(node));
    return result;
  }

  absl::Status OfMember(const Member& member, Nodes& nodes) {
    FilterPath path;
    RETURN_IF_ERROR(Check(ParseFilterPath(member.name, path)));
    tree_.paths.push_back(std::move(path));
    const FilterPath* const at = &tree_.paths.back();
    if (HoldsOperators(member)) return Operators(at, member.value, nodes);
    if (member.type == kBsonObject) RETURN_IF_ERROR(CheckNoOperators(member.value));
    if (member.type == kBsonRegex) return Regex(at, member, nodes);
    return CompareWith(FilterKind::kEqual, at, member, nodes);
  }

  // An object that is compared with, not an object of operators, yet names one.
  absl::Status CheckNoOperators(std::string_view object) {
    Trail::Level level(trail_);
    Member member;
    for (MemberReader reader(object); reader.Next(member); level.Leave()) {
      level.At(member.name);
      if (IsMemberOperator(member.name)) {
        return Refuse("is an operator behind a member that is none", kLiteralAdvice);
      }
    }
    return absl::OkStatus();
  }

  absl::Status Operators(const FilterPath* at, std::string_view object, Nodes& nodes) {
    Trail::Level level(trail_);
    Member member;
    for (MemberReader reader(object); reader.Next(member); level.Leave()) {
      level.At(member.name);
      RETURN_IF_ERROR(Operator(at, object, member, nodes));
    }
    return absl::OkStatus();
  }

  absl::Status Operator(const FilterPath* at, std::string_view object, const Member& member,
                        Nodes& nodes) {
    const std::string_view name = member.name;
    if (!IsOperatorName(name)) {
      return Refuse("is a member beside operators",
                    absl::StrCat("name it in a condition of its own, such as {\"a.b\": …}, or ",
                                 ToAbsl(kLiteralAdvice)));
    }
    for (const Named& comparison : kComparisons) {
      if (comparison.name == name) return Comparison(comparison.kind, at, member, nodes);
    }
    if (name == "$in" || name == "$nin") return In(at, member, nodes);
    if (name == "$exists") return Exists(at, member, nodes);
    if (name == "$type") return Type(at, member, nodes);
    if (name == "$size") return Size(at, member, nodes);
    if (name == "$regex") return RegexOperator(at, object, member, nodes);
    if (name == "$options") return Options(object);
    if (name == "$elemMatch") return ElemMatch(at, member, nodes);
    if (name == "$all") return All(at, member, nodes);
    if (name == "$not") return NotOperator(at, member, nodes);
    if (IsListName(name)) {
      return Refuse("stands under a member name",
                    absl::StrCat("put it beside member names, as in {\"", ToAbsl(name),
                                 "\": [{\"a\": …}, {\"a\": …}]}"));
    }
    return RefuseUnknown(name);
  }

  absl::Status CompareWith(FilterKind kind, const FilterPath* at, const Member& operand,
                           Nodes& nodes) {
    RETURN_IF_ERROR(Count());
    FilterNode node(kind, at);
    node.operand = {operand.type, operand.value};
    nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  absl::Status Comparison(FilterKind kind, const FilterPath* at, const Member& member,
                          Nodes& nodes) {
    if (member.type == kBsonRegex && member.name != "$eq") {
      return Refuse("compares with a regular expression",
                    member.name == "$ne" ? "write {\"$not\": regex}"
                                         : "compare with a string, or match with $regex");
    }
    RETURN_IF_ERROR(CompareWith(kind, at, member, nodes));
    if (member.name == "$ne") nodes.back() = Not(std::move(nodes.back()));
    return absl::OkStatus();
  }

  absl::Status In(const FilterPath* at, const Member& list, Nodes& nodes) {
    if (list.type != kBsonArray) {
      return Refuse("is not an array", "list the values: [1, 2]");
    }
    if (list.value == kEmptyDocument) RETURN_IF_ERROR(Count());
    FilterNode node(FilterKind::kIn, at);
    Trail::Level level(trail_);
    Member element;
    int64_t index = 0;
    for (MemberReader reader(list.value); reader.Next(element); level.Leave()) {
      level.At(index++);
      RETURN_IF_ERROR(Count());
      if (HoldsOperators(element)) {
        return Refuse("is an object of operators in a list of values",
                      "list values and regular expressions only, and combine conditions with $or");
      }
      if (element.type == kBsonRegex) {
        RETURN_IF_ERROR(Check(patterns_.Add(PartsOf(element.value), node.patterns)));
      } else {
        node.values.push_back({element.type, element.value});
      }
    }
    std::sort(node.values.begin(), node.values.end(), [](const Element& a, const Element& b) {
      return Compare(a.type, a.value, b.type, b.value) < 0;
    });
    nodes.push_back(list.name == "$nin" ? Not(std::move(node)) : std::move(node));
    return absl::OkStatus();
  }

  absl::Status Exists(const FilterPath* at, const Member& member, Nodes& nodes) {
    RETURN_IF_ERROR(Count());
    FilterNode node(FilterKind::kExists, at);
    nodes.push_back(IsTrueInFilter(member) ? std::move(node) : Not(std::move(node)));
    return absl::OkStatus();
  }

  absl::Status Type(const FilterPath* at, const Member& member, Nodes& nodes) {
    RETURN_IF_ERROR(Count());
    FilterNode node(FilterKind::kType, at);
    if (member.type != kBsonArray) {
      RETURN_IF_ERROR(Check(AddFilterTypes(member, node.types)));
    } else {
      if (member.value == kEmptyDocument) {
        return Refuse("lists no type", "list at least one, such as [\"string\", \"null\"]");
      }
      Trail::Level level(trail_);
      Member element;
      int64_t index = 0;
      for (MemberReader reader(member.value); reader.Next(element); level.Leave()) {
        level.At(index++);
        RETURN_IF_ERROR(Check(AddFilterTypes(element, node.types)));
      }
    }
    nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  absl::Status Size(const FilterPath* at, const Member& member, Nodes& nodes) {
    RETURN_IF_ERROR(Count());
    FilterNode node(FilterKind::kSize, at);
    RETURN_IF_ERROR(Check(ParseFilterSize(member, node.size)));
    nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  // A bare regex.
  absl::Status Regex(const FilterPath* at, const Member& member, Nodes& nodes) {
    return PatternNode(at, PartsOf(member.value), nodes);
  }

  absl::Status PatternNode(const FilterPath* at, const RegexParts& regex, Nodes& nodes) {
    RETURN_IF_ERROR(Count());
    FilterNode node(FilterKind::kPattern, at);
    RETURN_IF_ERROR(Check(patterns_.Add(regex, node.patterns)));
    nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  absl::Status RegexOperator(const FilterPath* at, std::string_view object, const Member& member,
                             Nodes& nodes) {
    if (member.type != kBsonString && member.type != kBsonRegex) {
      return Refuse("is neither a string nor a regular expression",
                    "write the pattern as a string");
    }
    RegexParts parts;
    if (member.type == kBsonRegex) {
      parts = PartsOf(member.value);
    } else {
      parts.pattern = StringText(member.value);
    }
    Member options;
    if (FindMember(object, "$options", options) && options.type == kBsonString) {
      const std::string_view given = StringText(options.value);
      if (!parts.options.empty() && !given.empty()) {
        return Refuse("has options of its own beside $options", "give them once");
      }
      if (!given.empty()) parts.options = given;
    }
    return PatternNode(at, parts, nodes);
  }

  // What they say, $regex takes along.
  absl::Status Options(std::string_view object) const {
    Member member;
    if (!FindMember(object, "$regex", member)) {
      return Refuse("stands without $regex", "add the pattern, or leave the options out");
    }
    FindMember(object, "$options", member);
    if (member.type == kBsonString) return absl::OkStatus();
    return Refuse("is not a string", "write letters, such as \"im\"");
  }

  absl::Status ElemMatch(const FilterPath* at, const Member& member, Nodes& nodes) {
    const Deeper deeper(depth_);
    RETURN_IF_ERROR(CheckDepth());
    RETURN_IF_ERROR(Count());
    if (member.type != kBsonObject) {
      return Refuse("is not an object",
                    "write conditions on one element: {\"$gt\": 5} or {\"name\": \"x\"}");
    }
    const std::string_view first = FirstName(member.value);
    const bool values = IsOperatorName(first) && !IsListName(first) && !IsReferenceName(first);
    FilterNode node(values ? FilterKind::kElementValue : FilterKind::kElementObject, at);
    if (values) {
      RETURN_IF_ERROR(Operators(nullptr, member.value, node.children));
    } else {
      RETURN_IF_ERROR(Object(member.value, node.children, /*in_array=*/true));
    }
    nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  absl::Status All(const FilterPath* at, const Member& list, Nodes& nodes) {
    if (list.type != kBsonArray) {
      return Refuse("is not an array", "list what the array has to have: [1, 2]");
    }
    // That all of nothing is there does not make a match.
    FilterNode node(list.value == kEmptyDocument ? FilterKind::kAny : FilterKind::kAll);
    if (list.value == kEmptyDocument) RETURN_IF_ERROR(Count());
    Trail::Level level(trail_);
    Member element;
    int64_t index = 0;
    bool elem_match = false;
    for (MemberReader reader(list.value); reader.Next(element); level.Leave()) {
      level.At(index);
      const bool operators = HoldsOperators(element);
      const bool is_elem_match = operators && FirstName(element.value) == "$elemMatch";
      if (index++ == 0) elem_match = is_elem_match;
      if (operators && !is_elem_match) {
        return Refuse("is an object of operators other than $elemMatch",
                      "list values, or $elemMatch in all places");
      }
      if (is_elem_match != elem_match) {
        return Refuse("mixes $elemMatch with values", "list either, and join two $all with $and");
      }
      if (is_elem_match) {
        RETURN_IF_ERROR(OnlyElemMatch(at, element.value, node.children));
      } else if (element.type == kBsonRegex) {
        RETURN_IF_ERROR(Regex(at, element, node.children));
      } else {
        RETURN_IF_ERROR(CompareWith(FilterKind::kEqual, at, element, node.children));
      }
    }
    nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  // An object with $elemMatch and nothing else, in $all.
  absl::Status OnlyElemMatch(const FilterPath* at, std::string_view object, Nodes& nodes) {
    Trail::Level level(trail_);
    Member member;
    for (MemberReader reader(object); reader.Next(member); level.Leave()) {
      level.At(member.name);
      if (member.name != "$elemMatch") {
        return Refuse("stands beside $elemMatch in $all", "move it into the $elemMatch");
      }
      RETURN_IF_ERROR(ElemMatch(at, member, nodes));
    }
    return absl::OkStatus();
  }

  absl::Status NotOperator(const FilterPath* at, const Member& member, Nodes& nodes) {
    const Deeper deeper(depth_);
    RETURN_IF_ERROR(CheckDepth());
    FilterNode all(FilterKind::kAll);
    if (member.type == kBsonRegex) {
      RETURN_IF_ERROR(Regex(at, member, all.children));
    } else if (HoldsOperators(member)) {
      RETURN_IF_ERROR(Operators(at, member.value, all.children));
    } else {
      return Refuse("is neither an object of operators nor a regular expression",
                    "write {\"$not\": {\"$gt\": 5}}, or $ne for a value");
    }
    nodes.push_back(Not(std::move(all)));
    return absl::OkStatus();
  }

  FilterTree& tree_;
  Trail trail_;
  int clauses_ = 0;
  int depth_ = 0;
  PatternCompiler patterns_;
};

}  // namespace

absl::Status CompileFilter(FilterTree& tree) { return Compiler(tree).Compile(); }

}  // namespace strata::document
