// The methods of server reflection. The handler of each lies in the file of its name.
#include "service/rpc/rows.h"

namespace strata::rpc::reflection_service {

OpensStream OpenServerReflectionInfo;

std::vector<server::Method> Methods(Rows rows) {
  rows.Read("ServerReflectionInfo", OpenServerReflectionInfo);
  return rows.Take();
}

}  // namespace strata::rpc::reflection_service
