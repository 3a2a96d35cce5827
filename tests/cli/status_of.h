// Errors as the server sends them.
#pragma once

#include <grpcpp/support/status.h>

#include <cstdint>
#include <map>
#include <string>

namespace strata::cli {

// A status with google.rpc.ErrorInfo and, from `retry_ms` 0 on, google.rpc.RetryInfo.
grpc::Status StatusOf(grpc::StatusCode code, const std::string& reason, const std::string& message,
                      const std::map<std::string, std::string>& metadata = {},
                      int64_t retry_ms = -1);

}  // namespace strata::cli
