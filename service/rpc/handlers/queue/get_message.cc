#include "schemas/base/status_macros.h"
#include "service/rpc/queue_messages.h"

namespace strata::rpc::queue_service {

absl::Status GetMessage(const Context& context, const wire::GetMessageRequest& request,
                        wire::GetMessageResponse& response) {
  RETURN_IF_ERROR(CheckEncoding(request.encoding()));
  ASSIGN_OR_RETURN(const queue::MessageView message,
                   context.services.queues.GetMessage(request.queue(), request.message_id()));
  return FillMessage(message, request.encoding(), *response.mutable_message());
}

}  // namespace strata::rpc::queue_service
