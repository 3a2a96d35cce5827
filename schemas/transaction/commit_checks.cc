#include "schemas/transaction/commit_checks.h"

#include <set>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/field_checks.h"
#include "schemas/base/status_macros.h"
#include "schemas/document/hash.h"
#include "schemas/transaction/attempt.h"
#include "schemas/transaction/evaluation.h"
#include "schemas/versioning/fingerprint.h"

namespace strata::transaction {
namespace {

absl::Status CheckCounts(const CommitRequest& request, TransactionMode mode) {
  if (request.writes.empty() && request.joined.empty()) {
    return Error(ErrorReason::kInvalidField, "writes is empty, at least 1 is required")
        .With("field", "writes")
        .With("limit", int64_t{1});
  }
  RETURN_IF_ERROR(CheckCount("writes", request.writes.size(), kWritesMax));
  RETURN_IF_ERROR(CheckCount("reads", request.reads.size(), kReadsMax));
  const size_t documents = request.writes.size() + request.reads.size();
  if (mode == TransactionMode::kTwoPhase && documents > kTwoPhaseDocumentsMax) {
    return Error(ErrorReason::kInvalidField, "writes and reads name " + std::to_string(documents) +
                                                 " documents, and in two phases at most " +
                                                 std::to_string(kTwoPhaseDocumentsMax) +
                                                 " are allowed")
        .With("field", request.writes.size() > kTwoPhaseDocumentsMax ? "writes" : "reads")
        .With("limit", static_cast<int64_t>(kTwoPhaseDocumentsMax));
  }
  return absl::OkStatus();
}

// "ID/2" is what the server calls the second try of "ID".
absl::Status CheckId(std::string_view id) {
  RETURN_IF_ERROR(ValidateRequestId(id));
  if (!EndsInNumber(id)) return absl::OkStatus();
  return FieldError("request_id",
                    "ends in \"/\" and a number, the form of the server's own ids for transactions "
                    "that it tries again");
}

absl::Status Twice(const DocumentName& name) {
  return Error(ErrorReason::kInvalidField,
               "names a document a second time; use one write, with a precondition in place of a "
               "read")
      .With("collection", name.collection)
      .With("id", name.id);
}

absl::Status CheckRead(const versioning::ReadCheck& read) {
  RETURN_IF_ERROR(ValidateName(read.name));
  return CheckLeast("version", read.version, 0);
}

}  // namespace

absl::Status CheckCommit(const CommitRequest& request, TransactionMode mode) {
  RETURN_IF_ERROR(CheckCounts(request, mode));
  if (mode == TransactionMode::kTwoPhase && !request.joined.empty()) {
    return Error(ErrorReason::kUnsupportedByEngine,
                 "a condition on the commit, such as a lease, needs a transaction in one "
                 "commit; this one is in two phases")
        .With("capability", "atomic_batches");
  }
  RETURN_IF_ERROR(CheckId(request.request_id));
  RETURN_IF_ERROR(versioning::ValidateChange(request.change));
  std::set<std::pair<std::string_view, std::string_view>> named;
  for (size_t i = 0; i < request.writes.size(); ++i) {
    const DocumentName& name = request.writes[i].name;
    absl::Status valid = Validate(request.writes[i]);
    if (valid.ok() && !named.emplace(name.collection, name.id).second) valid = Twice(name);
    if (!valid.ok()) return InElement(valid, "writes", i);
  }
  for (size_t i = 0; i < request.reads.size(); ++i) {
    const DocumentName& name = request.reads[i].name;
    absl::Status valid = CheckRead(request.reads[i]);
    if (valid.ok() && !named.emplace(name.collection, name.id).second) valid = Twice(name);
    if (!valid.ok()) return InElement(valid, "reads", i);
  }
  return absl::OkStatus();
}

std::string FingerprintOf(const CommitRequest& request) {
  document::PartHasher hasher;
  hasher.Add("transaction").Add(request.mode ? static_cast<int64_t>(*request.mode) : int64_t{0});
  hasher.Add(static_cast<int64_t>(request.writes.size()));
  for (const Operation& operation : request.writes) hasher.Add(Encode(operation));
  hasher.Add(static_cast<int64_t>(request.reads.size()));
  for (const versioning::ReadCheck& read : request.reads) {
    hasher.Add(read.name.collection).Add(read.name.id).Add(read.version);
  }
  const versioning::ChangeInfo& change = request.change;
  hasher.Add(change.actor).Add(change.on_behalf_of).Add(change.reason);
  for (const auto& [name, value] : change.labels) hasher.Add(name).Add(value);
  // Nothing where nothing is joined: what is stored has been hashed so.
  if (!request.joined_fingerprint.empty()) hasher.Add(request.joined_fingerprint);
  return std::string(document::HashBytes(hasher.Finish()).substr(0, versioning::kFingerprintSize));
}

}  // namespace strata::transaction
