#include "service/server/status_mapping.h"

#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "schemas/base/error.h"
#include "schemas/base/strings.h"
#include "schemas/base/utf8.h"

namespace strata::server {
namespace {

// Clients accept 8 KiB of trailers by default; base64 takes a third, and the message stands there
// up to three times.
constexpr size_t kMessageBytesMax = 512;
constexpr size_t kValueBytesMax = 512;
constexpr size_t kMetadataBytesMax = 2048;

constexpr std::string_view kInternalMessage = "a bug in the server";

// Protobuf refuses strings that are not UTF-8, and an error must not fail for its own text.
std::string Shown(std::string_view text, size_t bytes_max) {
  if (!IsUtf8(text)) return "(not UTF-8)";
  return std::string(CutUtf8(text, bytes_max));
}

std::optional<std::string> Find(const ErrorMetadata& metadata, std::string_view key) {
  for (const auto& [name, value] : metadata) {
    if (name == key) return value;
  }
  return std::nullopt;
}

void FillErrorInfo(ErrorReason reason, const ErrorMetadata& metadata,
                   google::rpc::ErrorInfo& info) {
  info.set_reason(std::string(ReasonName(reason)));
  info.set_domain("strata");
  size_t bytes = 0;
  for (const auto& [key, value] : metadata) {
    std::string shown = Shown(value, kValueBytesMax);
    bytes += key.size() + shown.size();
    if (bytes > kMetadataBytesMax) break;
    (*info.mutable_metadata())[key] = std::move(shown);
  }
}

google::rpc::ResourceInfo MakeResourceInfo(const ErrorMetadata& metadata,
                                           const std::string& message) {
  google::rpc::ResourceInfo info;
  info.set_description(message);
  if (const std::optional<std::string> service = Find(metadata, "service")) {
    info.set_resource_type("service");
    info.set_resource_name(Shown(*service, kValueBytesMax));
    return info;
  }
  if (const std::optional<std::string> lease = Find(metadata, "lease")) {
    info.set_resource_type("strata.v1.Lease");
    info.set_resource_name(Shown(*lease, kValueBytesMax));
    return info;
  }
  if (const std::optional<std::string> message_id = Find(metadata, "message_id")) {
    info.set_resource_type("strata.v1.QueueMessage");
    info.set_resource_name(Shown(*message_id, kValueBytesMax));
    return info;
  }
  if (const std::optional<std::string> queue = Find(metadata, "queue")) {
    const std::optional<std::string> schedule = Find(metadata, "schedule");
    info.set_resource_type(schedule ? "strata.v1.Schedule" : "strata.v1.Queue");
    std::string name = Shown(*queue, kValueBytesMax);
    if (schedule) name += "/" + Shown(*schedule, kValueBytesMax);
    info.set_resource_name(std::move(name));
    return info;
  }
  const std::optional<std::string> collection = Find(metadata, "collection");
  const std::optional<std::string> id = Find(metadata, "id");
  info.set_resource_type(id ? "strata.v1.Document" : "strata.v1.Collection");
  std::string name = Shown(collection.value_or(""), kValueBytesMax);
  if (id) name += "/" + Shown(*id, kValueBytesMax);
  info.set_resource_name(std::move(name));
  return info;
}

google::rpc::PreconditionFailure MakePreconditionFailure(ErrorReason reason,
                                                         const ErrorMetadata& metadata,
                                                         const std::string& message) {
  google::rpc::PreconditionFailure failure;
  auto& violation = *failure.add_violations();
  violation.set_type(std::string(ReasonName(reason)));
  for (const std::string_view key : {"collection", "lease", "queue", "capability"}) {
    if (const auto value = Find(metadata, key); value && violation.subject().empty()) {
      violation.set_subject(Shown(*value, kValueBytesMax));
    }
  }
  violation.set_description(message);
  return failure;
}

void AddDetails(ErrorReason reason, const ErrorMetadata& metadata,
                const std::optional<std::chrono::microseconds>& retry_after,
                google::rpc::Status& status) {
  google::rpc::ErrorInfo info;
  FillErrorInfo(reason, metadata, info);
  status.add_details()->PackFrom(info);
  switch (static_cast<absl::StatusCode>(status.code())) {
    case absl::StatusCode::kInvalidArgument: {
      google::rpc::BadRequest bad;
      auto& violation = *bad.add_field_violations();
      violation.set_field(Shown(Find(metadata, "field").value_or(""), kValueBytesMax));
      violation.set_description(status.message());
      status.add_details()->PackFrom(bad);
      break;
    }
    case absl::StatusCode::kFailedPrecondition:
      status.add_details()->PackFrom(MakePreconditionFailure(reason, metadata, status.message()));
      break;
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
      status.add_details()->PackFrom(MakeResourceInfo(metadata, status.message()));
      break;
    default:
      break;
  }
  if (const auto delay = retry_after ? retry_after : ReasonRetryDelay(reason)) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(delay->count() / 1'000'000);
    retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(delay->count() % 1'000'000) * 1000);
    status.add_details()->PackFrom(retry);
  }
}

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const std::optional<ErrorReason> known = ReasonOf(status);
  const ErrorReason reason = known.value_or(ErrorReason::kInternal);
  const std::string_view message =
      reason == ErrorReason::kInternal ? kInternalMessage : ToStd(status.message());
  google::rpc::Status wire;
  wire.set_code(static_cast<int>(known ? status.code() : ReasonCode(reason)));
  wire.set_message(Shown(message, kMessageBytesMax));
  AddDetails(reason, known ? MetadataOf(status) : ErrorMetadata(), RetryAfterOf(status), wire);
  return grpc::Status(static_cast<grpc::StatusCode>(wire.code()), wire.message(),
                      wire.SerializeAsString());
}

}  // namespace strata::server
