#include "tests/serial/client.h"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "clients/cpp/refusal.h"

namespace strata::serial {
namespace {

constexpr int kStrategies = v1::Strategy_MAX - v1::Strategy_MIN;
constexpr char kNumber[] = "n";

struct Context : grpc::ClientContext {
  Context() { set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60)); }
};

v1::Strategy StrategyAt(size_t index) {
  return static_cast<v1::Strategy>(v1::Strategy_MIN + 1 + static_cast<int>(index) % kStrategies);
}

// What a client meets who writes what others write, too.
constexpr std::array kRaces = {"VERSION_CONFLICT",     "DOCUMENT_DELETED",   "DOCUMENT_NOT_FOUND",
                               "RETRIES_EXHAUSTED",    "FILTER_NOT_MATCHED", "OVERLOADED",
                               "TRANSACTION_CANCELLED"};

}  // namespace

std::string DocumentAt(size_t index) {
  return v1::Strategy_Name(StrategyAt(index)) + "/" + std::to_string(index / kStrategies);
}

bool IsSlow(size_t index) { return StrategyAt(index) == v1::STRATEGY_EMBEDDED_HISTORY; }

std::string CollectionOf(const std::string& document) {
  return document.substr(0, document.find('/'));
}

std::string IdOf(const std::string& document) { return document.substr(document.find('/') + 1); }

Ending EndingOf(const grpc::Status& status) {
  if (status.ok()) return Ending::kDone;
  const client::Refusal refusal = client::RefusalOf(status);
  if (std::find(kRaces.begin(), kRaces.end(), refusal.reason) != kRaces.end()) {
    return Ending::kRefused;
  }
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::UNKNOWN:
      return Ending::kUnknown;
    default:
      return Ending::kWrong;
  }
}

std::string WordsOf(const grpc::Status& status) { return client::RefusalOf(status).ToString(); }

v1::Content ContentOf(int64_t number) {
  v1::Content content;
  (*content.mutable_json()->mutable_fields())[kNumber].set_number_value(
      static_cast<double>(number));
  return content;
}

std::optional<int64_t> NumberOf(const v1::Document& document) {
  if (!document.has_content()) return std::nullopt;
  const auto& fields = document.content().json().fields();
  const auto number = fields.find(kNumber);
  if (number == fields.end()) return std::nullopt;
  return std::llround(number->second.number_value());
}

v1::Write WriteOf(const Effect& effect) {
  v1::Write write;
  const std::string collection = CollectionOf(effect.document);
  const std::string id = IdOf(effect.document);
  if (effect.action == Action::kDelete) {
    v1::DeleteRequest& deletion = *write.mutable_delete_();
    deletion.set_collection(collection);
    deletion.set_id(id);
    if (effect.precondition) deletion.mutable_precondition()->set_version(*effect.precondition);
    return write;
  }
  v1::UpdateRequest& update = *write.mutable_update();
  update.set_collection(collection);
  update.set_id(id);
  update.set_allow_missing(true);
  if (effect.precondition) update.mutable_precondition()->set_version(*effect.precondition);
  if (effect.action == Action::kSet) {
    *update.mutable_replace() = ContentOf(effect.number);
  } else {
    v1::Operation& operation = *update.mutable_patch()->add_operations();
    operation.set_path(std::string("/") + kNumber);
    operation.mutable_increment()->set_number_value(static_cast<double>(effect.number));
  }
  return write;
}

Client::Client(const std::shared_ptr<grpc::Channel>& channel)
    : collections_(v1::CollectionService::NewStub(channel)),
      documents_(v1::DocumentService::NewStub(channel)),
      transactions_(v1::TransactionService::NewStub(channel)) {}

grpc::Status Client::CreateCollections() {
  for (size_t i = 0; i < kStrategies; ++i) {
    v1::CreateCollectionRequest request;
    request.set_name(CollectionOf(DocumentAt(i)));
    request.set_strategy(StrategyAt(i));
    v1::CreateCollectionResponse response;
    Context context;
    grpc::Status status = collections_->CreateCollection(&context, request, &response);
    if (!status.ok()) return status;
  }
  return grpc::Status::OK;
}

grpc::Status Client::Commit(const v1::CommitRequest& request, v1::CommitResponse& response) {
  Context context;
  return transactions_->Commit(&context, request, &response);
}

grpc::Status Client::Read(const std::vector<std::string>& documents, v1::ReadResponse& response) {
  v1::ReadRequest request;
  for (const std::string& document : documents) {
    v1::DocumentName& name = *request.add_documents();
    name.set_collection(CollectionOf(document));
    name.set_id(IdOf(document));
  }
  Context context;
  return transactions_->Read(&context, request, &response);
}

grpc::Status Client::Update(const v1::UpdateRequest& request, v1::UpdateResponse& response) {
  Context context;
  return documents_->Update(&context, request, &response);
}

grpc::Status Client::Get(const v1::GetRequest& request, v1::GetResponse& response) {
  Context context;
  return documents_->Get(&context, request, &response);
}

grpc::Status Client::GetTransaction(const std::string& id, v1::Transaction& transaction) {
  v1::GetTransactionRequest request;
  request.set_id(id);
  v1::GetTransactionResponse response;
  Context context;
  const grpc::Status status = transactions_->GetTransaction(&context, request, &response);
  transaction = response.transaction();
  return status;
}

grpc::Status Client::ListTransactions(v1::TransactionStatus wanted,
                                      std::vector<v1::Transaction>& all) {
  v1::ListTransactionsRequest request;
  request.set_status(wanted);
  request.set_page_size(1000);
  do {
    v1::ListTransactionsResponse response;
    Context context;
    const grpc::Status status = transactions_->ListTransactions(&context, request, &response);
    if (!status.ok()) return status;
    all.insert(all.end(), response.transactions().begin(), response.transactions().end());
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  return grpc::Status::OK;
}

grpc::Status Client::Audit(std::vector<LedgerEntry>& entries, const std::string& transaction_id) {
  v1::AuditRequest request;
  request.set_transaction_id(transaction_id);
  request.set_page_size(1000);
  do {
    v1::AuditResponse response;
    Context context;
    const grpc::Status status = documents_->Audit(&context, request, &response);
    if (!status.ok()) return status;
    for (const v1::AuditEntry& entry : response.entries()) {
      const v1::Version& version = entry.version();
      entries.push_back(
          {entry.commit_position(), entry.index(), entry.collection() + "/" + entry.id(),
           version.version(),
           version.transaction_id().empty() ? version.request_id() : version.transaction_id()});
    }
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  return grpc::Status::OK;
}

grpc::Status Client::Verify(std::vector<std::string>& findings) {
  for (size_t i = 0; i < kStrategies; ++i) {
    v1::VerifyRequest request;
    request.set_collection(CollectionOf(DocumentAt(i)));
    Context context;
    const auto stream = collections_->Verify(&context, request);
    for (v1::VerifyResponse response; stream->Read(&response);) {
      for (const v1::Finding& finding : response.findings()) {
        findings.push_back(request.collection() + ": " + finding.ShortDebugString());
      }
    }
    grpc::Status status = stream->Finish();
    if (!status.ok()) return status;
  }
  return grpc::Status::OK;
}

}  // namespace strata::serial
