#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "service/rpc/context.h"
#include "service/rpc/handlers/health/state.h"

namespace strata::rpc::health_service {

absl::Status Check(const Context& context, const grpc::health::v1::HealthCheckRequest& request,
                   grpc::health::v1::HealthCheckResponse& response) {
  RETURN_IF_ERROR(CheckServiceName(request.service()));
  const observability::Health::State state = context.services.health.Of(request.service());
  if (state == observability::Health::State::kUnknownService) {
    return Error(ErrorReason::kServiceNotFound, "no such service")
        .With("service", request.service());
  }
  response = ToResponse(state);
  return absl::OkStatus();
}

}  // namespace strata::rpc::health_service
