// A walk through content that may refuse it: where it is, what it counted, what it found wrong.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "schemas/document/content.h"
#include "schemas/document/content_error.h"

namespace strata::document {

class ContentWalk {
 public:
  // The limits outlive it.
  explicit ContentWalk(const Limits& limits) : limits_(limits) {}

  Trail& trail() { return trail_; }

  // Each gives true if that may be, else refuses: one more member or array element; an object or
  // array inside of one at `depth` (the document's is 1).
  bool CountNode() { return ++nodes_ <= limits_.nodes_max || RefuseNodes(); }
  bool MayNest(int depth) { return depth < limits_.depth_max || RefuseDepth(); }

  // Each keeps what is wrong at the trail's place, and gives false.
  bool Refuse(std::string_view problem, std::string_view advice);
  bool RefuseNotFinite();

  // INVALID_CONTENT with what was refused; `whole` is what errors call what is walked through.
  absl::Status Refusal(std::string_view whole) const;

 private:
  bool RefuseNodes();
  bool RefuseDepth();

  const Limits& limits_;
  Trail trail_;
  int nodes_ = 0;
  std::string pointer_;
  std::string problem_;
  std::string advice_;
  int64_t limit_ = -1;  // the one that is passed; negative: none
};

}  // namespace strata::document
