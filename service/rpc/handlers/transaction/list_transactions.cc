#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schemas/base/status_macros.h"
#include "service/rpc/handlers/transaction/permitted.h"
#include "service/rpc/page.h"
#include "service/rpc/page_token.h"

namespace strata::rpc::transaction_service {
namespace {

constexpr std::string_view kMethod = "ListTransactions";
constexpr size_t kReadAtOnce = 100;

// The transactions of a query one after the other.
class Cursor {
 public:
  Cursor(const transaction::Transactions& transactions, transaction::TransactionQuery query)
      : transactions_(transactions), query_(std::move(query)) {}

  bool Next() {
    if (++at_ < read_.size()) return true;
    if (at_end_) return false;
    auto read = transactions_.List(query_, kReadAtOnce);
    status_ = read.status();
    read_ = read.ok() ? *std::move(read) : std::vector<transaction::Transaction>();
    at_end_ = read_.size() < kReadAtOnce;
    if (!read_.empty()) query_.after_id = read_.back().id;
    at_ = 0;
    return !read_.empty();
  }

  // Of the transaction moved to.
  const transaction::Transaction& transaction() const { return read_[at_]; }
  // Whether the walk ended because there are no more.
  bool done() const { return at_end_ && at_ >= read_.size(); }
  const absl::Status& status() const { return status_; }

 private:
  const transaction::Transactions& transactions_;
  transaction::TransactionQuery query_;
  std::vector<transaction::Transaction> read_;
  size_t at_ = 0;
  bool at_end_ = false;
  absl::Status status_;
};

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
    ASSIGN_OR_RETURN(after_id, ReadPageToken(kMethod, PageScope(request), request.page_token()));
  }
  query.after_id = after_id;
  Cursor transactions(context.services.transactions, std::move(query));
  const auto may_read = [&] {
    return Permits(context, security::Permission::kRead, transactions.transaction());
  };
  const auto fill = [&](wire::Transaction& filled) {
    FillTransaction(transactions.transaction(), filled);
  };
  RETURN_IF_ERROR(FillPage(transactions, context.call, page_size, *response.mutable_transactions(),
                           fill, may_read));
  if (!transactions.done()) {
    const int listed = response.transactions_size();
    if (listed > 0) after_id = response.transactions(listed - 1).id();
    response.set_next_page_token(MakePageToken(kMethod, PageScope(request), after_id));
  }
  return absl::OkStatus();
}

}  // namespace strata::rpc::transaction_service
