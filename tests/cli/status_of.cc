// As service/rpc renders them: a google.rpc.Status in the status's details.
#include "tests/cli/status_of.h"

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace strata::cli {
grpc::Status StatusOf(grpc::StatusCode code, const std::string& reason, const std::string& message,
                      const std::map<std::string, std::string>& metadata, int64_t retry_ms) {
  google::rpc::ErrorInfo info;
  info.set_reason(reason);
  info.set_domain("strata");
  info.mutable_metadata()->insert(metadata.begin(), metadata.end());
  google::rpc::Status status;
  status.set_code(code);
  status.set_message(message);
  status.add_details()->PackFrom(info);
  if (retry_ms >= 0) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(retry_ms / 1000);
    retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(retry_ms % 1000) * 1'000'000);
    status.add_details()->PackFrom(retry);
  }
  return {code, message, status.SerializeAsString()};
}

}  // namespace strata::cli
