// The methods of strata.v1.DocumentService. The handler of each lies in the file of its name.
#include "service/rpc/convert.h"
#include "service/rpc/rows.h"

namespace strata::rpc::document_service {

AnswersLater<wire::CreateRequest, wire::CreateResponse> Create;
AnswersLater<wire::GetRequest, wire::GetResponse> Get;
Answers<wire::BatchGetRequest, wire::BatchGetResponse> BatchGet;
AnswersLater<wire::UpdateRequest, wire::UpdateResponse> Update;
AnswersLater<wire::DeleteRequest, wire::DeleteResponse> Delete;
AnswersLater<wire::RestoreRequest, wire::RestoreResponse> Restore;
Answers<wire::HistoryRequest, wire::HistoryResponse> History;
Answers<wire::DiffRequest, wire::DiffResponse> Diff;
Answers<wire::AuditRequest, wire::AuditResponse> Audit;
Answers<wire::ListRequest, wire::ListResponse> List;

std::vector<server::Method> Methods(Rows rows) {
  rows.Add(Create);
  rows.Add(Get);
  rows.AddScan(BatchGet);
  rows.Add(Update);
  rows.Add(Delete);
  rows.Add(Restore);
  rows.AddScan(History);
  rows.AddScan(Diff);
  rows.AddScan(Audit);
  rows.AddScan(List);
  return rows.Take();
}

}  // namespace strata::rpc::document_service
