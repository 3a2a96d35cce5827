// A CommitRequest as a person writes it.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "strata/v1/transaction_service.pb.h"

namespace strata::client {

// From protobuf's JSON form. What stands as `json` in a content is taken as everywhere on the
// command line, and sent as exact BSON. INVALID_ARGUMENT for what is no such JSON.
absl::StatusOr<v1::CommitRequest> CommitRequestFromJson(const std::string& json);

}  // namespace strata::client
