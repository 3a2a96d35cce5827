#include <string>

#include "schemas/base/status_macros.h"
#include "service/rpc/batched_cursor.h"
#include "service/rpc/lease_messages.h"
#include "service/rpc/page.h"
#include "service/rpc/page_token.h"

namespace strata::rpc::lease_service {
namespace {

constexpr std::string_view kListLeasesMethod = "ListLeases";

}  // namespace

absl::Status ListLeases(const Context& context, const wire::ListLeasesRequest& request,
                        wire::ListLeasesResponse& response) {
  ASSIGN_OR_RETURN(const int page_size, ToPageSize(request.page_size()));
  std::string after_name;  // nothing that may not be read: the answer's token tells it
  if (!request.page_token().empty()) {
    ASSIGN_OR_RETURN(after_name,
                     ReadPageToken(kListLeasesMethod, PageScope(request), request.page_token()));
  }
  lease::LeaseQuery query{request.prefix(), after_name, OnceClosed(context.call)};
  BatchedCursor<lease::Lease> leases([&](const lease::Lease* last, size_t most) {
    if (last != nullptr) query.after_name = last->name;
    return context.services.leases.List(query, most);
  });
  const auto may_read = [&] {
    // They say who consumes what.
    if (leases.item().name.front() == lease::kServersOwn) {
      return request.prefix().starts_with(lease::kServersOwn) &&
             context.services.access.Permits(
                 *context.call.info().identity, security::Permission::kRead,
                 {security::ResourceKind::kSubscription, security::kEvery});
    }
    return context.services.access.Permits(*context.call.info().identity,
                                           security::Permission::kRead,
                                           {security::ResourceKind::kLease, leases.item().name});
  };
  const auto fill = [&](wire::Lease& filled) { FillLease(leases.item(), filled); };
  RETURN_IF_ERROR(
      FillPage(leases, context.call, page_size, *response.mutable_leases(), fill, may_read));
  if (!leases.done()) {
    const int listed = response.leases_size();
    if (listed > 0) after_name = response.leases(listed - 1).name();
    response.set_next_page_token(MakePageToken(kListLeasesMethod, PageScope(request), after_name));
  }
  return absl::OkStatus();
}

}  // namespace strata::rpc::lease_service
