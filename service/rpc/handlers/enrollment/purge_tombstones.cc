#include <algorithm>
#include <string>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "service/rpc/enrollment_messages.h"
#include "service/rpc/page.h"
#include "service/rpc/page_token.h"

namespace strata::rpc::enrollment_service {
namespace {

constexpr std::string_view kPurgeTombstonesMethod = "PurgeTombstones";

// Lowers the number so far that no message of the request's queues that is not finished bears it or
// a smaller one. Read now: what is pushed later bears a number that is the caller's to know.
absl::Status HeedQueues(const Context& context, const wire::PurgeTombstonesRequest& request,
                        int64_t& through) {
  RETURN_IF_ERROR(CheckLength("queues", request.queues(), kPurgedQueuesMax));
  if (request.queues().empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      const std::optional<int64_t> low,
      context.services.queues.LowWatermark({request.queues().begin(), request.queues().end()}));
  if (low) through = std::min(through, *low - 1);
  return absl::OkStatus();
}

}  // namespace

absl::Status PurgeTombstones(const Context& context, const wire::PurgeTombstonesRequest& request,
                             Reply<wire::PurgeTombstonesResponse> reply) {
  enrollment::PurgeRequest purge;
  purge.collection = std::string(CollectionOr(request.collection()));
  purge.student_id = request.student_id();
  purge.set = SetOr(request.set());
  purge.through = request.through_sequence_number();
  ASSIGN_OR_RETURN(purge.change, ToChangeInfo(request.change(), purge.collection,
                                              context.services.access, context.call.info()));
  purge.deadline = context.call.deadline();
  purge.stopped = OnceClosed(context.call);
  purge.waiter = &context.call;
  std::string scope = PageScope(request);
  if (!request.page_token().empty()) {
    ASSIGN_OR_RETURN(IdPlace place,
                     ReadIdPlace(kPurgeTombstonesMethod, scope, request.page_token()));
    purge.incarnation = place.incarnation;
    purge.after_id = std::move(place.after_id);
  }
  if (purge.through > 0) {
    RETURN_IF_ERROR(HeedQueues(context, request, purge.through));
    if (purge.through < 1) {  // nothing may go
      reply.response().set_next_page_token(request.page_token());
      reply.Ok();
      return absl::OkStatus();
    }
  }
  const int64_t through = purge.through;
  context.services.enrollments.Purge(
      std::move(purge), [reply = std::move(reply), scope = std::move(scope),
                         through](const absl::StatusOr<enrollment::Purged>& purged) {
        if (!purged.ok()) return reply.Fail(purged.status());
        wire::PurgeTombstonesResponse& response = reply.response();
        response.set_through_sequence_number(through);
        response.set_examined(purged->examined);
        response.set_purged_students(purged->students);
        response.set_purged_tombstones(purged->tombstones);
        for (const std::string& id : purged->refused) response.add_refused_student_ids(id);
        if (purged->resume_after) {
          response.set_next_page_token(MakePageToken(
              kPurgeTombstonesMethod, scope, IdPlace{purged->incarnation, *purged->resume_after}));
        }
        reply.Ok();
      });
  return absl::OkStatus();
}

}  // namespace strata::rpc::enrollment_service
