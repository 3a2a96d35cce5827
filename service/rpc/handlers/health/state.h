// The health protocol's words for the server's state.
#pragma once

#include <grpc/health/v1/health.pb.h>

#include "service/observability/health.h"

namespace strata::rpc::health_service {

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
