#include "service/rpc/handlers/feed/subscription_messages.h"

#include <string>

#include "schemas/document/struct_codec.h"
#include "service/rpc/lease_messages.h"

namespace strata::rpc::feed_service {

void FillSubscription(const feed::Subscription& subscription, wire::Subscription& filled) {
  filled.set_name(subscription.name);
  filled.set_incarnation(subscription.incarnation);
  for (const std::string& collection : subscription.selection.collections) {
    filled.add_collections(collection);
  }
  filled.set_id_prefix(subscription.selection.id_prefix);
  for (const versioning::VersionKind kind : subscription.selection.kinds) {
    filled.add_kinds(static_cast<wire::VersionKind>(kind));
  }
  if (subscription.filter) document::AppendStruct(*subscription.filter, *filled.mutable_filter());
  filled.set_start_position(subscription.start_position);
  filled.set_partitions(subscription.partitions);
  filled.set_max_attempts(subscription.max_attempts);
  FillDuration(subscription.backoff_first, *filled.mutable_backoff_first());
  FillDuration(subscription.backoff_max, *filled.mutable_backoff_max());
  FillDuration(subscription.ack_timeout, *filled.mutable_ack_timeout());
  FillDuration(subscription.lease_ttl, *filled.mutable_lease_ttl());
  FillTimestamp(subscription.create_time, *filled.mutable_create_time());
}

}  // namespace strata::rpc::feed_service
