// Whose a transaction is, is known only when it has been read.
#include "service/rpc/handlers/transaction/permitted.h"

#include <algorithm>
#include <vector>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/transaction/attempt.h"
#include "schemas/transaction/transaction_errors.h"

namespace strata::rpc::transaction_service {
namespace {

absl::Status CheckId(std::string_view id) {
  const bool printable =
      std::all_of(id.begin(), id.end(), [](char byte) { return byte > 0x20 && byte < 0x7F; });
  if (!id.empty() && printable && id.size() <= kTransactionIdBytesMax) {
    return absl::OkStatus();
  }
  return FieldError("id", "must be a transaction's: 1 to " +
                              std::to_string(kTransactionIdBytesMax) +
                              " bytes of printable ASCII without spaces");
}

// Callers that have used one request id, of whose transactions the first are looked at.
constexpr size_t kOthersMax = 100;

absl::StatusOr<transaction::Transaction> FindOfOthers(const Context& context,
                                                      security::Permission permission,
                                                      const std::string& id) {
  const transaction::Transactions& transactions = context.services.transactions;
  const std::string prefix = id + "@";
  ASSIGN_OR_RETURN(const std::vector<transaction::Transaction> page,
                   transactions.List({.after_id = prefix}, kOthersMax));
  for (const transaction::Transaction& each : page) {
    if (!each.id.starts_with(prefix)) break;
    if (Permits(context, permission, each)) return transactions.Get(each.id);
  }
  return transaction::TransactionNotFound(id);
}

}  // namespace

bool Permits(const Context& context, security::Permission permission,
             const transaction::Transaction& transaction) {
  const auto permits = [&](std::string_view collection) {
    return context.services.access.Permits(*context.call.info().identity, permission,
                                           {security::ResourceKind::kCollection, collection});
  };
  const auto& participants = transaction.record.participants;
  if (participants.empty()) return permits(security::kEvery);
  return std::all_of(participants.begin(), participants.end(),
                     [&](const versioning::Participant& participant) {
                       return permits(participant.name.collection);
                     });
}

absl::StatusOr<transaction::Transaction> FindPermitted(const Context& context,
                                                       security::Permission permission,
                                                       const std::string& id) {
  RETURN_IF_ERROR(CheckId(id));
  const transaction::Transactions& transactions = context.services.transactions;
  const std::string& principal = context.call.info().identity->principal;
  for (const std::string& each : {transaction::IdOf(id, principal), id}) {
    absl::StatusOr<transaction::Transaction> found = transactions.Get(each);
    if (found.ok() && Permits(context, permission, *found)) return found;
    if (!found.ok() && ReasonOf(found.status()) != ErrorReason::kTransactionNotFound) return found;
    if (principal.empty()) break;
  }
  return FindOfOthers(context, permission, id);
}

void FillTransaction(const transaction::Transaction& transaction, wire::Transaction& filled) {
  const versioning::TransactionRecord& record = transaction.record;
  filled.set_id(transaction.id);
  filled.set_status(static_cast<wire::TransactionStatus>(record.status));
  filled.set_mode(static_cast<wire::TransactionMode>(record.mode));
  if (record.change != versioning::ChangeInfo()) {
    FillChangeInfo(record.change, *filled.mutable_change());
  }
  FillTimestamp(record.create_time, *filled.mutable_create_time());
  FillTimestamp(record.last_modified, *filled.mutable_last_modified());
  for (const versioning::Participant& participant : record.participants) {
    wire::Participant& added = *filled.add_participants();
    added.set_collection(participant.name.collection);
    added.set_id(participant.name.id);
    added.set_base_version(participant.base);
    added.set_version(participant.version);
  }
  filled.set_reason(record.cause);
}

}  // namespace strata::rpc::transaction_service
