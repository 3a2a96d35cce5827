#include <optional>
#include <string>

#include "schemas/base/status_macros.h"
#include "service/rpc/batched_cursor.h"
#include "service/rpc/handlers/transaction/permitted.h"
#include "service/rpc/page.h"
#include "service/rpc/page_token.h"

namespace strata::rpc::transaction_service {
namespace {

constexpr std::string_view kListTransactionsMethod = "ListTransactions";

absl::StatusOr<std::optional<transaction::TransactionStatus>> ToStatus(
    wire::TransactionStatus status) {
  if (status == wire::TRANSACTION_STATUS_UNSPECIFIED) return std::nullopt;
  if (!wire::TransactionStatus_IsValid(status)) {
    return FieldError("status", "is " + std::to_string(status) +
                                    ", which no transaction has; leave it out for all of them");
  }
  return static_cast<transaction::TransactionStatus>(status);
}

}  // namespace

absl::Status ListTransactions(const Context& context, const wire::ListTransactionsRequest& request,
                              wire::ListTransactionsResponse& response) {
  ASSIGN_OR_RETURN(const int page_size, ToPageSize(request.page_size()));
  transaction::TransactionQuery query;
  ASSIGN_OR_RETURN(query.status, ToStatus(request.status()));
  query.stopped = OnceClosed(context.call);
  std::string after_id;  // nothing that may not be read: the answer's token tells it
  if (!request.page_token().empty()) {
    ASSIGN_OR_RETURN(
        after_id, ReadPageToken(kListTransactionsMethod, PageScope(request), request.page_token()));
  }
  query.after_id = after_id;
  BatchedCursor<transaction::Transaction> transactions(
      [&](const transaction::Transaction* last, size_t most) {
        if (last != nullptr) query.after_id = last->id;
        return context.services.transactions.List(query, most);
      });
  const auto may_read = [&] {
    return Permits(context, security::Permission::kRead, transactions.item());
  };
  const auto fill = [&](wire::Transaction& filled) {
    FillTransaction(transactions.item(), filled);
  };
  RETURN_IF_ERROR(FillPage(transactions, context.call, page_size, *response.mutable_transactions(),
                           fill, may_read));
  if (!transactions.done()) {
    const int listed = response.transactions_size();
    if (listed > 0) after_id = response.transactions(listed - 1).id();
    response.set_next_page_token(
        MakePageToken(kListTransactionsMethod, PageScope(request), after_id));
  }
  return absl::OkStatus();
}

}  // namespace strata::rpc::transaction_service
