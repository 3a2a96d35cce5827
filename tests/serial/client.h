// A client of the real server whose documents hold one whole number each, {"n": 7}.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strata/v1/collection_service.grpc.pb.h"
#include "strata/v1/document_service.grpc.pb.h"
#include "strata/v1/transaction_service.grpc.pb.h"
#include "tests/fault/server_process.h"
#include "tests/serial/history.h"

namespace strata::serial {

// "COLLECTION/ID" of a document among many: they go round over collections of all strategies, which
// are named after them.
std::string DocumentAt(size_t index);
// Whether each update of it costs as much as it has versions, so that it is to have fewer.
bool IsSlow(size_t index);

std::string CollectionOf(const std::string& document);
std::string IdOf(const std::string& document);

// How a call ended.
enum class Ending {
  kDone,
  kRefused,  // and nothing was written, as it has to be now and then
  kUnknown,  // nobody answered
  kWrong,    // refused for no good reason
};
Ending EndingOf(const grpc::Status& status);
// The reason, else the code, and the message.
std::string WordsOf(const grpc::Status& status);

// What an effect asks for.
v1::Write WriteOf(const Effect& effect);
v1::Content ContentOf(int64_t number);
// The number of a document; none: it has no content here.
std::optional<int64_t> NumberOf(const v1::Document& document);

// Thread-safe.
class Client {
 public:
  explicit Client(const std::shared_ptr<grpc::Channel>& channel);

  grpc::Status CreateCollections();
  grpc::Status Commit(const v1::CommitRequest& request, v1::CommitResponse& response);
  grpc::Status Read(const std::vector<std::string>& documents, v1::ReadResponse& response);
  grpc::Status Update(const v1::UpdateRequest& request, v1::UpdateResponse& response);
  grpc::Status Get(const v1::GetRequest& request, v1::GetResponse& response);
  grpc::Status GetTransaction(const std::string& id, v1::Transaction& transaction);
  // All of that status.
  grpc::Status ListTransactions(v1::TransactionStatus status, std::vector<v1::Transaction>& all);
  // All that the ledger has, of one transaction if one is named.
  grpc::Status Audit(std::vector<LedgerEntry>& entries, const std::string& transaction_id = "");
  // What is wrong with any collection.
  grpc::Status Verify(std::vector<std::string>& findings);

 private:
  const std::unique_ptr<v1::CollectionService::Stub> collections_;
  const std::unique_ptr<v1::DocumentService::Stub> documents_;
  const std::unique_ptr<v1::TransactionService::Stub> transactions_;
};

}  // namespace strata::serial
