// The methods of strata.v1.ServerService. The handler of each lies in the file of its name.
#include <strata/wire/v1/server_service.pb.h>

#include "service/rpc/rows.h"

namespace strata::rpc::server_service {

Answers<wire::GetServerInfoRequest, wire::GetServerInfoResponse> GetServerInfo;

std::vector<server::Method> Methods(Rows rows) {
  rows.Add(GetServerInfo);
  return rows.Take();
}

}  // namespace strata::rpc::server_service
