#include "schemas/base/status_macros.h"
#include "service/rpc/page.h"
#include "service/rpc/page_token.h"

namespace strata::rpc::collection_service {
namespace {

constexpr std::string_view kMethod = "ListCollections";

}  // namespace

absl::Status ListCollections(const Context& context, const wire::ListCollectionsRequest& request,
                             wire::ListCollectionsResponse& response) {
  ASSIGN_OR_RETURN(const int page_size, ToPageSize(request.page_size()));
  std::string after_name;
  if (!request.page_token().empty()) {
    ASSIGN_OR_RETURN(after_name, ReadPageToken(kMethod, PageScope(request), request.page_token()));
  }
  versioning::CollectionCursor collections =
      context.services.documents.collections().List(std::move(after_name));
  const auto fill = [&](wire::Collection& collection) {
    FillCollection(collections.collection(), collection);
  };
  RETURN_IF_ERROR(
      FillPage(collections, context.call, page_size, *response.mutable_collections(), fill));
  if (const std::optional<std::string> next = collections.resume_after()) {
    response.set_next_page_token(MakePageToken(kMethod, PageScope(request), *next));
  }
  return absl::OkStatus();
}

}  // namespace strata::rpc::collection_service
