// Checks a filter and makes a tree of conditions of it.
#include <algorithm>
#include <array>
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
#include "schemas/document/compare_numbers.h"
#include "schemas/document/content_error.h"
#include "schemas/document/filter.h"
#include "schemas/document/filter_tree.h"
#include "schemas/document/path.h"

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

struct TypeAlias {
  std::string_view name;
  int code;
};
// The deprecated ones are names of types that no document has.
constexpr TypeAlias kTypes[] = {
    {"double", 1},   {"string", 2},      {"object", 3},
    {"array", 4},    {"binData", 5},     {"undefined", 6},
    {"objectId", 7}, {"bool", 8},        {"date", 9},
    {"null", 10},    {"regex", 11},      {"dbPointer", 12},
    {"symbol", 14},  {"javascript", 13}, {"javascriptWithScope", 15},
    {"int", 16},     {"timestamp", 17},  {"long", 18},
    {"decimal", 19}, {"minKey", -1},     {"maxKey", 127},
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

struct RegexParts {
  std::string_view pattern;
  std::string_view options;
};
RegexParts PartsOf(std::string_view regex) {
  const size_t end = regex.find('\0');
  return {regex.substr(0, end), regex.substr(end + 1, regex.size() - end - 2)};
}

// Whether a value counts as true for $exists.
bool IsTrue(const Member& member) {
  if (member.type == kBsonNull) return false;
  if (member.type == kBsonBool) return member.value[0] != 0;
  if (!IsNumber(member.type)) return true;
  static constexpr std::string_view kZero("\0\0\0\0", 4);
  return CompareNumbers(member.type, member.value, kBsonInt32, kZero) != 0;
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

  Error RefuseLimit(std::string_view problem, size_t limit, std::string_view advice) const {
    Error error = Refuse(absl::StrCat(ToAbsl(problem), ", and the limit is ", limit), advice);
    error.With("limit", static_cast<int64_t>(limit));
    return error;
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
    RETURN_IF_ERROR(ParsePath(member.name, path));
    tree_.paths.push_back(std::move(path));
    const FilterPath* const at = &tree_.paths.back();
    if (HoldsOperators(member)) return Operators(at, member.value, nodes);
    if (member.type == kBsonObject) RETURN_IF_ERROR(CheckNoOperators(member.value));
    if (member.type == kBsonRegex) return Regex(at, member, nodes);
    return CompareWith(FilterKind::kEqual, at, member, nodes);
  }

  absl::Status ParsePath(std::string_view name, FilterPath& path) const {
    if (!name.empty() && name[0] == '/') {
      const absl::StatusOr<Path> pointer = Path::Parse(name);
      if (pointer.ok()) {
        path = pointer->segments();
        return absl::OkStatus();
      }
      if (static_cast<size_t>(std::count(name.begin(), name.end(), '/')) >
          Filter::kPathSegmentsMax) {
        return RefuseSegments();
      }
      return Refuse("is no JSON Pointer, although it begins with \"/\"",
                    "write \"~0\" for \"~\" and \"~1\" for \"/\" in a member name, as in "
                    "\"/a~1b\"");
    }
    for (size_t begin = 0; begin <= name.size();) {
      const size_t end = std::min(name.find('.', begin), name.size());
      if (begin == end) {
        return Refuse("is a path with an empty segment",
                      "name a member whose name is empty or has dots by a pointer, such as "
                      "\"/a.b/c\"");
      }
      if (path.size() == Filter::kPathSegmentsMax) return RefuseSegments();
      path.emplace_back(name.substr(begin, end - begin));
      begin = end + 1;
    }
    return absl::OkStatus();
  }

  Error RefuseSegments() const {
    return RefuseLimit("is a path of too many segments", Filter::kPathSegmentsMax,
                       "documents are not that deep");
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
        const RegexParts parts = PartsOf(element.value);
        RETURN_IF_ERROR(AddPattern(parts.pattern, parts.options, node));
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
    nodes.push_back(IsTrue(member) ? std::move(node) : Not(std::move(node)));
    return absl::OkStatus();
  }

  absl::Status Type(const FilterPath* at, const Member& member, Nodes& nodes) {
    RETURN_IF_ERROR(Count());
    FilterNode node(FilterKind::kType, at);
    if (member.type != kBsonArray) {
      RETURN_IF_ERROR(AddType(member, node.types));
    } else {
      if (member.value == kEmptyDocument) {
        return Refuse("lists no type", "list at least one, such as [\"string\", \"null\"]");
      }
      Trail::Level level(trail_);
      Member element;
      int64_t index = 0;
      for (MemberReader reader(member.value); reader.Next(element); level.Leave()) {
        level.At(index++);
        RETURN_IF_ERROR(AddType(element, node.types));
      }
    }
    nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  absl::Status AddType(const Member& member, uint32_t& types) const {
    if (member.type == kBsonString) {
      const std::string_view name = StringText(member.value);
      if (name == "number") {
        types |= TypeBit(kBsonDouble) | TypeBit(kBsonInt32) | TypeBit(kBsonInt64) |
                 TypeBit(kBsonDecimal);
        return absl::OkStatus();
      }
      for (const TypeAlias& type : kTypes) {
        if (type.name != name) continue;
        types |= TypeBit(static_cast<uint8_t>(type.code));
        return absl::OkStatus();
      }
      return Refuse("is no name of a BSON type",
                    "there are double, string, object, array, binData, objectId, bool, date, "
                    "null, regex, int, timestamp, long, decimal, minKey, maxKey and number");
    }
    if (IsNumber(member.type)) {
      const std::optional<int64_t> code = WholeNumber(member.type, member.value);
      for (const TypeAlias& type : kTypes) {
        if (code != type.code) continue;
        types |= TypeBit(static_cast<uint8_t>(type.code));
        return absl::OkStatus();
      }
      if (code == 0) {
        return Refuse("is no number of a BSON type", "ask for a missing member with $exists");
      }
      return Refuse("is no number of a BSON type",
                    "there are 1 to 19, 127 for maxKey and -1 for minKey");
    }
    return Refuse("is neither the name nor the number of a BSON type",
                  "write a name such as \"string\", or a list of names");
  }

  absl::Status Size(const FilterPath* at, const Member& member, Nodes& nodes) {
    RETURN_IF_ERROR(Count());
    const std::optional<int64_t> size =
        IsNumber(member.type) ? WholeNumber(member.type, member.value) : std::nullopt;
    if (!size || *size < 0) {
      return Refuse("is not a whole number from 0 on",
                    "write how many elements the array has; a range takes another member, such "
                    "as {\"a.4\": {\"$exists\": true}} for five or more");
    }
    FilterNode node(FilterKind::kSize, at);
    node.size = *size;
    nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  // A bare regex.
  absl::Status Regex(const FilterPath* at, const Member& member, Nodes& nodes) {
    const RegexParts parts = PartsOf(member.value);
    return PatternNode(at, parts.pattern, parts.options, nodes);
  }

  absl::Status PatternNode(const FilterPath* at, std::string_view pattern, std::string_view options,
                           Nodes& nodes) {
    RETURN_IF_ERROR(Count());
    FilterNode node(FilterKind::kPattern, at);
    RETURN_IF_ERROR(AddPattern(pattern, options, node));
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
    return PatternNode(at, parts.pattern, parts.options, nodes);
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

  absl::Status AddPattern(std::string_view pattern, std::string_view options, FilterNode& node) {
    if (pattern.size() > Filter::kPatternBytesMax) {
      return RefuseLimit(absl::StrCat("has a pattern of ", pattern.size(), " bytes"),
                         Filter::kPatternBytesMax, "write a shorter one");
    }
    if (pattern.find('\0') != std::string_view::npos) {
      return Refuse("has a pattern with a zero byte", "write \"\\x00\" for it");
    }
    if (!Pattern::AreOptions(options)) {
      return Refuse("has options other than i, m and s",
                    "i ignores case, m lets ^ and $ match at lines, s lets . match newlines; for "
                    "x, write the pattern without its spaces and comments");
    }
    if (++patterns_ > Filter::kPatternsMax) {
      return RefuseLimit("is one regular expression too many", Filter::kPatternsMax,
                         "join some with \"|\"");
    }
    Pattern compiled(pattern, options);
    if (!compiled.ok()) {
      return Refuse(absl::StrCat("has a pattern that ", compiled.Problem()),
                    "write it in RE2's syntax: no backreferences, lookahead, lookbehind or "
                    "possessive quantifiers, and no more than 1000 repeats");
    }
    pattern_size_ += compiled.Size();
    if (pattern_size_ > Filter::kPatternSizeMax) {
      return RefuseLimit(
          absl::StrCat("brings the regular expressions to ", pattern_size_, " instructions"),
          Filter::kPatternSizeMax, "repeat less, and use smaller classes of characters");
    }
    node.patterns.push_back(std::move(compiled));
    return absl::OkStatus();
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
  int patterns_ = 0;
  int pattern_size_ = 0;
};

}  // namespace

absl::Status CompileFilter(FilterTree& tree) { return Compiler(tree).Compile(); }

}  // namespace strata::document
