// The methods of grpc.health.v1.Health. The handler of each lies in the file of its name.
#include <grpc/health/v1/health.pb.h>

#include "service/rpc/rows.h"

namespace strata::rpc::health_service {

Answers<grpc::health::v1::HealthCheckRequest, grpc::health::v1::HealthCheckResponse> Check;
OpensStream<grpc::health::v1::HealthCheckRequest> OpenWatch;

std::vector<server::Method> Methods(Rows rows) {
  rows.AddOpen("Check", Check);
  rows.AddOpen("Watch", OpenWatch);
  return rows.Take();
}

}  // namespace strata::rpc::health_service
