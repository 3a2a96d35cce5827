// Where a server is, as a person writes it.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace strata::client {

// "host:port", "host" (port 50051), "[v6]:port" or "[v6]", as gRPC takes it. INVALID_ARGUMENT with
// an explanation: a scheme such as http://, a path, no host, a port that is none. What begins with
// "unix:" is taken as it is.
absl::StatusOr<std::string> TargetOf(std::string_view text);

}  // namespace strata::client
