#include "schemas/base/status_macros.h"
#include "service/rpc/page.h"

namespace strata::rpc::document_service {
namespace {

absl::StatusOr<versioning::At> ToAt(const wire::GetRequest& request) {
  versioning::At at;
  if (request.has_version()) {
    if (request.version() < 1) return FieldError("version", "is below 1, the first version");
    at.version = request.version();
  } else if (request.has_at_time()) {
    ASSIGN_OR_RETURN(at.time, ToMicros("at_time", request.at_time(), Round::kDown));
  } else if (request.has_at_position()) {
    at.position = request.at_position();
  }
  return at;
}

void FillAnswer(const wire::GetRequest& request, const std::vector<document::Path>& fields,
                const versioning::StoredVersion& version, wire::GetResponse& response) {
  wire::Document& document = *response.mutable_document();
  FillDocument(request.collection(), request.id(), version, document);
  FillContent(Projected(*version.content, fields), request.encoding(), *document.mutable_content());
}

// What others may wait for: to make JSON of a content takes some ten times as long as to copy it.
const versioning::ReadLimits& BriefLimits(wire::Encoding encoding) {
  static const auto* const as_json =
      new versioning::ReadLimits{.document_bytes_max = versioning::kBriefDocumentBytesMax,
                                 .rebuilt_bytes_max = versioning::kBriefRebuiltBytesMax,
                                 .searches = false};
  static const auto* const as_bson =
      new versioning::ReadLimits{.document_bytes_max = versioning::kBriefRebuiltBytesMax,
                                 .rebuilt_bytes_max = versioning::kBriefRebuiltBytesMax,
                                 .searches = false};
  return encoding == wire::ENCODING_BSON ? *as_bson : *as_json;
}

}  // namespace

absl::Status Get(const Context& context, const wire::GetRequest& request,
                 Reply<wire::GetResponse> reply) {
  RETURN_IF_ERROR(CheckEncoding(request.encoding()));
  ASSIGN_OR_RETURN(const versioning::At at, ToAt(request));
  ASSIGN_OR_RETURN(std::vector<document::Path> fields, ToPaths("fields", request.fields()));
  const versioning::Documents& documents = context.services.documents;
  const absl::StatusOr<versioning::StoredVersion> version =
      documents.Get({request.collection(), request.id()}, at, BriefLimits(request.encoding()));
  if (version.ok()) {
    FillAnswer(request, fields, *version, reply.response());
    reply.Ok();
    return absl::OkStatus();
  }
  if (!versioning::DoesTakeLong(version.status())) return version.status();
  reply.Later([&documents, &request, at, fields = std::move(fields), &call = reply.call(),
               &response = reply.response()]() -> absl::Status {
    ASSIGN_OR_RETURN(
        const versioning::StoredVersion read,
        documents.Get({request.collection(), request.id()}, at, {.stopped = OnceClosed(call)}));
    FillAnswer(request, fields, read, response);
    return absl::OkStatus();
  });
  return absl::OkStatus();
}

}  // namespace strata::rpc::document_service
