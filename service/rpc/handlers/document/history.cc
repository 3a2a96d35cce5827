#include "schemas/base/status_macros.h"
#include "service/rpc/page.h"
#include "service/rpc/page_token.h"

namespace strata::rpc::document_service {
namespace {

constexpr std::string_view kHistoryMethod = "History";

absl::Status FillBounds(const wire::HistoryRequest& request, versioning::HistoryQuery& query) {
  if (request.has_from_version()) {
    if (request.from_version() < 1)
      return FieldError("from_version", "is below 1, the first version");
    query.from_version = request.from_version();
  } else if (request.has_from_time()) {
    ASSIGN_OR_RETURN(query.from_time, ToMicros("from_time", request.from_time(), Round::kUp));
  }
  if (request.has_to_version()) {
    if (request.to_version() < 1) return FieldError("to_version", "is below 1, the first version");
    query.to_version = request.to_version();
  } else if (request.has_to_time()) {
    ASSIGN_OR_RETURN(query.to_time, ToMicros("to_time", request.to_time(), Round::kDown));
  }
  if (query.from_version && query.to_version && *query.from_version > *query.to_version) {
    return FieldError("from_version", "is newer than to_version");
  }
  if (query.from_time && query.to_time && *query.from_time > *query.to_time) {
    return FieldError("from_time", "is later than to_time");
  }
  return absl::OkStatus();
}

absl::Status FillPlace(const wire::HistoryRequest& request, versioning::HistoryQuery& query) {
  if (request.page_token().empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      const std::string place,
      ReadPageToken(kHistoryMethod, PageScope(request, query.filter), request.page_token()));
  std::string_view rest = place;
  const auto incarnation = TakePlaceNumber(rest);
  query.resume_at = TakePlaceNumber(rest);
  if (!incarnation || *incarnation < 1 || !query.resume_at || *query.resume_at < 1 ||
      !rest.empty()) {
    return InvalidPageToken("names no version");
  }
  query.incarnation = *incarnation;
  return absl::OkStatus();
}

absl::StatusOr<versioning::HistoryQuery> ToQuery(const wire::HistoryRequest& request) {
  versioning::HistoryQuery query;
  query.name = {request.collection(), request.id()};
  query.oldest_first = request.oldest_first();
  query.include_content = request.include_content();
  query.include_changes = request.include_changes();
  RETURN_IF_ERROR(FillBounds(request, query));
  ASSIGN_OR_RETURN(query.filter, ToFilter("filter", request.filter()));
  RETURN_IF_ERROR(FillPlace(request, query));
  return query;
}

std::string TokenFor(const wire::HistoryRequest& request, const versioning::HistoryQuery& query,
                     int64_t incarnation, int64_t version) {
  std::string place;
  AppendPlaceNumber(incarnation, place);
  AppendPlaceNumber(version, place);
  return MakePageToken(kHistoryMethod, PageScope(request, query.filter), place);
}

}  // namespace

absl::Status History(const Context& context, const wire::HistoryRequest& request,
                     wire::HistoryResponse& response) {
  RETURN_IF_ERROR(CheckEncoding(request.encoding()));
  ASSIGN_OR_RETURN(const int page_size, ToPageSize(request.page_size()));
  ASSIGN_OR_RETURN(versioning::HistoryQuery query, ToQuery(request));
  query.page_size = page_size;
  query.stopped = OnceClosed(context.call);
  versioning::HistoryCursor versions = context.services.documents.History(std::move(query));
  const auto fill = [&](wire::Version& item) {
    const versioning::StoredVersion& version = versions.version();
    FillVersion(version, item);
    if (version.content) {
      FillContent(*version.content, request.encoding(), *item.mutable_content());
    }
    FillChanges(versions.changes(), item);
  };
  RETURN_IF_ERROR(FillPage(versions, context.call, page_size, *response.mutable_versions(), fill));
  if (const std::optional<int64_t> next = versions.resume_at()) {
    response.set_next_page_token(
        TokenFor(request, versions.query(), versions.incarnation(), *next));
  }
  return absl::OkStatus();
}

}  // namespace strata::rpc::document_service
