// ErrorInfo is written by hand, since the packaged error_details.proto does not have it.
#include "tests/cli/status_of.h"

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace strata::cli {
namespace {

// A length-delimited field; all texts here are shorter than 128 bytes.
std::string Field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}

}  // namespace

grpc::Status StatusOf(grpc::StatusCode code, const std::string& reason, const std::string& message,
                      const std::map<std::string, std::string>& metadata, int64_t retry_ms) {
  std::string info = Field(1, reason) + Field(2, "strata");
  for (const auto& [name, value] : metadata) info += Field(3, Field(1, name) + Field(2, value));
  google::rpc::Status status;
  status.set_code(code);
  status.set_message(message);
  google::protobuf::Any& detail = *status.add_details();
  detail.set_type_url("type.googleapis.com/google.rpc.ErrorInfo");
  detail.set_value(info);
  if (retry_ms >= 0) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(retry_ms / 1000);
    retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(retry_ms % 1000) * 1'000'000);
    status.add_details()->PackFrom(retry);
  }
  return {code, message, status.SerializeAsString()};
}

}  // namespace strata::cli
