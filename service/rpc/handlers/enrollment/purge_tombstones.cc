#include "schemas/base/status_macros.h"
#include "service/rpc/enrollment_messages.h"
#include "service/rpc/page.h"
#include "service/rpc/page_token.h"

namespace strata::rpc::enrollment_service {
namespace {

constexpr std::string_view kMethod = "PurgeTombstones";

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
    ASSIGN_OR_RETURN(purge.after_id, ReadPageToken(kMethod, scope, request.page_token()));
  }
  context.services.enrollments.Purge(
      std::move(purge), [reply = std::move(reply), scope = std::move(scope)](
                            const absl::StatusOr<enrollment::Purged>& purged) {
        if (!purged.ok()) return reply.Fail(purged.status());
        wire::PurgeTombstonesResponse& response = reply.response();
        response.set_examined(purged->examined);
        response.set_purged_students(purged->students);
        response.set_purged_tombstones(purged->tombstones);
        for (const std::string& id : purged->refused) response.add_refused_student_ids(id);
        if (purged->resume_after) {
          response.set_next_page_token(MakePageToken(kMethod, scope, *purged->resume_after));
        }
        reply.Ok();
      });
  return absl::OkStatus();
}

}  // namespace strata::rpc::enrollment_service
