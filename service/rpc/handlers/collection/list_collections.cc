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
  PageMeter meter(page_size);
  bool more = false;
  const auto take = [&](const versioning::Collection& collection) {
    if (!context.call.closed() && !meter.full()) {
      FillCollection(collection, *response.add_collections());
      if (TakeLast(meter, *response.mutable_collections())) return true;
    }
    more = true;
    return false;
  };
  RETURN_IF_ERROR(context.services.documents.collections().List(after_name, take));
  if (more && response.collections_size() > 0) {
    const std::string& last = response.collections(response.collections_size() - 1).name();
    response.set_next_page_token(MakePageToken(kMethod, PageScope(request), last));
  }
  return absl::OkStatus();
}

}  // namespace strata::rpc::collection_service
