#include "schemas/base/status_macros.h"
#include "service/rpc/convert.h"

namespace strata::rpc::collection_service {

absl::Status GetLedgerHead(const Context& context, const wire::GetLedgerHeadRequest& /*request*/,
                           wire::GetLedgerHeadResponse& response) {
  ASSIGN_OR_RETURN(const versioning::LedgerHead head, context.services.documents.GetLedgerHead());
  response.mutable_head()->set_position(head.position);
  response.mutable_head()->set_hash(std::string(HashBytes(head.hash)));
  return absl::OkStatus();
}

}  // namespace strata::rpc::collection_service
