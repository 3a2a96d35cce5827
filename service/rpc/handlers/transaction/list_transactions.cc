#include <optional>
#include <string>
#include <utility>

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

bool IsFinished(transaction::TransactionStatus status) {
  return status == transaction::TransactionStatus::kDone ||
         status == transaction::TransactionStatus::kCancelled;
}

// Transactions that the caller may see and that are not what it asks for, in one page.
constexpr int kPassedMax = 10'000;

// All transactions in the order of their ids, or those of one status that are not finished.
class Walk {
 public:
  using Transaction = transaction::Transaction;

  Walk(const transaction::Transactions& transactions, transaction::TransactionQuery query)
      : query_(std::move(query)),
        cursor_([this, &transactions](const Transaction* last, size_t most) {
          if (last != nullptr) query_.after_id = last->id;
          return transactions.List(query_, most);
        }) {}

  bool Next() { return !passed_enough() && cursor_.Next(); }
  // The one moved to is none that is asked for; its id may be told.
  void Pass() { ++passed_; }

  const Transaction& item() const { return cursor_.item(); }
  bool passed_enough() const { return passed_ >= kPassedMax; }
  bool done() const { return cursor_.done(); }
  const absl::Status& status() const { return cursor_.status(); }

 private:
  transaction::TransactionQuery query_;
  BatchedCursor<Transaction> cursor_;
  int passed_ = 0;
};

}  // namespace

absl::Status ListTransactions(const Context& context, const wire::ListTransactionsRequest& request,
                              wire::ListTransactionsResponse& response) {
  ASSIGN_OR_RETURN(const int page_size, ToPageSize(request.page_size()));
  transaction::TransactionQuery query;
  ASSIGN_OR_RETURN(const std::optional<transaction::TransactionStatus> status,
                   ToStatus(request.status()));
  if (status && !IsFinished(*status)) query.unfinished = status;
  query.stopped = OnceClosed(context.call);
  std::string after_id;  // nothing that may not be read: the answer's token tells it
  if (!request.page_token().empty()) {
    ASSIGN_OR_RETURN(
        after_id, ReadPageToken(kListTransactionsMethod, PageScope(request), request.page_token()));
  }
  query.after_id = after_id;
  Walk transactions(context.services.transactions, std::move(query));
  const auto wanted = [&] {
    const transaction::Transaction& found = transactions.item();
    if (!Permits(context, security::Permission::kRead, found)) return false;
    if (!status || found.record.status == *status) return true;
    transactions.Pass();
    return false;
  };
  const auto fill = [&](wire::Transaction& filled) {
    FillTransaction(transactions.item(), filled);
  };
  RETURN_IF_ERROR(FillPage(transactions, context.call, page_size, *response.mutable_transactions(),
                           fill, wanted));
  if (!transactions.done()) {
    const int listed = response.transactions_size();
    if (transactions.passed_enough()) {
      after_id = transactions.item().id;
    } else if (listed > 0) {
      after_id = response.transactions(listed - 1).id();
    }
    response.set_next_page_token(
        MakePageToken(kListTransactionsMethod, PageScope(request), after_id));
  }
  return absl::OkStatus();
}

}  // namespace strata::rpc::transaction_service
