// The methods of server reflection. The handler of each lies in the file of its name.
#include <grpc/reflection/v1/reflection.pb.h>

#include "service/rpc/rows.h"

namespace strata::rpc::reflection_service {

OpensStream<grpc::reflection::v1::ServerReflectionRequest> OpenServerReflectionInfo;

std::vector<server::Method> Methods(Rows rows) {
  rows.AddOpen("ServerReflectionInfo", OpenServerReflectionInfo);
  return rows.Take();
}

}  // namespace strata::rpc::reflection_service
