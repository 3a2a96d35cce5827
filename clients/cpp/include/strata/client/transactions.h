// Transactions: changes of several documents that take effect together or not at all.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "strata/client/documents.h"
#include "strata/client/enrollments.h"
#include "strata/client/queues.h"
#include "strata/client/range.h"

namespace strata::client {

enum class TransactionMode { kUnspecified = 0, kOneCommit = 1, kTwoPhase = 2 };

enum class TransactionStatus {
  kUnspecified = 0,  // in a filter: all
  kNew = 1,
  kPending = 2,
  kApplied = 3,
  kDone = 4,
  kCancelling = 5,
  kCancelled = 6,
};

struct CommitOptions {
  TransactionMode mode = TransactionMode::kUnspecified;
  std::string actor = {};
  std::string on_behalf_of = {};
  std::string reason = {};
  std::map<std::string, std::string> labels = {};
  std::string request_id = {};
  int32_t max_attempts = 0;
  bool validate_only = false;
  bool omit_content = false;
  std::optional<LeaseToken> lease = {};
};

// The result of one write.
struct CommitResult {
  Document document = {};
  bool changed = false;
  bool stale = false;
  EnrollmentResult enrollment = EnrollmentResult::kUnspecified;
};

struct Committed {
  std::string transaction_id = {};
  std::vector<CommitResult> results = {};  // in the order of the writes
  int64_t commit_position = 0;
  int32_t attempts = 0;
  bool replayed = false;
  std::vector<std::string> message_ids = {};  // in the order of the pushes
};

// Put together, then committed:
//
//   auto committed = client.transaction()
//                        .Update("accounts", "a", Patch({Increment("/balance", -5)}))
//                        .Update("accounts", "b", Patch({Increment("/balance", 5)}))
//                        .Commit({.reason = "rent"});
//
// A write's options that belong to the whole transaction (request_id, validate_only, max_attempts,
// omit_content) are refused. Commit reports that, as it reports all writes that cannot be sent. Not
// thread-safe.
class Transaction {
 public:
  explicit Transaction(std::shared_ptr<Core> core);
  Transaction(Transaction&&) noexcept;
  Transaction& operator=(Transaction&&) noexcept;
  ~Transaction();

  Transaction& Create(const std::string& collection, const std::string& id, const Value& content,
                      const CreateOptions& options = {});
  Transaction& Update(const std::string& collection, const std::string& id, const Change& change,
                      const UpdateOptions& options = {});
  Transaction& Delete(const std::string& collection, const std::string& id,
                      const DeleteOptions& options = {});
  Transaction& Restore(const std::string& collection, const std::string& id, int64_t version,
                       const RestoreOptions& options = {});
  Transaction& Enroll(const std::string& student_id, const std::string& class_name,
                      int64_t sequence_number, const EnrollOptions& options = {});
  Transaction& Unenroll(const std::string& student_id, const std::string& class_name,
                        int64_t sequence_number, const EnrollOptions& options = {});
  // The document must still be at this version when the transaction takes effect; 0: never written.
  Transaction& Check(const std::string& collection, const std::string& id, int64_t version);
  // The message is finished in the same commit.
  Transaction& Acknowledge(const std::string& token);
  Transaction& Push(const std::string& queue, const PushedMessage& message);

  // Commits all of it or none. May be called again after an error; with the same request id it then
  // takes effect once.
  absl::StatusOr<Committed> Commit(const CommitOptions& options = {});

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

struct DocumentName {
  std::string collection = {};
  std::string id = {};
};

struct DocumentVersion {
  std::string collection = {};
  std::string id = {};
  int64_t version = 0;
};

// Documents as of one moment.
struct ReadAnswer {
  std::vector<Document> documents = {};
  // As Transaction::Check takes them.
  std::vector<DocumentVersion> missing = {};
  int64_t commit_position = 0;
};

struct Participant {
  std::string collection = {};
  std::string id = {};
  int64_t base_version = 0;
  int64_t version = 0;
};

// A transaction and its status.
struct TransactionInfo {
  std::string id = {};
  TransactionStatus status = TransactionStatus::kUnspecified;
  TransactionMode mode = TransactionMode::kUnspecified;
  ChangeInfo change = {};
  absl::Time create_time = absl::InfinitePast();
  absl::Time last_modified = absl::InfinitePast();
  std::vector<Participant> participants = {};
  std::string reason = {};
};

struct ListTransactionsOptions {
  TransactionStatus status = TransactionStatus::kUnspecified;
  int32_t page_size = 0;
};

struct CancelOptions {
  std::string actor = {};
  std::string on_behalf_of = {};
  std::string reason = {};
  std::map<std::string, std::string> labels = {};
};

// Thread-safe.
class Transactions {
 public:
  explicit Transactions(std::shared_ptr<Core> core) : core_(std::move(core)) {}

  absl::StatusOr<ReadAnswer> Read(const std::vector<DocumentName>& documents) const;
  absl::StatusOr<TransactionInfo> Get(const std::string& id) const;
  Range<TransactionInfo> List(const ListTransactionsOptions& options = {}) const;
  absl::StatusOr<TransactionInfo> Cancel(const std::string& id,
                                         const CancelOptions& options = {}) const;
  absl::StatusOr<TransactionInfo> Resume(const std::string& id) const;

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace strata::client
