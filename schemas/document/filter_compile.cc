// Checks a filter and makes a tree of conditions of it: the parts that hold others.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"
#include "schemas/document/bson_view.h"
#include "schemas/document/filter.h"
#include "schemas/document/filter_conditions.h"
#include "schemas/document/filter_operands.h"
#include "schemas/document/filter_operators.h"
#include "schemas/document/filter_tree.h"
#include "schemas/document/filter_walk.h"

namespace strata::document {
namespace {

class Compiler {
 public:
  explicit Compiler(FilterTree& tree) : tree_(tree) {}

  absl::Status Compile() {
    const std::string_view filter = tree_.filter.bytes();
    if (filter.size() > Filter::kBytesMax) {
      return walk_.RefuseLimit(absl::StrCat("has ", filter.size(), " bytes"), Filter::kBytesMax,
                               "ask for less in one filter");
    }
    return Object(filter, tree_.root.children);
  }

 private:
  using Nodes = std::vector<FilterNode>;

  Error Refuse(std::string_view problem, std::string_view advice) const {
    return walk_.Refuse(problem, advice);
  }

  // The filter itself, an element of $and and the like, or what an object in an array is asked.
  absl::Status Object(std::string_view object, Nodes& nodes, bool in_array = false) {
    Trail::Level level(walk_.trail());
    Member member;
    for (MemberReader reader(object); reader.Next(member); level.Leave()) {
      level.At(member.name);
      if (IsListOperator(member.name)) {
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
    if (!IsMemberOperator(name)) return walk_.RefuseUnknownOperator(name);
    return Refuse(
        "stands where a member name is expected",
        absl::StrCat("put it under a name, such as {\"price\": {\"", ToAbsl(name), "\": …}}"));
  }

  // $and, $or, $nor.
  absl::Status List(const Member& list, Nodes& nodes) {
    const FilterWalk::Nested nested(walk_);
    RETURN_IF_ERROR(nested.CheckDepth());
    if (list.type != kBsonArray || list.value == kEmptyDocument) {
      return Refuse("is not an array of at least one object",
                    absl::StrCat("write {\"", ToAbsl(list.name), "\": [{…}, {…}]}"));
    }
    FilterNode all(list.name == "$and" ? FilterKind::kAll : FilterKind::kAny);
    Trail::Level level(walk_.trail());
    Member element;
    int64_t index = 0;
    for (MemberReader reader(list.value); reader.Next(element); level.Leave()) {
      level.At(index++);
      if (element.type != kBsonObject) {
        return Refuse("is not an object", "list filters, such as {\"price\": {\"$gt\": 5}}");
      }
      if (element.value == kEmptyDocument) RETURN_IF_ERROR(walk_.CountClause());
      FilterNode each(FilterKind::kAll);
      RETURN_IF_ERROR(Object(element.value, each.children));
      all.children.push_back(std::move(each));
    }
    if (list.name == "$nor") all = NotNode(std::move(all));
    nodes.push_back(std::move(all));
    return absl::OkStatus();
  }

  absl::Status OfMember(const Member& member, Nodes& nodes) {
    FilterPath path;
    RETURN_IF_ERROR(walk_.Check(ParseFilterPath(member.name, path)));
    tree_.paths.push_back(std::move(path));
    const FilterPath* const at = &tree_.paths.back();
    if (HoldsOperators(member)) return Operators(at, member.value, nodes);
    if (member.type == kBsonObject) RETURN_IF_ERROR(CheckNoOperators(member.value));
    if (member.type == kBsonRegex) return CompileRegex({walk_, at, nodes}, member);
    return CompileEqual({walk_, at, nodes}, member);
  }

  // An object that is compared with, not an object of operators, yet names one.
  absl::Status CheckNoOperators(std::string_view object) {
    Trail::Level level(walk_.trail());
    Member member;
    for (MemberReader reader(object); reader.Next(member); level.Leave()) {
      level.At(member.name);
      if (IsMemberOperator(member.name)) {
        return Refuse("is an operator after a member that is none", kLiteralAdvice);
      }
    }
    return absl::OkStatus();
  }

  absl::Status Operators(const FilterPath* at, std::string_view object, Nodes& nodes) {
    Trail::Level level(walk_.trail());
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
    bool known = false;
    RETURN_IF_ERROR(CompileCondition({walk_, at, nodes}, object, member, known));
    if (known) return absl::OkStatus();
    if (name == "$elemMatch") return ElemMatch(at, member, nodes);
    if (name == "$all") return All(at, member, nodes);
    if (name == "$not") return NotOperator(at, member, nodes);
    if (IsListOperator(name)) {
      return Refuse("stands under a member name",
                    absl::StrCat("put it beside member names, as in {\"", ToAbsl(name),
                                 "\": [{\"a\": …}, {\"a\": …}]}"));
    }
    return walk_.RefuseUnknownOperator(name);
  }

  absl::Status ElemMatch(const FilterPath* at, const Member& member, Nodes& nodes) {
    const FilterWalk::Nested nested(walk_);
    RETURN_IF_ERROR(nested.CheckDepth());
    RETURN_IF_ERROR(walk_.CountClause());
    if (member.type != kBsonObject) {
      return Refuse("is not an object",
                    "write conditions on one element: {\"$gt\": 5} or {\"name\": \"x\"}");
    }
    const std::string_view first = FirstName(member.value);
    const bool values = IsOperatorName(first) && !IsListOperator(first) && !IsReferenceName(first);
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
    if (list.value == kEmptyDocument) RETURN_IF_ERROR(walk_.CountClause());
    Trail::Level level(walk_.trail());
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
        RETURN_IF_ERROR(CompileRegex({walk_, at, node.children}, element));
      } else {
        RETURN_IF_ERROR(CompileEqual({walk_, at, node.children}, element));
      }
    }
    nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  // An object with $elemMatch and nothing else, in $all.
  absl::Status OnlyElemMatch(const FilterPath* at, std::string_view object, Nodes& nodes) {
    Trail::Level level(walk_.trail());
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
    const FilterWalk::Nested nested(walk_);
    RETURN_IF_ERROR(nested.CheckDepth());
    FilterNode all(FilterKind::kAll);
    if (member.type == kBsonRegex) {
      RETURN_IF_ERROR(CompileRegex({walk_, at, all.children}, member));
    } else if (HoldsOperators(member)) {
      RETURN_IF_ERROR(Operators(at, member.value, all.children));
    } else {
      return Refuse("is neither an object of operators nor a regular expression",
                    "write {\"$not\": {\"$gt\": 5}}, or $ne for a value");
    }
    nodes.push_back(NotNode(std::move(all)));
    return absl::OkStatus();
  }

  FilterTree& tree_;
  FilterWalk walk_;
};

}  // namespace

absl::Status CompileFilter(FilterTree& tree) { return Compiler(tree).Compile(); }

}  // namespace strata::document
