#include <algorithm>

#include "schemas/base/status_macros.h"
#include "service/rpc/handlers/feed/subscription_messages.h"

namespace strata::rpc::feed_service {
namespace {

void FillPartition(const feed::PartitionState& state, store::CommitPosition last,
                   wire::SubscriptionPartition& filled) {
  filled.set_partition(state.partition);
  filled.set_consumer(state.consumer);
  filled.set_token(state.token);
  filled.set_position(state.place.position);
  if (state.place.index) filled.set_index(*state.place.index);
  filled.set_lag_positions(state.caught_up ? 0 : std::max<int64_t>(0, last - state.place.position));
  if (state.oldest_open_time) {
    FillTimestamp(*state.oldest_open_time, *filled.mutable_oldest_open_time());
  }
  filled.set_in_flight(state.in_flight);
  filled.set_attempts(state.attempts);
  filled.set_reason(state.reason);
  if (state.retry_time) FillTimestamp(*state.retry_time, *filled.mutable_retry_time());
  filled.set_parked(state.parked);
  filled.set_blocked(state.blocked);
}

}  // namespace

absl::Status GetSubscription(const Context& context, const wire::GetSubscriptionRequest& request,
                             wire::GetSubscriptionResponse& response) {
  ASSIGN_OR_RETURN(const feed::SubscriptionState state,
                   context.services.subscriptions.Get(request.name()));
  FillSubscription(state.subscription, *response.mutable_subscription());
  int32_t parked = 0;
  for (const feed::PartitionState& partition : state.partitions) {
    FillPartition(partition, state.last_position, *response.add_partitions());
    parked += partition.parked;
  }
  response.set_last_position(state.last_position);
  response.set_consumers(state.consumers);
  response.set_parked(parked);
  response.set_events_acknowledged(state.events_acknowledged);
  response.set_acknowledging_commits(state.acknowledging_commits);
  response.set_take_overs(state.take_overs);
  return absl::OkStatus();
}

}  // namespace strata::rpc::feed_service
