#include "schemas/base/status_macros.h"
#include "service/rpc/page.h"
#include "service/rpc/page_token.h"

namespace strata::rpc::document_service {
namespace {

constexpr std::string_view kMethod = "List";

absl::StatusOr<versioning::ListQuery> ToQuery(const wire::ListRequest& request) {
  versioning::ListQuery query;
  query.collection = request.collection();
  query.id_prefix = request.id_prefix();
  query.show_deleted = request.show_deleted();
  ASSIGN_OR_RETURN(query.filter, ToFilter("filter", request.filter()));
  if (request.has_at_time()) {
    ASSIGN_OR_RETURN(query.at_time, ToMicros("at_time", request.at_time(), Round::kDown));
  }
  if (!request.page_token().empty()) {
    ASSIGN_OR_RETURN(query.after_id, ReadPageToken(kMethod, PageScope(request, query.filter),
                                                   request.page_token()));
  }
  return query;
}

}  // namespace

absl::Status List(const Context& context, const wire::ListRequest& request,
                  wire::ListResponse& response) {
  RETURN_IF_ERROR(CheckEncoding(request.encoding()));
  ASSIGN_OR_RETURN(const int page_size, ToPageSize(request.page_size()));
  ASSIGN_OR_RETURN(const std::vector<document::Path> fields, ToPaths("fields", request.fields()));
  ASSIGN_OR_RETURN(const versioning::ListQuery query, ToQuery(request));
  PageMeter meter(page_size);
  const auto take = [&](std::string_view id, versioning::StoredVersion&& version) {
    if (context.call.closed() || meter.full()) return false;
    wire::Document& document = *response.add_documents();
    FillDocument(request.collection(), id, version, document);
    if (version.content) {
      FillContent(Projected(*version.content, fields), request.encoding(),
                  *document.mutable_content());
    }
    return TakeLast(meter, *response.mutable_documents());
  };
  ASSIGN_OR_RETURN(const versioning::ListEnd end, context.services.documents.List(query, take));
  response.set_examined(end.examined);
  if (end.resume_after) {
    response.set_next_page_token(
        MakePageToken(kMethod, PageScope(request, query.filter), *end.resume_after));
  }
  return absl::OkStatus();
}

}  // namespace strata::rpc::document_service
