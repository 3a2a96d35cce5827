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
  RETURN_IF_ERROR(CheckLength("ids", ids, kPageSizeMax));
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
  versioning::BatchGetCursor documents = context.services.documents.BatchGet(
      request.collection(), {request.ids().begin(), request.ids().end()});
  PageMeter meter(kPageSizeMax);
  while (documents.Next() && !context.call.closed()) {
    const versioning::StoredVersion* const version = documents.version();
    if (version == nullptr) {
      if (!meter.Take(documents.id().size())) break;
      response.add_missing_ids(documents.id());
    } else {
      wire::Document& document = *response.add_documents();
      FillDocument(request.collection(), documents.id(), *version, document);
      FillContent(Projected(*version->content, fields), request.encoding(),
                  *document.mutable_content());
      if (!TakeLast(meter, *response.mutable_documents())) break;
    }
  }
  RETURN_IF_ERROR(documents.status());
  for (auto i = static_cast<int>(documents.resume_at()); i < request.ids_size(); ++i) {
    response.add_remaining_ids(request.ids(i));
  }
  return absl::OkStatus();
}

}  // namespace strata::rpc::document_service
