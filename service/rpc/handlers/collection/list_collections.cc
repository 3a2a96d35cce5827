#include "schemas/base/status_macros.h"
#include "service/rpc/page.h"
#include "service/rpc/page_token.h"

namespace strata::rpc::collection_service {
namespace {

constexpr std::string_view kListCollectionsMethod = "ListCollections";

}  // namespace

absl::Status ListCollections(const Context& context, const wire::ListCollectionsRequest& request,
                             wire::ListCollectionsResponse& response) {
  ASSIGN_OR_RETURN(const int page_size, ToPageSize(request.page_size()));
  std::string after_name;  // nothing that may not be read: the answer's token tells it
  if (!request.page_token().empty()) {
    ASSIGN_OR_RETURN(after_name, ReadPageToken(kListCollectionsMethod, PageScope(request),
                                               request.page_token()));
  }
  versioning::CollectionCursor collections =
      context.services.documents.collections().List(after_name, OnceClosed(context.call));
  const auto may_read = [&] {
    return context.services.access.Permits(
        *context.call.info().identity, security::Permission::kRead,
        {security::ResourceKind::kCollection, collections.collection().name});
  };
  const auto fill = [&](wire::Collection& collection) {
    FillCollection(collections.collection(), collection);
  };
  RETURN_IF_ERROR(FillPage(collections, context.call, page_size, *response.mutable_collections(),
                           fill, may_read));
  if (collections.resume_after()) {
    const int listed = response.collections_size();
    if (listed > 0) after_name = response.collections(listed - 1).name();
    response.set_next_page_token(
        MakePageToken(kListCollectionsMethod, PageScope(request), after_name));
  }
  return absl::OkStatus();
}

}  // namespace strata::rpc::collection_service
