// How an error looks on the wire: a canonical code with google.rpc details.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace strata::server {

// Always carries ErrorInfo (reason, domain "strata", metadata); besides, BadRequest with
// INVALID_ARGUMENT, PreconditionFailure with FAILED_PRECONDITION, ResourceInfo with NOT_FOUND and
// ALREADY_EXISTS, RetryInfo where the same call may do better a little later. A status without a
// reason is a bug in the server: it becomes INTERNAL and its message stays inside. Long texts are
// cut, as all of it travels in a header of limited size.
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace strata::server
