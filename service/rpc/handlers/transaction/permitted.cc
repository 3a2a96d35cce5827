// Whose a transaction is, is known only when it has been read.
#include "service/rpc/handlers/transaction/permitted.h"

#include <algorithm>

#include "schemas/base/status_macros.h"
#include "schemas/transaction/transaction_errors.h"

namespace strata::rpc::transaction_service {
namespace {

// A request id, and what is put behind it when a transaction begins again.
constexpr size_t kIdBytesMax = versioning::kRequestIdBytesMax + 16;

absl::Status CheckId(std::string_view id) {
  const bool printable =
      std::all_of(id.begin(), id.end(), [](char byte) { return byte > 0x20 && byte < 0x7F; });
  if (!id.empty() && printable && id.size() <= kIdBytesMax) return absl::OkStatus();
  return FieldError("id", "must be a transaction's: 1 to " + std::to_string(kIdBytesMax) +
                              " bytes of printable ASCII without spaces");
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
  ASSIGN_OR_RETURN(transaction::Transaction found, context.services.transactions.Get(id));
  if (!Permits(context, permission, found)) return transaction::TransactionNotFound(id);
  return found;
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
