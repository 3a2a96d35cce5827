// The health protocol's words for the server's state.
#pragma once

#include <grpc/health/v1/health.pb.h>

#include <string>

#include "schemas/base/error.h"
#include "service/observability/health.h"

namespace strata::rpc::health_service {

// INVALID_FIELD: the name is longer than that of any service here, and a Watch would keep it.
inline absl::Status CheckServiceName(const std::string& name) {
  constexpr size_t kBytesMax = 256;
  if (name.size() <= kBytesMax) return absl::OkStatus();
  return Error(ErrorReason::kInvalidField,
               "service has " + std::to_string(name.size()) + " bytes, at most 256 are allowed")
      .With("field", "service")
      .With("limit", static_cast<int64_t>(kBytesMax));
}

inline grpc::health::v1::HealthCheckResponse ToResponse(observability::Health::State state) {
  using Response = grpc::health::v1::HealthCheckResponse;
  Response response;
  switch (state) {
    case observability::Health::State::kServing:
      response.set_status(Response::SERVING);
      break;
    case observability::Health::State::kNotServing:
      response.set_status(Response::NOT_SERVING);
      break;
    case observability::Health::State::kUnknownService:
      response.set_status(Response::SERVICE_UNKNOWN);
      break;
  }
  return response;
}

}  // namespace strata::rpc::health_service
