// How many documents are read as of one moment on an engine without snapshots: twice, until nothing
// has changed in between.
#pragma once

#include <algorithm>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"

namespace strata::versioning {

inline constexpr int kMomentAttempts = 16;

// What `collect` gave, a StatusOr of a vector, once it gave the same twice in a row. What is the
// `same` never comes back once it has changed: versions do not. RETRIES_EXHAUSTED, and whatever
// `collect` answers.
template <typename Collect, typename Same>
auto CollectOneMoment(Collect collect, Same same) -> decltype(collect()) {
  ASSIGN_OR_RETURN(auto before, collect());
  for (int i = 0; i < kMomentAttempts; ++i) {
    ASSIGN_OR_RETURN(auto now, collect());
    if (std::equal(now.begin(), now.end(), before.begin(), before.end(), same)) return now;
    before = std::move(now);
  }
  return Error(ErrorReason::kRetriesExhausted,
               "the documents changed each time they were read; ask for fewer at once")
      .With("attempts", kMomentAttempts);
}

}  // namespace strata::versioning
