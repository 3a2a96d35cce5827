#include "schemas/base/status_macros.h"
#include "service/rpc/page.h"
#include "service/rpc/page_token.h"

namespace strata::rpc::document_service {
namespace {

constexpr std::string_view kMethod = "History";

absl::Status FillBounds(const wire::HistoryRequest& request, versioning::HistoryQuery& query) {
  if (request.has_from_version()) {
    if (request.from_version() < 1) return FieldError("from_version", "is below 1");
    query.from_version = request.from_version();
  } else if (request.has_from_time()) {
    ASSIGN_OR_RETURN(query.from_time, ToMicros("from_time", request.from_time(), Round::kUp));
  }
  if (request.has_to_version()) {
    if (request.to_version() < 1) return FieldError("to_version", "is below 1");
    query.to_version = request.to_version();
  } else if (request.has_to_time()) {
    ASSIGN_OR_RETURN(query.to_time, ToMicros("to_time", request.to_time(), Round::kDown));
  }
  return absl::OkStatus();
}

absl::Status FillPlace(const wire::HistoryRequest& request, versioning::HistoryQuery& query) {
  if (request.page_token().empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string place,
                   ReadPageToken(kMethod, PageScope(request), request.page_token()));
  std::string_view rest = place;
  query.resume_at = TakePlaceNumber(rest);
  if (!query.resume_at || *query.resume_at < 1 || !rest.empty()) {
    return InvalidPageToken("page_token names no version");
  }
  return absl::OkStatus();
}

absl::StatusOr<versioning::HistoryQuery> ToQuery(const wire::HistoryRequest& request) {
  versioning::HistoryQuery query;
  query.name = {request.collection(), request.id()};
  query.oldest_first = request.oldest_first();
  query.include_content = request.include_content();
  query.include_changes = request.include_changes();
  RETURN_IF_ERROR(FillBounds(request, query));
  RETURN_IF_ERROR(FillPlace(request, query));
  return query;
}

std::string TokenFor(const wire::HistoryRequest& request, int64_t version) {
  std::string place;
  AppendPlaceNumber(version, place);
  return MakePageToken(kMethod, PageScope(request), place);
}

}  // namespace

absl::Status History(const Context& context, const wire::HistoryRequest& request,
                     wire::HistoryResponse& response) {
  RETURN_IF_ERROR(CheckEncoding(request.encoding()));
  ASSIGN_OR_RETURN(const int page_size, ToPageSize(request.page_size()));
  ASSIGN_OR_RETURN(const versioning::HistoryQuery query, ToQuery(request));
  PageMeter meter(page_size);
  const auto take = [&](versioning::StoredVersion&& version,
                        std::vector<document::FieldChange>&& changes) {
    if (context.call.closed()) return false;
    bool taken = !meter.full();
    if (taken) {
      wire::Version& item = *response.add_versions();
      FillVersion(version, item);
      if (request.include_content() && version.content) {
        FillContent(*version.content, request.encoding(), *item.mutable_content());
      }
      FillChanges(changes, *item.mutable_changes());
      taken = TakeLast(meter, *response.mutable_versions());
    }
    if (!taken) response.set_next_page_token(TokenFor(request, version.header.version));
    return taken;
  };
  return context.services.documents.History(query, take);
}

}  // namespace strata::rpc::document_service
