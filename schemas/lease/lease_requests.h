// What requests about leases may say. Internal to this folder.
#pragma once

#include "absl/status/status.h"
#include "schemas/lease/leases.h"

namespace strata::lease {

// INVALID_NAME or INVALID_FIELD, whose metadata "field" says which part of the request is wrong.
absl::Status CheckAcquire(const AcquireRequest& request);
absl::Status CheckRenew(const RenewRequest& request);
absl::Status CheckRelease(const ReleaseRequest& request);

}  // namespace strata::lease
