// The methods of strata.v1.CollectionService. The handler of each lies in the file of its name.
#include "service/rpc/convert.h"
#include "service/rpc/rows.h"

namespace strata::rpc::collection_service {

AnswersLater<wire::CreateCollectionRequest, wire::CreateCollectionResponse> CreateCollection;
Answers<wire::GetCollectionRequest, wire::GetCollectionResponse> GetCollection;
Answers<wire::ListCollectionsRequest, wire::ListCollectionsResponse> ListCollections;
Answers<wire::GetLedgerHeadRequest, wire::GetLedgerHeadResponse> GetLedgerHead;
AnswersLater<wire::DeleteCollectionRequest, wire::DeleteCollectionResponse> DeleteCollection;
OpensStream<wire::VerifyRequest> OpenVerify;

std::vector<server::Method> Methods(Rows rows) {
  rows.Add(CreateCollection);
  rows.AddScan(GetCollection);
  rows.AddScan(ListCollections);
  rows.Add(GetLedgerHead);
  rows.Add(DeleteCollection);
  rows.AddScan(OpenVerify);
  return rows.Take();
}

}  // namespace strata::rpc::collection_service
