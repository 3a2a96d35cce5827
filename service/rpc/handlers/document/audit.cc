#include <limits>

#include "schemas/base/status_macros.h"
#include "schemas/transaction/attempt.h"
#include "service/rpc/page.h"
#include "service/rpc/page_token.h"

namespace strata::rpc::document_service {
namespace {

constexpr std::string_view kAuditMethod = "Audit";

absl::Status FillFilter(const wire::AuditRequest& request, versioning::AuditQuery& query) {
  for (int i = 0; i < request.kinds_size(); ++i) {
    const wire::VersionKind kind = request.kinds(i);
    if (kind == wire::VERSION_KIND_UNSPECIFIED || !wire::VersionKind_IsValid(kind)) {
      return FieldError("kinds[" + std::to_string(i) + "]",
                        "is no kind of version; leave kinds out for all of them");
    }
    query.kinds.push_back(static_cast<versioning::VersionKind>(kind));
  }
  if (request.has_start_time()) {
    ASSIGN_OR_RETURN(query.start_time, ToMicros("start_time", request.start_time(), Round::kUp));
  }
  if (request.has_end_time()) {
    ASSIGN_OR_RETURN(query.end_time, ToMicros("end_time", request.end_time(), Round::kUp));
  }
  if (query.start_time && query.end_time && *query.start_time >= *query.end_time) {
    return FieldError("start_time", "is not before end_time, which is exclusive");
  }
  return absl::OkStatus();
}

absl::Status FillPlace(const wire::AuditRequest& request, versioning::AuditQuery& query) {
  if (request.page_token().empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string place,
                   ReadPageToken(kAuditMethod, PageScope(request), request.page_token()));
  std::string_view rest = place;
  const auto position = TakePlaceNumber(rest);
  const auto index = TakePlaceNumber(rest);
  const auto version = TakePlaceNumber(rest);
  const auto incarnation = TakePlaceNumber(rest);
  if (!position || !index || !version || !incarnation || !rest.empty() || *position < 0 ||
      *index < 0 || *index > std::numeric_limits<uint32_t>::max() || *version < 0 ||
      *incarnation < 0) {
    return InvalidPageToken("names no position in the ledger");
  }
  query.resume_at = {*position, static_cast<uint32_t>(*index), *version, *incarnation};
  return absl::OkStatus();
}

absl::StatusOr<versioning::AuditQuery> ToQuery(const wire::AuditRequest& request,
                                               std::string_view principal) {
  versioning::AuditQuery query;
  query.collection = request.collection();
  query.id = request.id();
  query.actor = request.actor();
  query.request_id = request.request_id();
  if (!request.transaction_id().empty()) {
    query.transaction_ids = {request.transaction_id()};
    // The caller's own transaction of that request id.
    if (!principal.empty() && ValidateRequestId(request.transaction_id()).ok()) {
      query.transaction_ids.push_back(transaction::IdOf(request.transaction_id(), principal));
    }
  }
  query.newest_first = request.newest_first();
  query.include_changes = request.include_changes();
  RETURN_IF_ERROR(FillFilter(request, query));
  RETURN_IF_ERROR(FillPlace(request, query));
  return query;
}

std::string TokenFor(const wire::AuditRequest& request, const versioning::LedgerPlace& at) {
  std::string place;
  AppendPlaceNumber(at.position, place);
  AppendPlaceNumber(at.index, place);
  AppendPlaceNumber(at.version, place);
  AppendPlaceNumber(at.incarnation, place);
  return MakePageToken(kAuditMethod, PageScope(request), place);
}

void FillEntry(const versioning::AuditRow& row, wire::AuditEntry& entry) {
  entry.set_commit_position(row.place.position);
  entry.set_index(static_cast<int32_t>(row.place.index));
  entry.set_collection(row.collection);
  entry.set_id(row.id);
  FillVersion(row.version, *entry.mutable_version());
  FillChanges(row.changes, *entry.mutable_version());
}

}  // namespace

absl::Status Audit(const Context& context, const wire::AuditRequest& request,
                   wire::AuditResponse& response) {
  ASSIGN_OR_RETURN(const int page_size, ToPageSize(request.page_size()));
  ASSIGN_OR_RETURN(versioning::AuditQuery query,
                   ToQuery(request, context.call.info().identity->principal));
  query.stopped = OnceClosed(context.call);
  versioning::AuditCursor rows = context.services.documents.Audit(std::move(query));
  const auto fill = [&](wire::AuditEntry& entry) { FillEntry(rows.row(), entry); };
  RETURN_IF_ERROR(FillPage(rows, context.call, page_size, *response.mutable_entries(), fill));
  if (const std::optional<versioning::LedgerPlace> next = rows.resume_at()) {
    response.set_next_page_token(TokenFor(request, *next));
  }
  return absl::OkStatus();
}

}  // namespace strata::rpc::document_service
