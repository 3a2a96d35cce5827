// What the messages of subscriptions have in common.
#pragma once

#include <strata/wire/v1/feed_service.pb.h>

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/feed/subscriptions.h"
#include "service/rpc/convert.h"

namespace strata::rpc::feed_service {

void FillSubscription(const feed::Subscription& subscription, wire::Subscription& filled);

// Asks for all that is parked, or one document of it. INVALID_NAME, INVALID_FIELD.
template <typename Request, typename Response>
absl::Status RequestParked(const Context& context, const Request& request,
                           feed::Subscriptions::ParkedRequest what, Reply<Response> reply) {
  std::optional<feed::DocumentToReplay> document;
  if (!request.collection().empty() || !request.id().empty()) {
    document = {request.collection(), request.id()};
  }
  context.services.subscriptions.Request(
      request.subscription(), what, std::move(document), context.call.deadline(),
      [reply = std::move(reply)](const absl::StatusOr<int32_t>& documents) {
        if (!documents.ok()) return reply.Fail(documents.status());
        reply.response().set_documents(*documents);
        reply.Ok();
      });
  return absl::OkStatus();
}

}  // namespace strata::rpc::feed_service
