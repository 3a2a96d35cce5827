#include "schemas/document/content_walk.h"

#include "absl/strings/str_cat.h"
#include "schemas/document/extended_json/wrapper.h"

namespace strata::document {

bool ContentWalk::Refuse(std::string_view problem, std::string_view advice) {
  pointer_ = trail_.Pointer();
  problem_ = problem;
  advice_ = advice;
  return false;
}

bool ContentWalk::RefuseNotFinite() { return Refuse(kNotFiniteProblem, kNotFiniteAdvice); }

bool ContentWalk::RefuseDepth() {
  limit_ = limits_.depth_max;
  return Refuse(absl::StrCat("lies deeper than ", limits_.depth_max, " levels"),
                "store a flatter document");
}

bool ContentWalk::RefuseNodes() {
  limit_ = limits_.nodes_max;
  return Refuse(absl::StrCat("is one more than the ", limits_.nodes_max,
                             " members and array elements that a document may have"),
                "split the document");
}

absl::Status ContentWalk::Refusal(std::string_view whole) const {
  Error error = ContentError(pointer_, problem_, advice_, whole);
  if (limit_ >= 0) error.With("limit", limit_);
  return error;
}

}  // namespace strata::document
