// The client itself: its calls that belong to no facade.
#include "strata/client/client.h"

#include <utility>

#include "clients/cpp/requests.h"
#include "clients/cpp/write_parts.h"

namespace strata::client {

absl::StatusOr<Client> Client::Connect(const ClientOptions& options) {
  absl::StatusOr<std::shared_ptr<Core>> core = Core::Make(options);
  if (!core.ok()) return core.status();
  return Client(*std::move(core));
}

absl::StatusOr<Feed> Client::GetFeed() const {
  v1::GetFeedResponse response;
  absl::Status status =
      core_->Call(&v1::FeedService::Stub::GetFeed, v1::GetFeedRequest(), &response);
  if (!status.ok()) return status;
  return ReadMessage<Feed>(response);
}

Range<AuditEntry> Client::Audit(const AuditOptions& options) const {
  return AuditOf(core_, options);
}

absl::StatusOr<ServerInfo> Client::GetServerInfo() const {
  v1::GetServerInfoResponse response;
  absl::Status status =
      core_->Call(&v1::ServerService::Stub::GetServerInfo, v1::GetServerInfoRequest(), &response);
  if (!status.ok()) return status;
  return ReadMessage<ServerInfo>(response);
}

}  // namespace strata::client
