#include <string>
#include <vector>

#include "schemas/base/status_macros.h"
#include "service/rpc/batched_cursor.h"
#include "service/rpc/handlers/feed/subscription_messages.h"
#include "service/rpc/page.h"
#include "service/rpc/page_token.h"

namespace strata::rpc::feed_service {
namespace {

constexpr std::string_view kListSubscriptionsMethod = "ListSubscriptions";

}  // namespace

absl::Status ListSubscriptions(const Context& context,
                               const wire::ListSubscriptionsRequest& request,
                               wire::ListSubscriptionsResponse& response) {
  ASSIGN_OR_RETURN(const int page_size, ToPageSize(request.page_size()));
  std::string after_name;  // nothing that may not be read: the answer's token tells it
  if (!request.page_token().empty()) {
    ASSIGN_OR_RETURN(after_name, ReadPageToken(kListSubscriptionsMethod, PageScope(request),
                                               request.page_token()));
  }
  BatchedCursor<feed::Subscription> subscriptions([&](const feed::Subscription* last, size_t most) {
    return context.services.subscriptions.List(request.prefix(),
                                               last == nullptr ? after_name : last->name, most,
                                               OnceClosed(context.call));
  });
  const auto may_read = [&] {
    return context.services.access.Permits(
        *context.call.info().identity, security::Permission::kRead,
        {security::ResourceKind::kSubscription, subscriptions.item().name});
  };
  const auto fill = [&](wire::Subscription& filled) {
    FillSubscription(subscriptions.item(), filled);
  };
  RETURN_IF_ERROR(FillPage(subscriptions, context.call, page_size,
                           *response.mutable_subscriptions(), fill, may_read));
  if (!subscriptions.done()) {
    const int listed = response.subscriptions_size();
    if (listed > 0) after_name = response.subscriptions(listed - 1).name();
    response.set_next_page_token(
        MakePageToken(kListSubscriptionsMethod, PageScope(request), after_name));
  }
  return absl::OkStatus();
}

}  // namespace strata::rpc::feed_service
