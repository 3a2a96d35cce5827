#include "schemas/base/status_macros.h"
#include "service/rpc/queue_messages.h"

namespace strata::rpc::queue_service {

absl::Status GetQueue(const Context& context, const wire::GetQueueRequest& request,
                      wire::GetQueueResponse& response) {
  ASSIGN_OR_RETURN(const queue::Queue queue, context.services.queues.Get(request.name()));
  ASSIGN_OR_RETURN(const queue::QueueStatistics statistics,
                   context.services.queues.Statistics(request.name()));
  ASSIGN_OR_RETURN(const queue::QueueCounts counts, context.services.queues.Counts(request.name()));
  FillQueue(queue, *response.mutable_queue());
  FillStatistics(statistics, *response.mutable_queue()->mutable_statistics());
  FillCounts(counts, *response.mutable_queue()->mutable_counts());
  return absl::OkStatus();
}

}  // namespace strata::rpc::queue_service
