#include <algorithm>
#include <string>

#include "schemas/base/status_macros.h"
#include "service/rpc/page.h"
#include "service/rpc/page_token.h"
#include "service/rpc/queue_messages.h"

namespace strata::rpc::queue_service {
namespace {

constexpr std::string_view kListMessagesMethod = "ListMessages";
// Each has a payload.
constexpr size_t kMessagesReadAtOnce = 32;

absl::StatusOr<queue::MessageQuery> ToQuery(const Context& context,
                                            const wire::ListMessagesRequest& request) {
  RETURN_IF_ERROR(CheckEncoding(request.encoding()));
  queue::MessageQuery query;
  query.queue = request.queue();
  ASSIGN_OR_RETURN(query.state, ToState("state", request.state()));
  if (!request.page_token().empty()) {
    ASSIGN_OR_RETURN(query.after,
                     ReadPageToken(kListMessagesMethod, PageScope(request), request.page_token()));
  }
  query.stopped = OnceClosed(context.call);
  return query;
}

// Adds messages to the answer while they fit: how many did.
absl::StatusOr<size_t> Add(const queue::MessagePage& page, wire::Encoding encoding,
                           PageMeter& meter, wire::ListMessagesResponse& response) {
  size_t added = 0;
  for (const queue::MessageView& message : page.messages) {
    RETURN_IF_ERROR(FillMessage(message, encoding, *response.add_messages()));
    if (!TakeLast(meter, *response.mutable_messages())) break;
    ++added;
  }
  return added;
}

}  // namespace

// Where a page ends is known of what was read at once. So where only some of that fits, these are
// read again; the page ends there, whatever has become of them meanwhile.
absl::Status ListMessages(const Context& context, const wire::ListMessagesRequest& request,
                          wire::ListMessagesResponse& response) {
  ASSIGN_OR_RETURN(const int page_size, ToPageSize(request.page_size()));
  ASSIGN_OR_RETURN(queue::MessageQuery query, ToQuery(context, request));
  const queue::Queues& queues = context.services.queues;
  PageMeter meter(page_size);
  std::optional<std::string> resume_after = query.after;
  while (resume_after && !meter.full() && !context.call.closed()) {
    query.after = *resume_after;
    const auto left = static_cast<size_t>(page_size - response.messages_size());
    ASSIGN_OR_RETURN(const queue::MessagePage page,
                     queues.ListMessages(query, std::min(left, kMessagesReadAtOnce)));
    ASSIGN_OR_RETURN(const size_t added, Add(page, request.encoding(), meter, response));
    resume_after = page.resume_after;
    if (added == page.messages.size()) continue;
    resume_after = query.after;
    if (added > 0) {
      ASSIGN_OR_RETURN(const queue::MessagePage fits, queues.ListMessages(query, added));
      resume_after = fits.resume_after;
    }
    break;
  }
  if (resume_after) {
    response.set_next_page_token(
        MakePageToken(kListMessagesMethod, PageScope(request), *resume_after));
  }
  return absl::OkStatus();
}

}  // namespace strata::rpc::queue_service
