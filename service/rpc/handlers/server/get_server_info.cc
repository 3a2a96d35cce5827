#include <strata/wire/v1/server_service.pb.h>

#include <algorithm>

#include "service/rpc/convert.h"
#include "service/rpc/page.h"
#include "service/rpc/registry.h"

namespace strata::rpc::server_service {

absl::Status GetServerInfo(const Context& context, const wire::GetServerInfoRequest& /*request*/,
                           wire::GetServerInfoResponse& response) {
  using observability::Health;
  const Services& services = context.services;
  const ServerInfo& info = services.info;
  response.set_version(info.version);
  response.set_commit(info.commit);
  response.set_engine(info.engine);
  response.set_storage_format(info.storage_format);
  FillTimestamp(info.start_time, *response.mutable_start_time());
  response.set_writable(services.health.Of(Health::kWrites) == Health::State::kServing);
  const document::Limits& limits = services.documents.limits();
  wire::ServerLimits& wire_limits = *response.mutable_limits();
  wire_limits.set_document_bytes(static_cast<int64_t>(limits.bytes_max));
  wire_limits.set_document_depth(limits.depth_max);
  wire_limits.set_document_nodes(limits.nodes_max);
  wire_limits.set_message_bytes(static_cast<int64_t>(info.message_bytes_max));
  wire_limits.set_page_size(kPageSizeMax);
  wire_limits.set_batch_size(kPageSizeMax);
  const int64_t deadline_ms = services.deadline.count();
  wire_limits.mutable_deadline()->set_seconds(deadline_ms / 1000);
  wire_limits.mutable_deadline()->set_nanos(static_cast<int32_t>(deadline_ms % 1000) * 1'000'000);
  std::vector<std::string> names = ServiceNames(info.reflection);
  std::sort(names.begin(), names.end());
  for (std::string& name : names) response.add_services(std::move(name));
  return absl::OkStatus();
}

}  // namespace strata::rpc::server_service
