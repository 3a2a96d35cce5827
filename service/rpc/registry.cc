#include "service/rpc/registry.h"

#include <iterator>
#include <string_view>
#include <utility>

#include "service/rpc/rows.h"

namespace strata::rpc {

// Each lies in handlers/<service>/methods.cc.
using MethodsOf = std::vector<server::Method>(Rows rows);
namespace document_service {
MethodsOf Methods;
}
namespace collection_service {
MethodsOf Methods;
}
namespace enrollment_service {
MethodsOf Methods;
}
namespace transaction_service {
MethodsOf Methods;
}
namespace lease_service {
MethodsOf Methods;
}
namespace feed_service {
MethodsOf Methods;
}
namespace queue_service {
MethodsOf Methods;
}
namespace server_service {
MethodsOf Methods;
}
namespace health_service {
MethodsOf Methods;
}
namespace reflection_service {
MethodsOf Methods;
}

namespace {

struct Service {
  std::string_view name;
  MethodsOf* methods;
  bool operational = false;  // Method::operational
  bool reflection = false;   // tells of the others
};

constexpr Service kServices[] = {
    {"strata.v1.DocumentService", document_service::Methods},
    {"strata.v1.CollectionService", collection_service::Methods},
    {"strata.v1.EnrollmentService", enrollment_service::Methods},
    {"strata.v1.TransactionService", transaction_service::Methods},
    {"strata.v1.LeaseService", lease_service::Methods},
    {"strata.v1.FeedService", feed_service::Methods},
    {"strata.v1.QueueService", queue_service::Methods},
    {"strata.v1.ServerService", server_service::Methods},
    {"grpc.health.v1.Health", health_service::Methods, true},
    // Both versions are the same on the wire.
    {"grpc.reflection.v1.ServerReflection", reflection_service::Methods, true, true},
    {"grpc.reflection.v1alpha.ServerReflection", reflection_service::Methods, true, true},
};

}  // namespace

std::vector<std::string> ServiceNames(bool reflection) {
  std::vector<std::string> names;
  for (const Service& service : kServices) {
    if (reflection || !service.reflection) names.emplace_back(service.name);
  }
  return names;
}

std::vector<server::Method> AllMethods(const Services& services, bool reflection) {
  std::vector<server::Method> all;
  for (const Service& service : kServices) {
    if (!reflection && service.reflection) continue;
    std::vector<server::Method> methods =
        service.methods(Rows(service.name, service.operational, services));
    all.insert(all.end(), std::make_move_iterator(methods.begin()),
               std::make_move_iterator(methods.end()));
  }
  return all;
}

}  // namespace strata::rpc
