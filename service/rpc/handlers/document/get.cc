#include "schemas/base/status_macros.h"
#include "service/rpc/convert.h"

namespace strata::rpc::document_service {
namespace {

absl::StatusOr<versioning::At> ToAt(const wire::GetRequest& request) {
  versioning::At at;
  if (request.has_version()) {
    if (request.version() < 1) return FieldError("version", "is below 1, the first version");
    at.version = request.version();
  } else if (request.has_at_time()) {
    ASSIGN_OR_RETURN(at.time, ToMicros("at_time", request.at_time(), Round::kDown));
  }
  return at;
}

}  // namespace

absl::Status Get(const Context& context, const wire::GetRequest& request,
                 wire::GetResponse& response) {
  RETURN_IF_ERROR(CheckEncoding(request.encoding()));
  ASSIGN_OR_RETURN(const versioning::At at, ToAt(request));
  ASSIGN_OR_RETURN(const std::vector<document::Path> fields, ToPaths("fields", request.fields()));
  ASSIGN_OR_RETURN(const versioning::StoredVersion version,
                   context.services.documents.Get({request.collection(), request.id()}, at));
  wire::Document& document = *response.mutable_document();
  FillDocument(request.collection(), request.id(), version, document);
  FillContent(Projected(*version.content, fields), request.encoding(), *document.mutable_content());
  return absl::OkStatus();
}

}  // namespace strata::rpc::document_service
