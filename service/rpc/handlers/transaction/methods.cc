// The methods of strata.v1.TransactionService. The handler of each lies in the file of its name.
#include "service/rpc/convert.h"
#include "service/rpc/rows.h"

namespace strata::rpc::transaction_service {

AnswersLater<wire::CommitRequest, wire::CommitResponse> Commit;
AnswersLater<wire::ReadRequest, wire::ReadResponse> Read;
Answers<wire::GetTransactionRequest, wire::GetTransactionResponse> GetTransaction;
Answers<wire::ListTransactionsRequest, wire::ListTransactionsResponse> ListTransactions;
AnswersLater<wire::CancelTransactionRequest, wire::CancelTransactionResponse> CancelTransaction;
AnswersLater<wire::ResumeTransactionRequest, wire::ResumeTransactionResponse> ResumeTransaction;

// What those about one transaction ask for, on the collections of all its documents, is known when
// it has been read: their handlers ask then, by FindPermitted.
std::vector<server::Method> Methods(Rows rows) {
  rows.Add(Commit);
  rows.AddLarge(Read);
  rows.Add(GetTransaction);
  rows.AddScan(ListTransactions);
  rows.Add(CancelTransaction);
  rows.Add(ResumeTransaction);
  return rows.Take();
}

}  // namespace strata::rpc::transaction_service
