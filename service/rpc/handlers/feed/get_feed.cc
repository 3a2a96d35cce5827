#include <strata/wire/v1/feed_service.pb.h>

#include "schemas/base/status_macros.h"
#include "schemas/feed/feed.h"
#include "service/rpc/convert.h"

namespace strata::rpc::feed_service {

absl::Status GetFeed(const Context& context, const wire::GetFeedRequest& /*request*/,
                     wire::GetFeedResponse& response) {
  ASSIGN_OR_RETURN(const feed::FeedState state, context.services.feed.GetState());
  response.set_oldest_position(state.oldest_position);
  response.set_last_position(state.last_position);
  response.set_watchers(state.watchers);
  response.set_parked_watchers(state.parked_watchers);
  response.set_events_sent(state.events_sent);
  response.set_catch_up_reads(state.catch_up_reads);
  if (state.retention) response.mutable_retention()->set_seconds(state.retention->count());
  if (state.held_by) {
    response.set_held_by(state.held_by->name);
    response.set_held_position(state.held_by->position);
  }
  const lease::LeaseCounts leases = context.services.leases.counts();
  response.set_take_overs(leases.take_overs);
  response.set_lease_lost(leases.lost);
  return absl::OkStatus();
}

}  // namespace strata::rpc::feed_service
