#include "service/rpc/handlers/feed/events.h"

#include "schemas/base/status_macros.h"
#include "service/rpc/answer_size.h"
#include "service/rpc/resources.h"

namespace strata::rpc::feed_service {
namespace {

// Contents and changes that make an event larger are left out.
constexpr size_t kEventBytesMax = kPageBytesMax;

// Leaves contents out, the least important first, until the event is small enough.
void Truncate(wire::Event& event) {
  event.set_truncated(true);
  event.clear_before();
  if (event.ByteSizeLong() > kEventBytesMax) event.mutable_version()->clear_changes();
  if (event.ByteSizeLong() > kEventBytesMax) event.mutable_version()->clear_content();
}

}  // namespace

absl::Status EventAccess::Check() const {
  RETURN_IF_ERROR(access_.CheckStillValid(*identity_));
  security::Demands demands;
  if (subscription_) {
    demands.push_back(OnSubscription(security::Permission::kWrite, *subscription_));
  }
  for (const std::string& collection : collections_) {
    demands.push_back(OnCollection(security::Permission::kRead, collection));
  }
  if (collections_.empty()) {
    demands.push_back(OnCollection(security::Permission::kRead, security::kEvery));
  }
  return access_.Authorize(*identity_, demands, peer_);
}

void EventForm::Fill(const feed::Event& event, wire::Event& filled) const {
  filled.set_position(event.position);
  filled.set_index(static_cast<int32_t>(event.index));
  filled.set_type(static_cast<wire::EventType>(event.type));
  filled.set_collection(event.collection);
  filled.set_id(event.id);
  if (event.type != feed::EventType::kVersion) return;
  wire::Version& version = *filled.mutable_version();
  FillVersion(event.version, version);
  filled.set_left_filter(event.left_filter);
  filled.set_content_missing(event.content_missing);
  if (include_content_ && event.version.content) {
    FillContent(*event.version.content, encoding_, *version.mutable_content());
  }
  if (event.before) FillContent(*event.before, encoding_, *filled.mutable_before());
  if (include_changes_) FillChanges(event.changes, version);
  if (filled.ByteSizeLong() > kEventBytesMax) Truncate(filled);
}

}  // namespace strata::rpc::feed_service
