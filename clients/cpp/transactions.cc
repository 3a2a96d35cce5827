// The calls of TransactionService.
#include "strata/client/transactions.h"

#include <utility>

#include "clients/cpp/requests.h"
#include "clients/cpp/write_parts.h"
#include "strata/v1/transaction_service.grpc.pb.h"

namespace strata::client {
namespace {

using TransactionStub = v1::TransactionService::Stub;

// What belongs to the whole of a transaction is refused in a part, which would drop it.
template <typename Request>
absl::Status CheckPart(const Request& part) {
  std::string name;
  if (!part.request_id().empty()) name = "request_id";
  if (part.validate_only()) name = "validate_only";
  if constexpr (requires { part.max_attempts(); }) {
    if (part.max_attempts() != 0) name = "max_attempts";
  }
  if constexpr (requires { part.omit_content(); }) {
    if (part.omit_content()) name = "omit_content";
  }
  if (name.empty()) return absl::OkStatus();
  return RefusedField(name, "belongs to the whole transaction: give it to Commit");
}

}  // namespace

class Transaction::Body {
 public:
  explicit Body(std::shared_ptr<Core> shared) : core(std::move(shared)) {}

  // A part that names its document itself.
  template <typename Request, typename Options>
  void Name(const std::string& collection, const std::string& id, const Options& options,
            Request& part) {
    status.Update(WriteMessage(options, part));
    status.Update(CheckPart(part));
    part.set_collection(collection);
    part.set_id(id);
  }

  template <typename Request>
  void Message(const std::string& student_id, const std::string& class_name,
               int64_t sequence_number, const EnrollOptions& options, Request& part) {
    status.Update(WriteMessage(options, part));
    part.set_student_id(student_id);
    part.set_class_name(class_name);
    part.set_sequence_number(sequence_number);
  }

  const std::shared_ptr<Core> core;
  v1::CommitRequest request;
  absl::Status status;
  const std::string request_id = UuidText(NewUuid());
};

Transaction::Transaction(std::shared_ptr<Core> core)
    : body_(std::make_unique<Body>(std::move(core))) {}
Transaction::Transaction(Transaction&&) noexcept = default;
Transaction& Transaction::operator=(Transaction&&) noexcept = default;
Transaction::~Transaction() = default;

Transaction& Transaction::Create(const std::string& collection, const std::string& id,
                                 const Value& content, const CreateOptions& options) {
  v1::CreateRequest& part = *body_->request.add_writes()->mutable_create();
  body_->Name(collection, id, options, part);
  body_->status.Update(FillCreate(collection, id, content, part));
  return *this;
}

Transaction& Transaction::Update(const std::string& collection, const std::string& id,
                                 const Change& change, const UpdateOptions& options) {
  v1::UpdateRequest& part = *body_->request.add_writes()->mutable_update();
  body_->Name(collection, id, options, part);
  body_->status.Update(FillUpdate(collection, id, change, part));
  return *this;
}

Transaction& Transaction::Delete(const std::string& collection, const std::string& id,
                                 const DeleteOptions& options) {
  body_->Name(collection, id, options, *body_->request.add_writes()->mutable_delete_());
  return *this;
}

Transaction& Transaction::Restore(const std::string& collection, const std::string& id,
                                  int64_t version, const RestoreOptions& options) {
  v1::RestoreRequest& part = *body_->request.add_writes()->mutable_restore();
  body_->Name(collection, id, options, part);
  part.set_version(version);
  return *this;
}

Transaction& Transaction::Enroll(const std::string& student_id, const std::string& class_name,
                                 int64_t sequence_number, const EnrollOptions& options) {
  body_->Message(student_id, class_name, sequence_number, options,
                 *body_->request.add_writes()->mutable_enroll());
  return *this;
}

Transaction& Transaction::Unenroll(const std::string& student_id, const std::string& class_name,
                                   int64_t sequence_number, const EnrollOptions& options) {
  body_->Message(student_id, class_name, sequence_number, options,
                 *body_->request.add_writes()->mutable_unenroll());
  return *this;
}

Transaction& Transaction::Check(const std::string& collection, const std::string& id,
                                int64_t version) {
  v1::DocumentVersion& read = *body_->request.add_reads();
  read.set_collection(collection);
  read.set_id(id);
  read.set_version(version);
  return *this;
}

Transaction& Transaction::Acknowledge(const std::string& token) {
  body_->request.add_acknowledge(token);
  return *this;
}

Transaction& Transaction::Push(const std::string& queue, const PushedMessage& message) {
  v1::QueuePush& push = *body_->request.add_pushes();
  push.set_queue(queue);
  body_->status.Update(WriteMessage(message, *push.mutable_message()));
  return *this;
}

absl::StatusOr<Committed> Transaction::Commit(const CommitOptions& options) {
  v1::CommitRequest request = body_->request;
  absl::Status status = body_->status;
  status.Update(FillRequest(*body_->core, options, request));
  if (options.request_id.empty()) request.set_request_id(body_->request_id);
  v1::CommitResponse response;
  if (status.ok()) status = body_->core->Call(&TransactionStub::Commit, request, &response);
  if (!status.ok()) return status;
  return ReadMessage<Committed>(response);
}

absl::StatusOr<ReadAnswer> Transactions::Read(const std::vector<DocumentName>& documents) const {
  v1::ReadRequest request;
  request.set_encoding(v1::ENCODING_BSON);
  for (const DocumentName& document : documents) {
    absl::Status status = WriteMessage(document, *request.add_documents());
    if (!status.ok()) return status;
  }
  v1::ReadResponse response;
  absl::Status status = core_->Call(&TransactionStub::Read, request, &response);
  if (!status.ok()) return status;
  return ReadMessage<ReadAnswer>(response);
}

absl::StatusOr<TransactionInfo> Transactions::Get(const std::string& id) const {
  v1::GetTransactionRequest request;
  request.set_id(id);
  v1::GetTransactionResponse response;
  absl::Status status = core_->Call(&TransactionStub::GetTransaction, request, &response);
  if (!status.ok()) return status;
  return ReadMessage<TransactionInfo>(response.transaction());
}

Range<TransactionInfo> Transactions::List(const ListTransactionsOptions& options) const {
  v1::ListTransactionsRequest request;
  absl::Status filled = FillRequest(*core_, options, request);
  return Pages<TransactionInfo>(
      core_, &TransactionStub::ListTransactions, std::move(request), std::move(filled),
      [](const auto& response) -> auto& { return response.transactions(); });
}

absl::StatusOr<TransactionInfo> Transactions::Cancel(const std::string& id,
                                                     const CancelOptions& options) const {
  v1::CancelTransactionRequest request;
  absl::Status status = FillRequest(*core_, options, request);
  request.set_id(id);
  v1::CancelTransactionResponse response;
  if (status.ok()) status = core_->Call(&TransactionStub::CancelTransaction, request, &response);
  if (!status.ok()) return status;
  return ReadMessage<TransactionInfo>(response.transaction());
}

absl::StatusOr<TransactionInfo> Transactions::Resume(const std::string& id) const {
  v1::ResumeTransactionRequest request;
  request.set_id(id);
  v1::ResumeTransactionResponse response;
  absl::Status status = core_->Call(&TransactionStub::ResumeTransaction, request, &response);
  if (!status.ok()) return status;
  return ReadMessage<TransactionInfo>(response.transaction());
}

}  // namespace strata::client
