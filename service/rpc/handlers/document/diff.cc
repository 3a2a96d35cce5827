#include <limits>

#include "schemas/base/status_macros.h"
#include "service/rpc/page.h"
#include "service/rpc/page_token.h"

namespace strata::rpc::document_service {
namespace {

constexpr std::string_view kDiffMethod = "Diff";

// Versions of one collection never change, so a place is the collection, the newer side's number
// and how many changes came before.
absl::Status FillPlace(const wire::DiffRequest& request, versioning::DiffQuery& query) {
  if (request.page_token().empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string place,
                   ReadPageToken(kDiffMethod, PageScope(request), request.page_token()));
  std::string_view rest = place;
  const auto incarnation = TakePlaceNumber(rest);
  const auto to_version = TakePlaceNumber(rest);
  const auto skip = TakePlaceNumber(rest);
  if (!incarnation || *incarnation < 1 || !to_version || *to_version < 1 || !skip || *skip < 0 ||
      !rest.empty()) {
    return InvalidPageToken("names no position among the changes");
  }
  query.incarnation = *incarnation;
  query.to_version = *to_version;
  query.skip = *skip;
  return absl::OkStatus();
}

absl::StatusOr<versioning::DiffQuery> ToQuery(const wire::DiffRequest& request) {
  if (request.from_version() < 1) return FieldError("from_version", "is required, from 1");
  if (request.to_version() < 0) {
    return FieldError("to_version", "is negative; leave it out for the current version");
  }
  versioning::DiffQuery query{
      {request.collection(), request.id()}, request.from_version(), request.to_version()};
  RETURN_IF_ERROR(FillPlace(request, query));
  return query;
}

// Changes are mostly small, so a page has as many as fit unless the request wants fewer.
absl::StatusOr<int> ToChangesMax(const wire::DiffRequest& request) {
  if (request.page_size() == 0) return std::numeric_limits<int>::max();
  return ToPageSize(request.page_size());
}

std::string TokenFor(const wire::DiffRequest& request, const versioning::DiffEnd& end,
                     int64_t skip) {
  std::string place;
  AppendPlaceNumber(end.incarnation, place);
  AppendPlaceNumber(end.to_version, place);
  AppendPlaceNumber(skip, place);
  return MakePageToken(kDiffMethod, PageScope(request), place);
}

}  // namespace

absl::Status Diff(const Context& context, const wire::DiffRequest& request,
                  wire::DiffResponse& response) {
  ASSIGN_OR_RETURN(const int changes_max, ToChangesMax(request));
  ASSIGN_OR_RETURN(versioning::DiffQuery query, ToQuery(request));
  query.stopped = OnceClosed(context.call);
  PageMeter meter(changes_max);
  const auto take = [&](document::FieldChange&& change) {
    if (context.call.closed() || meter.full()) return false;
    FillChange(change, *response.add_changes());
    return TakeLast(meter, *response.mutable_changes());
  };
  ASSIGN_OR_RETURN(const versioning::DiffEnd end, context.services.documents.Diff(query, take));
  response.set_from_version(end.from_version);
  response.set_to_version(end.to_version);
  if (end.complete) return absl::OkStatus();
  const int64_t taken = query.skip + response.changes_size();
  response.set_next_page_token(TokenFor(request, end, taken));
  return absl::OkStatus();
}

}  // namespace strata::rpc::document_service
