#include <string>

#include "schemas/base/status_macros.h"
#include "service/rpc/batched_cursor.h"
#include "service/rpc/page.h"
#include "service/rpc/page_token.h"
#include "service/rpc/queue_messages.h"

namespace strata::rpc::queue_service {
namespace {

constexpr std::string_view kListQueuesMethod = "ListQueues";

}  // namespace

absl::Status ListQueues(const Context& context, const wire::ListQueuesRequest& request,
                        wire::ListQueuesResponse& response) {
  ASSIGN_OR_RETURN(const int page_size, ToPageSize(request.page_size()));
  std::string after_name;  // nothing that may not be read: the answer's token tells it
  if (!request.page_token().empty()) {
    ASSIGN_OR_RETURN(after_name,
                     ReadPageToken(kListQueuesMethod, PageScope(request), request.page_token()));
  }
  std::string read_after = after_name;
  BatchedCursor<queue::Queue> queues([&](const queue::Queue* last, size_t most) {
    if (last != nullptr) read_after = last->name;
    return context.services.queues.List(read_after, most);
  });
  const auto may_read = [&] {
    return context.services.access.Permits(*context.call.info().identity,
                                           security::Permission::kRead,
                                           {security::ResourceKind::kQueue, queues.item().name});
  };
  const auto fill = [&](wire::Queue& filled) { FillQueue(queues.item(), filled); };
  RETURN_IF_ERROR(
      FillPage(queues, context.call, page_size, *response.mutable_queues(), fill, may_read));
  if (!queues.done()) {
    const int listed = response.queues_size();
    if (listed > 0) after_name = response.queues(listed - 1).name();
    response.set_next_page_token(MakePageToken(kListQueuesMethod, PageScope(request), after_name));
  }
  return absl::OkStatus();
}

}  // namespace strata::rpc::queue_service
