// The registry: every handler of handlers/*.def, declared and tabulated.
#include <grpc/health/v1/health.pb.h>

#include <algorithm>

#include "service/rpc/convert.h"
#include "service/rpc/method.h"

namespace strata::rpc {

#define READ(name) \
  absl::Status name(const Context&, const wire::name##Request&, wire::name##Response&);
#define SCAN(name) READ(name)
#define WRITE(name) \
  void name(const Context&, const wire::name##Request&, Reply<wire::name##Response>);
namespace document_service {
#include "service/rpc/handlers/document.def"
}
#define STREAM(name, handler) \
  std::unique_ptr<StreamHandler> handler(const Services& services, Stream& stream);
namespace collection_service {
#include "service/rpc/handlers/collection.def"
}
namespace enrollment_service {
#define SCAN_WRITE(name) WRITE(name)
#include "service/rpc/handlers/enrollment.def"
#undef SCAN_WRITE
#undef STREAM
}  // namespace enrollment_service
#undef READ
#undef SCAN
#undef WRITE

namespace health_service {
using Request = grpc::health::v1::HealthCheckRequest;
using Response = grpc::health::v1::HealthCheckResponse;
#define UNARY(name, handler) absl::Status handler(const Context&, const Request&, Response&);
#define STREAM(name, handler) \
  std::unique_ptr<StreamHandler> handler(const Services& services, Stream& stream);
#include "service/rpc/handlers/health.def"
#undef UNARY
#undef STREAM
}  // namespace health_service

namespace reflection_service {
#define STREAM(service, name, handler) \
  std::unique_ptr<StreamHandler> handler(const Services& services, Stream& stream);
#include "service/rpc/handlers/reflection.def"
#undef STREAM
}  // namespace reflection_service

std::vector<Method> AllMethods() {
  using Kind = Method::Kind;
  std::vector<Method> all;
#define METHOD(kind, name) \
  all.push_back(UnaryMethod<&SERVICE_NAMESPACE::name>(kind, SERVICE_NAME, #name));
#define READ(name) METHOD(Kind::kRead, name)
#define SCAN(name) METHOD(Kind::kScan, name)
#define WRITE(name) METHOD(Kind::kWrite, name)
#define SERVICE_NAMESPACE document_service
#define SERVICE_NAME "strata.v1.DocumentService"
#include "service/rpc/handlers/document.def"
#undef SERVICE_NAMESPACE
#undef SERVICE_NAME
#define SERVICE_NAMESPACE collection_service
#define SERVICE_NAME "strata.v1.CollectionService"
#define STREAM(name, handler) \
  all.push_back(StreamMethod(SERVICE_NAME, #name, &SERVICE_NAMESPACE::handler));
#include "service/rpc/handlers/collection.def"
#undef SERVICE_NAMESPACE
#undef SERVICE_NAME
#define SERVICE_NAMESPACE enrollment_service
#define SERVICE_NAME "strata.v1.EnrollmentService"
#define SCAN_WRITE(name) METHOD(Kind::kScan, name)
#include "service/rpc/handlers/enrollment.def"
#undef SCAN_WRITE
#undef STREAM
#undef SERVICE_NAMESPACE
#undef SERVICE_NAME
#undef READ
#undef SCAN
#undef WRITE
#undef METHOD

#define UNARY(name, handler) \
  all.push_back(UnaryMethod<&health_service::handler>(Kind::kRead, "grpc.health.v1.Health", #name));
#define STREAM(name, handler) \
  all.push_back(StreamMethod("grpc.health.v1.Health", #name, &health_service::handler));
#include "service/rpc/handlers/health.def"
#undef UNARY
#undef STREAM

#define STREAM(service, name, handler) \
  all.push_back(StreamMethod(service, #name, &reflection_service::handler));
#include "service/rpc/handlers/reflection.def"
#undef STREAM
  return all;
}

std::vector<std::string> ServiceNames(const std::vector<Method>& methods) {
  std::vector<std::string> names;
  for (const Method& method : methods) {
    if (std::find(names.begin(), names.end(), method.service) == names.end()) {
      names.push_back(method.service);
    }
  }
  return names;
}

}  // namespace strata::rpc
