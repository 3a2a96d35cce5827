// A walk through a filter that may refuse it: where it is, and what it counted.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "schemas/base/error.h"
#include "schemas/document/content_error.h"
#include "schemas/document/filter_operands.h"
#include "schemas/document/pattern.h"

namespace strata::document {

class FilterWalk {
 public:
  Trail& trail() { return trail_; }

  // INVALID_FILTER: what is wrong at the trail's place ("is no object"), and what to do instead.
  Error Refuse(std::string_view problem, std::string_view advice) const;
  absl::Status RefuseUnknownOperator(std::string_view name) const;
  // A limit of the whole filter is passed.
  absl::Status RefuseLimit(std::string_view problem, size_t limit, std::string_view advice) const;
  // OK for no fault.
  absl::Status Check(const MaybeFault& fault) const;

  // One more condition or listed value.
  absl::Status CountClause();
  absl::Status AddPattern(const RegexParts& regex, std::vector<Pattern>& patterns);

  // One level of nested operators, for as long as it is compiled.
  class Nested {
   public:
    explicit Nested(FilterWalk& walk) : walk_(walk) { ++walk_.depth_; }
    ~Nested() { --walk_.depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

    absl::Status CheckDepth() const;

   private:
    FilterWalk& walk_;
  };

 private:
  Trail trail_;
  int clauses_ = 0;
  int depth_ = 0;
  PatternCompiler patterns_;
};

// How to compare with an object whose members have names of operators.
inline constexpr std::string_view kLiteralAdvice =
    "write {\"$eq\": …} to compare with the object itself";

}  // namespace strata::document
