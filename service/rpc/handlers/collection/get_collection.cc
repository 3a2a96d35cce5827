#include "schemas/base/status_macros.h"
#include "schemas/store/record.h"
#include "service/rpc/convert.h"

namespace strata::rpc::collection_service {

absl::Status GetCollection(const Context& context, const wire::GetCollectionRequest& request,
                           wire::GetCollectionResponse& response) {
  versioning::Collections& collections = context.services.documents.collections();
  ASSIGN_OR_RETURN(const versioning::CollectionPtr collection, collections.Get(request.name()));
  FillCollection(*collection, *response.mutable_collection());
  ASSIGN_OR_RETURN(const versioning::CollectionStatistics statistics,
                   collections.Statistics(*collection));
  auto& filled = *response.mutable_collection()->mutable_statistics();
  filled.set_documents(statistics.documents);
  filled.set_versions(statistics.versions);
  for (const auto& [keyspace, estimate] : statistics.keyspaces) {
    wire::KeyspaceSize& size = *filled.add_keyspaces();
    size.set_keyspace(std::string(store::KeyspaceName(keyspace)));
    size.set_records(estimate.records);
    size.set_bytes(estimate.bytes);
  }
  return absl::OkStatus();
}

}  // namespace strata::rpc::collection_service
