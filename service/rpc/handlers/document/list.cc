#include "schemas/base/status_macros.h"
#include "service/rpc/page.h"
#include "service/rpc/page_token.h"

namespace strata::rpc::document_service {
namespace {

constexpr std::string_view kListMethod = "List";

absl::StatusOr<versioning::ListQuery> ToQuery(const wire::ListRequest& request) {
  versioning::ListQuery query;
  query.collection = request.collection();
  query.id_prefix = request.id_prefix();
  query.show_deleted = request.show_deleted();
  ASSIGN_OR_RETURN(query.filter, ToFilter("filter", request.filter()));
  if (request.has_at_time()) {
    ASSIGN_OR_RETURN(query.at_time, ToMicros("at_time", request.at_time(), Round::kDown));
  }
  if (request.at_position() != 0) query.at_position = request.at_position();
  if (!request.page_token().empty()) {
    ASSIGN_OR_RETURN(IdPlace place, ReadIdPlace(kListMethod, PageScope(request, query.filter),
                                                request.page_token()));
    query.incarnation = place.incarnation;
    query.after_id = std::move(place.after_id);
  }
  return query;
}

}  // namespace

absl::Status List(const Context& context, const wire::ListRequest& request,
                  wire::ListResponse& response) {
  RETURN_IF_ERROR(CheckEncoding(request.encoding()));
  ASSIGN_OR_RETURN(const int page_size, ToPageSize(request.page_size()));
  ASSIGN_OR_RETURN(const std::vector<document::Path> fields, ToPaths("fields", request.fields()));
  ASSIGN_OR_RETURN(versioning::ListQuery query, ToQuery(request));
  query.stopped = OnceClosed(context.call);
  versioning::ListCursor documents = context.services.documents.List(std::move(query));
  const auto fill = [&](wire::Document& document) {
    const versioning::StoredVersion& version = documents.version();
    FillDocument(request.collection(), documents.id(), version, document);
    if (version.content) {
      FillContent(Projected(*version.content, fields), request.encoding(),
                  *document.mutable_content());
    }
  };
  RETURN_IF_ERROR(
      FillPage(documents, context.call, page_size, *response.mutable_documents(), fill));
  response.set_examined(documents.examined());
  if (const std::optional<std::string> next = documents.resume_after()) {
    response.set_next_page_token(MakePageToken(kListMethod,
                                               PageScope(request, documents.query().filter),
                                               IdPlace{documents.incarnation(), *next}));
  }
  return absl::OkStatus();
}

}  // namespace strata::rpc::document_service
