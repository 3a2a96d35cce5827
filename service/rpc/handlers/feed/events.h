// How events reach callers: what the streams of Watch and Consume have in common.
#pragma once

#include <strata/wire/v1/feed_service.pb.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "schemas/feed/event.h"
#include "service/rpc/convert.h"
#include "service/rpc/message_in_making.h"
#include "service/rpc/outlived.h"

namespace strata::rpc::feed_service {

// Whether a caller may still have the events that it asked for: its stream is open for long, and
// what it may do can change meanwhile.
class EventAccess {
 public:
  // Events of `collections`, none: of all; of a subscription, if one is named.
  EventAccess(security::Access& access, const server::CallInfo& info,
              std::vector<std::string> collections,
              std::optional<std::string> subscription = std::nullopt)
      : access_(access),
        identity_(info.identity),
        peer_(info.peer),
        collections_(std::move(collections)),
        subscription_(std::move(subscription)) {}

  // CREDENTIALS_INVALID, PERMISSION_DENIED.
  absl::Status Check() const;

 private:
  security::Access& access_;
  const std::shared_ptr<const security::Identity> identity_;
  const std::string peer_;
  const std::vector<std::string> collections_;
  const std::optional<std::string> subscription_;
};

// What of an event a caller asked for.
class EventForm {
 public:
  // WatchRequest or ConsumeRequest.Open.
  template <typename Request>
  explicit EventForm(const Request& request)
      : encoding_(request.encoding()),
        include_content_(request.include_content()),
        include_changes_(request.include_changes()) {}

  // Contents and changes that would make it larger than a page are left out.
  void Fill(const feed::Event& event, wire::Event& filled) const;
  wire::Encoding encoding() const { return encoding_; }

 private:
  const wire::Encoding encoding_;
  const bool include_content_;
  const bool include_changes_;
};

}  // namespace strata::rpc::feed_service
