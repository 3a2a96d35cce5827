#include <string_view>

#include "schemas/base/status_macros.h"
#include "service/rpc/handlers/transaction/answer.h"

namespace strata::rpc::transaction_service {
namespace {

// Who cancels and why: allowed on the collection of each participant, and the same for all of them.
absl::StatusOr<versioning::ChangeInfo> ToChange(const Context& context,
                                                const wire::ChangeInfo& change,
                                                const transaction::Transaction& transaction) {
  const auto on = [&](std::string_view collection) {
    return ToChangeInfo(change, collection, context.services.access, context.call.info());
  };
  const auto& participants = transaction.record.participants;
  if (participants.empty()) return on(security::kEvery);
  absl::StatusOr<versioning::ChangeInfo> made;
  for (const versioning::Participant& participant : participants) {
    made = on(participant.name.collection);
    if (!made.ok()) break;
  }
  return made;
}

}  // namespace

absl::Status CancelTransaction(const Context& context,
                               const wire::CancelTransactionRequest& request,
                               Reply<wire::CancelTransactionResponse> reply) {
  ASSIGN_OR_RETURN(const transaction::Transaction found,
                   FindPermitted(context, security::Permission::kWrite, request.id()));
  ASSIGN_OR_RETURN(versioning::ChangeInfo change, ToChange(context, request.change(), found));
  context.services.transactions.Cancel(found.id, std::move(change), context.call.deadline(),
                                       AnswerTransaction(std::move(reply)));
  return absl::OkStatus();
}

}  // namespace strata::rpc::transaction_service
