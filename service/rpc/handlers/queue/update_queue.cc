#include <memory>
#include <string>
#include <utility>

#include "schemas/base/status_macros.h"
#include "service/rpc/queue_messages.h"
#include "service/rpc/resources.h"

namespace strata::rpc::queue_service {

namespace {

// What the queue itself writes to, as it is told to by these settings.
security::Demands DemandsOf(const queue::QueueSettings& settings) {
  security::Demands demands;
  if (!settings.dead_letter_queue.empty()) {
    demands.push_back(OnQueue(security::Permission::kWrite, settings.dead_letter_queue));
  }
  if (settings.enrollments) {
    demands.push_back(OnCollection(security::Permission::kWrite, settings.enrollments->collection));
  }
  return demands;
}

}  // namespace

absl::Status UpdateQueue(const Context& context, const wire::UpdateQueueRequest& request,
                         Reply<wire::UpdateQueueResponse> reply) {
  ASSIGN_OR_RETURN(SettingsChange change,
                   ToSettingsChange(request.settings(), request.update_mask()));
  // Whoever changes a queue answers for all that it does from then on, also by what others have set
  // before: who may not write there must not send it more, or something else, than they meant to.
  auto permitted = [change = std::move(change), &access = context.services.access,
                    identity = context.call.info().identity,
                    peer = std::string(context.call.info().peer)](queue::QueueSettings& settings) {
    change(settings);
    settings.owner = identity->principal;
    return access.Authorize(*identity, DemandsOf(settings), peer);
  };
  context.services.queues.Update(request.name(), std::move(permitted), context.call.deadline(),
                                 AnswerQueue(std::move(reply)));
  return absl::OkStatus();
}

}  // namespace strata::rpc::queue_service
