// What stands in a filter beside its operators: paths, types, numbers of elements and patterns.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schemas/document/bson_view.h"
#include "schemas/document/filter_tree.h"
#include "schemas/document/pattern.h"

namespace strata::document {

// Why something cannot stand in a filter ("is NaN"), and what to write instead ("write …").
struct FilterFault {
  std::string problem;
  std::string advice;
  std::optional<size_t> limit;  // the one that is passed
};

FilterFault LimitFault(std::string_view problem, size_t limit, std::string_view advice);

// Each of the functions below gives nothing if all went well.
using MaybeFault = std::optional<FilterFault>;

// A dotted path, or a JSON Pointer if it begins with "/".
MaybeFault ParseFilterPath(std::string_view name, FilterPath& path);

// Adds the bits of a type that is named or numbered as MongoDB's $type has it.
MaybeFault AddFilterTypes(const Member& member, uint32_t& types);

// A whole number from 0 on.
MaybeFault ParseFilterSize(const Member& member, int64_t& size);

// Whether a value counts as true for $exists.
bool IsTrueInFilter(const Member& member);

struct RegexParts {
  std::string_view pattern;
  std::string_view options;
};
RegexParts PartsOf(std::string_view regex_value);

// Compiles the patterns of one filter, within the limits of them all.
class PatternCompiler {
 public:
  MaybeFault Add(const RegexParts& regex, std::vector<Pattern>& patterns);

 private:
  int count_ = 0;
  int size_ = 0;
};

}  // namespace strata::document
