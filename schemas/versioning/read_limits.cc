#include "schemas/versioning/read_limits.h"

#include "absl/strings/cord.h"

namespace strata::versioning {
namespace {

constexpr char kPayload[] = "strata/takes-long";

}  // namespace

absl::Status TakesLong() {
  absl::Status status(absl::StatusCode::kAborted, "takes too long for this thread");
  status.SetPayload(kPayload, absl::Cord());
  return status;
}

bool DoesTakeLong(const absl::Status& status) {
  return status.code() == absl::StatusCode::kAborted && status.GetPayload(kPayload).has_value();
}

}  // namespace strata::versioning
