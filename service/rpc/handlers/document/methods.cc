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
  rows.Write("Create", Permission::kWrite, Create);
  rows.Read("Get", Permission::kRead, Get);
  rows.Scan("BatchGet", Permission::kRead, BatchGet);
  rows.Write("Update", Permission::kWrite, Update);
  rows.Write("Delete", Permission::kWrite, Delete);
  rows.Write("Restore", Permission::kWrite, Restore);
  rows.Scan("History", Permission::kRead, History);
  rows.Scan("Diff", Permission::kRead, Diff);
  rows.Scan("Audit", Permission::kAudit, Audit);
  rows.Scan("List", Permission::kRead, List);
  return rows.Take();
}

}  // namespace strata::rpc::document_service
