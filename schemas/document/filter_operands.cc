// What stands in a filter beside its operators: paths, types, numbers of elements and patterns.
#include "schemas/document/filter_operands.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "schemas/base/strings.h"
#include "schemas/document/compare_numbers.h"
#include "schemas/document/filter.h"
#include "schemas/document/path.h"

namespace strata::document {
namespace {

struct TypeAlias {
  std::string_view name;
  int code;
};
// MongoDB's deprecated ones are known too: they are types that no document has.
constexpr TypeAlias kTypes[] = {
    {"double", 1},      {"string", 2},     {"object", 3},
    {"array", 4},       {"binData", 5},    {"undefined", 6},
    {"objectId", 7},    {"bool", 8},       {"date", 9},
    {"null", 10},       {"regex", 11},     {"dbPointer", 12},
    {"javascript", 13}, {"symbol", 14},    {"javascriptWithScope", 15},
    {"int", 16},        {"timestamp", 17}, {"long", 18},
    {"decimal", 19},    {"minKey", -1},    {"maxKey", 127},
};

template <typename Wanted>
bool AddAlias(Wanted wanted, uint32_t& types) {
  const auto* const found = std::find_if(std::begin(kTypes), std::end(kTypes), wanted);
  if (found == std::end(kTypes)) return false;
  types |= TypeBit(static_cast<uint8_t>(found->code));
  return true;
}

FilterFault TooManySegments() {
  return LimitFault("is a path of too many segments", Filter::kPathSegmentsMax,
                    "documents are not that deep");
}

MaybeFault ParsePointer(std::string_view name, FilterPath& path) {
  const auto segments = static_cast<size_t>(std::count(name.begin(), name.end(), '/'));
  if (segments > Filter::kPathSegmentsMax) return TooManySegments();
  const absl::StatusOr<Path> pointer = Path::Parse(name);
  if (!pointer.ok()) {
    return FilterFault{"is no JSON Pointer, although it begins with \"/\"",
                       "write \"~0\" for \"~\" and \"~1\" for \"/\" in a member name, as in "
                       "\"/a~1b\"",
                       {}};
  }
  path = pointer->segments();
  return std::nullopt;
}

}  // namespace

FilterFault LimitFault(std::string_view problem, size_t limit, std::string_view advice) {
  return {absl::StrCat(ToAbsl(problem), ", and the limit is ", limit), std::string(advice), limit};
}

MaybeFault ParseFilterPath(std::string_view name, FilterPath& path) {
  if (!name.empty() && name[0] == '/') return ParsePointer(name, path);
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    if (begin == end) {
      return FilterFault{"is a path with an empty segment",
                         "name a member whose name is empty or has dots by a pointer, such as "
                         "\"/a.b/c\"",
                         {}};
    }
    if (path.size() == Filter::kPathSegmentsMax) return TooManySegments();
    path.emplace_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return std::nullopt;
}

MaybeFault AddFilterTypes(const Member& member, uint32_t& types) {
  if (member.type == kBsonString) {
    const std::string_view name = StringText(member.value);
    if (name == "number") {
      types |=
          TypeBit(kBsonDouble) | TypeBit(kBsonInt32) | TypeBit(kBsonInt64) | TypeBit(kBsonDecimal);
      return std::nullopt;
    }
    if (AddAlias([name](const TypeAlias& type) { return type.name == name; }, types)) {
      return std::nullopt;
    }
    return FilterFault{"is no name of a BSON type",
                       "there are double, string, object, array, binData, objectId, bool, date, "
                       "null, regex, int, timestamp, long, decimal, minKey, maxKey and number",
                       {}};
  }
  if (!IsNumber(member.type)) {
    return FilterFault{"is neither the name nor the number of a BSON type",
                       "write a name such as \"string\", or a list of names",
                       {}};
  }
  const std::optional<int64_t> code = WholeNumber(member.type, member.value);
  if (AddAlias([code](const TypeAlias& type) { return type.code == code; }, types)) {
    return std::nullopt;
  }
  return FilterFault{"is no number of a BSON type",
                     "there are 1 to 19, 127 for maxKey and -1 for minKey; $exists asks for what "
                     "is missing",
                     {}};
}

MaybeFault ParseFilterSize(const Member& member, int64_t& size) {
  const std::optional<int64_t> number =
      IsNumber(member.type) ? WholeNumber(member.type, member.value) : std::nullopt;
  if (!number || *number < 0) {
    return FilterFault{"is not a whole number from 0 on",
                       "write how many elements the array has; to ask for at least five, write "
                       "{\"a.4\": {\"$exists\": true}}",
                       {}};
  }
  size = *number;
  return std::nullopt;
}

bool IsTrueInFilter(const Member& member) {
  if (member.type == kBsonNull) return false;
  if (member.type == kBsonBool) return member.value[0] != 0;
  if (!IsNumber(member.type)) return true;
  static constexpr std::string_view kZero("\0\0\0\0", 4);
  return CompareNumbers(member.type, member.value, kBsonInt32, kZero) != 0;
}

RegexParts PartsOf(std::string_view regex_value) {
  const size_t end = regex_value.find('\0');
  return {regex_value.substr(0, end), regex_value.substr(end + 1, regex_value.size() - end - 2)};
}

MaybeFault PatternCompiler::Add(const RegexParts& regex, std::vector<Pattern>& patterns) {
  if (regex.pattern.size() > Filter::kPatternBytesMax) {
    return LimitFault(absl::StrCat("has a pattern of ", regex.pattern.size(), " bytes"),
                      Filter::kPatternBytesMax, "write a shorter one");
  }
  if (regex.pattern.find('\0') != std::string_view::npos) {
    return FilterFault{"has a pattern with a zero byte", "write \"\\x00\" for it", {}};
  }
  if (!Pattern::AreOptions(regex.options)) {
    return FilterFault{"has options other than i, m and s",
                       "i ignores case, m lets ^ and $ match at lines, s lets . match newlines; "
                       "instead of x, write the pattern without its spaces and comments",
                       {}};
  }
  if (++count_ > Filter::kPatternsMax) {
    return LimitFault("is one regular expression too many", Filter::kPatternsMax,
                      "join some with \"|\"");
  }
  Pattern pattern(regex.pattern, regex.options);
  if (!pattern.ok()) {
    return FilterFault{absl::StrCat("has a pattern that ", pattern.Problem()),
                       "write it in RE2's syntax: no backreferences, lookahead, lookbehind or "
                       "possessive quantifiers, and no more than 1000 repeats",
                       {}};
  }
  size_ += pattern.Size();
  if (size_ > Filter::kPatternSizeMax) {
    return LimitFault(absl::StrCat("brings the regular expressions to ", size_, " instructions"),
                      Filter::kPatternSizeMax,
                      "repeat less often, and use smaller classes of characters");
  }
  patterns.push_back(std::move(pattern));
  return std::nullopt;
}

}  // namespace strata::document
