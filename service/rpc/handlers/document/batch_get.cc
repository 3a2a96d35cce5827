#include <algorithm>
#include <numeric>

#include "schemas/base/status_macros.h"
#include "service/rpc/page.h"

namespace strata::rpc::document_service {
namespace {

std::string IdField(int index) { return "ids[" + std::to_string(index) + "]"; }

// 1 to 1000, none twice.
absl::Status CheckIds(const google::protobuf::RepeatedPtrField<std::string>& ids) {
  if (ids.empty()) return FieldError("ids", "is required: 1 to 1000 ids");
  if (ids.size() > kPageSizeMax) return TooManyElements("ids", ids.size(), kPageSizeMax);
  std::vector<int> order(static_cast<size_t>(ids.size()));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return std::tie(ids[a], a) < std::tie(ids[b], b); });
  for (size_t i = 1; i < order.size(); ++i) {
    if (ids[order[i - 1]] == ids[order[i]]) {
      return FieldError(IdField(order[i]),
                        "is the same as " + IdField(order[i - 1]) + "; ask for an id once");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status BatchGet(const Context& context, const wire::BatchGetRequest& request,
                      wire::BatchGetResponse& response) {
  RETURN_IF_ERROR(CheckIds(request.ids()));
  RETURN_IF_ERROR(CheckEncoding(request.encoding()));
  ASSIGN_OR_RETURN(const std::vector<document::Path> fields, ToPaths("fields", request.fields()));
  PageMeter meter(kPageSizeMax);
  int looked_at = 0;
  const auto take = [&](const std::string& id, versioning::StoredVersion* version) {
    if (context.call.closed()) return false;
    if (version == nullptr) {
      if (!meter.Take(id.size())) return false;
      response.add_missing_ids(id);
    } else {
      wire::Document& document = *response.add_documents();
      FillDocument(request.collection(), id, *version, document);
      FillContent(Projected(*version->content, fields), request.encoding(),
                  *document.mutable_content());
      if (!TakeLast(meter, *response.mutable_documents())) return false;
    }
    ++looked_at;
    return true;
  };
  const std::vector<std::string> ids(request.ids().begin(), request.ids().end());
  RETURN_IF_ERROR(context.services.documents.BatchGet(request.collection(), ids, take));
  for (int i = looked_at; i < request.ids_size(); ++i) response.add_remaining_ids(request.ids(i));
  return absl::OkStatus();
}

}  // namespace strata::rpc::document_service
