// TransactionService of a few lines: it answers what a test told it to.
#pragma once

#include <string>
#include <vector>

#include "strata/v1/transaction_service.grpc.pb.h"

namespace strata::cli {

// What is set and recorded is for use while no call is under way.
class FakeTransactions : public v1::TransactionService::Service {
 public:
  // The requests received last.
  v1::CommitRequest last_commit;
  v1::ListTransactionsRequest last_list;
  v1::GetTransactionRequest last_get;
  v1::CancelTransactionRequest last_cancel;
  v1::ResumeTransactionRequest last_resume;

  v1::CommitResponse committed;  // what Commit answers
  // What ListTransactions answers, one a page; the others answer the first.
  std::vector<v1::Transaction> transactions;
  grpc::Status end;  // of all calls

  using Context = grpc::ServerContext;
  grpc::Status Commit(Context*, const v1::CommitRequest* request,
                      v1::CommitResponse* response) override {
    last_commit = *request;
    *response = committed;
    return end;
  }
  grpc::Status ListTransactions(Context*, const v1::ListTransactionsRequest* request,
                                v1::ListTransactionsResponse* response) override {
    last_list = *request;
    const size_t at = request->page_token().empty() ? 0 : std::stoul(request->page_token());
    if (at < transactions.size()) *response->add_transactions() = transactions[at];
    if (at + 1 < transactions.size()) response->set_next_page_token(std::to_string(at + 1));
    return end;
  }
  grpc::Status GetTransaction(Context*, const v1::GetTransactionRequest* request,
                              v1::GetTransactionResponse* response) override {
    last_get = *request;
    *response->mutable_transaction() = transactions.at(0);
    return end;
  }
  grpc::Status CancelTransaction(Context*, const v1::CancelTransactionRequest* request,
                                 v1::CancelTransactionResponse* response) override {
    last_cancel = *request;
    *response->mutable_transaction() = transactions.at(0);
    return end;
  }
  grpc::Status ResumeTransaction(Context*, const v1::ResumeTransactionRequest* request,
                                 v1::ResumeTransactionResponse* response) override {
    last_resume = *request;
    *response->mutable_transaction() = transactions.at(0);
    return end;
  }
};

}  // namespace strata::cli
