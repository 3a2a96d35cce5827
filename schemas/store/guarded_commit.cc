#include "schemas/store/guarded_commit.h"

#include "schemas/base/error.h"

namespace strata::store {

absl::Status RetriesExhausted(std::string_view subject, int attempts) {
  return Error(ErrorReason::kRetriesExhausted, "lost the race for " + std::string(subject) + " " +
                                                   std::to_string(attempts) + " times")
      .With("attempts", int64_t{attempts});
}

}  // namespace strata::store
