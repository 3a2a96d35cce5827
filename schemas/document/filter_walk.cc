#include "schemas/document/filter_walk.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "schemas/base/strings.h"
#include "schemas/document/filter.h"
#include "schemas/document/filter_operators.h"

namespace strata::document {

Error FilterWalk::Refuse(std::string_view problem, std::string_view advice) const {
  const std::string pointer = trail_.Pointer();
  std::string message = "the filter ";
  if (!pointer.empty()) message = absl::StrCat("\"", pointer, "\" in the filter ");
  absl::StrAppend(&message, ToAbsl(problem), "; ", ToAbsl(advice));
  return Error(ErrorReason::kInvalidFilter, message)
      .With("path", std::string_view(pointer))
      .With("problem", problem);
}

absl::Status FilterWalk::RefuseUnknownOperator(std::string_view name) const {
  return Refuse(absl::StrCat("is no operator: ", ToAbsl(ShownPath(name))),
                absl::StrCat("there are ", ToAbsl(kFilterOperatorList),
                             "; name a member that begins with \"$\" by a pointer, \"/$…\""));
}

absl::Status FilterWalk::RefuseLimit(std::string_view problem, size_t limit,
                                     std::string_view advice) const {
  return Check(LimitFault(problem, limit, advice));
}

absl::Status FilterWalk::Check(const MaybeFault& fault) const {
  if (!fault) return absl::OkStatus();
  Error error = Refuse(fault->problem, fault->advice);
  if (fault->limit) error.With("limit", static_cast<int64_t>(*fault->limit));
  return error;
}

absl::Status FilterWalk::CountClause() {
  if (++clauses_ <= Filter::kClausesMax) return absl::OkStatus();
  return RefuseLimit("is one condition or listed value too many", Filter::kClausesMax,
                     "ask in several requests");
}

absl::Status FilterWalk::AddPattern(const RegexParts& regex, std::vector<Pattern>& patterns) {
  return Check(patterns_.Add(regex, patterns));
}

absl::Status FilterWalk::Nested::CheckDepth() const {
  if (walk_.depth_ <= Filter::kDepthMax) return absl::OkStatus();
  return walk_.RefuseLimit("nests $and, $or, $nor, $not and $elemMatch too deep", Filter::kDepthMax,
                           "write a flatter filter");
}

}  // namespace strata::document
