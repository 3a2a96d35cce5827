// Which events are wanted, and from where on: what the requests for them have in common.
#pragma once

#include <strata/wire/v1/feed_service.pb.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/feed/event.h"
#include "service/rpc/convert.h"

namespace strata::rpc::feed_service {

// INVALID_NAME, INVALID_FIELD.
absl::StatusOr<feed::Selection> ToSelection(
    const google::protobuf::RepeatedPtrField<std::string>& collections,
    const std::string& id_prefix, const google::protobuf::RepeatedField<int>& kinds);

// INVALID_FIELD for what cannot be a commit's.
absl::Status CheckPosition(std::string_view field, int64_t position);

// What the starts of WatchRequest and CreateSubscriptionRequest have in common. INVALID_FIELD.
template <typename Request>
absl::StatusOr<feed::Start> ToStart(const Request& request) {
  if (request.has_after_position()) {
    RETURN_IF_ERROR(CheckPosition("after_position", request.after_position()));
    return feed::FromPosition{request.after_position()};
  }
  if (request.has_start_time()) {
    ASSIGN_OR_RETURN(const UnixMicros time,
                     ToMicros("start_time", request.start_time(), Round::kUp));
    return feed::FromTime{time};
  }
  return feed::FromNow();
}

}  // namespace strata::rpc::feed_service
