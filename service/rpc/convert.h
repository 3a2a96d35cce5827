// Between messages of the wire view and the domain's types. Whatever is wrong with a request is
// named by its proto field in the error's metadata "field" ("patch.operations[2].path").
#pragma once

#include <google/protobuf/timestamp.pb.h>
#include <strata/wire/v1/collection_service.pb.h>
#include <strata/wire/v1/document.pb.h>
#include <strata/wire/v1/document_service.pb.h>
#include <strata/wire/v1/enrollment_service.pb.h>
#include <strata/wire/v1/transaction_service.pb.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/field_checks.h"
#include "schemas/base/status_macros.h"
#include "schemas/versioning/documents.h"
#include "service/rpc/context.h"

namespace strata::rpc {

namespace wire = ::strata::wire::v1;

// A list is counted before it is converted: what is made of it may take many times its bytes.
template <typename List>
absl::Status CheckLength(std::string_view field, const List& list, size_t most) {
  return CheckCount(field, static_cast<size_t>(list.size()), most);
}

// INVALID_FIELD unless it is a value of the enum that has a meaning.
absl::Status CheckEncoding(wire::Encoding encoding);

// To the domain. A time between two microseconds becomes the earlier or the later one.
enum class Round { kDown, kUp };
absl::StatusOr<UnixMicros> ToMicros(std::string_view field, const google::protobuf::Timestamp& time,
                                    Round round);
// INVALID_FIELD without content.
absl::StatusOr<document::Content> ToContent(std::string_view field, const wire::Content& content,
                                            const document::Limits& limits);
absl::StatusOr<document::Patch> ToPatch(std::string_view field, const wire::Patch& patch,
                                        const document::Limits& limits);
// What an update makes of the content; without either INVALID_FIELD.
absl::StatusOr<versioning::Documents::NewContent> ToNewContent(const wire::UpdateRequest& request,
                                                               const document::Limits& limits);
absl::StatusOr<std::vector<document::Path>> ToPaths(
    std::string_view field, const google::protobuf::RepeatedPtrField<std::string>& paths);
// A google.protobuf.Struct on the wire; no bytes: no filter. INVALID_FILTER.
absl::StatusOr<std::optional<document::Filter>> ToFilter(std::string_view field,
                                                         std::string_view struct_wire);
// The same as what it is made of, for those who keep it.
absl::StatusOr<std::optional<document::Content>> ToFilterContent(std::string_view field,
                                                                 std::string_view struct_wire);
absl::StatusOr<versioning::Precondition> ToPrecondition(std::string_view field,
                                                        const wire::Precondition& precondition);
// Whoever calls is the actor; where nobody is vouched for, whom the change names. A change may name
// others, as actor or on_behalf_of, if the caller may act for them: the caller is the actor then,
// and on_behalf_of the other. ACT_FOR_DENIED.
absl::StatusOr<versioning::ChangeInfo> ToChangeInfo(const wire::ChangeInfo& change,
                                                    std::string_view collection,
                                                    security::Access& access,
                                                    const server::CallInfo& info);
absl::StatusOr<int> ToMaxAttempts(std::string_view field, int32_t max_attempts);

// What every write request has; Create lacks some.
template <typename Request>
absl::StatusOr<versioning::WriteRequest> ToWriteRequest(const Request& request,
                                                        const Context& context);

// From the domain.
void FillTimestamp(UnixMicros time, google::protobuf::Timestamp& wire_time);
void FillContent(const document::Content& content, wire::Encoding encoding,
                 wire::Content& wire_content);
void FillDocument(std::string_view collection, std::string_view id,
                  const versioning::StoredVersion& version, wire::Document& wire_document);
void FillChangeInfo(const versioning::ChangeInfo& change, wire::ChangeInfo& wire_change);
void FillVersion(const versioning::StoredVersion& version, wire::Version& wire_version);
void FillChange(const document::FieldChange& change, wire::FieldChange& wire_change);
void FillChanges(const document::Changes& changes, wire::Version& wire_version);
// Those that are set, by the names of their fields.
versioning::StrategyOptions ToOptions(const wire::CollectionOptions& options);
// What a call of its own would have ended with. REQUIRES: `status` is not OK.
void FillApplyError(const absl::Status& status, wire::ApplyError& error);
void FillCollection(const versioning::Collection& collection, wire::Collection& wire_collection);

// Only the members that `paths` name; all if there are none.
document::Content Projected(const document::Content& content,
                            const std::vector<document::Path>& paths);

// The answer to a write: CreateResponse and its like.
template <typename Response>
void FillWriteResponse(const versioning::WriteResult& result, Response& response) {
  FillDocument(result.name.collection, result.name.id, result.version,
               *response.mutable_document());
  response.set_attempts(result.attempts);
  response.set_changed(result.changed);
  response.set_replayed(result.replayed);
  if constexpr (requires { response.set_stale(true); }) response.set_stale(result.stale);
  response.set_commit_position(result.position);
}

// Not for callers: ToWriteRequest's rules.
absl::StatusOr<versioning::WriteRequest> MakeWriteRequest(
    const std::string& collection, const std::string& id, const wire::Precondition* precondition,
    int32_t max_attempts, const wire::ChangeInfo& change, const std::string& request_id,
    bool validate_only, const Context& context);

// Has a write commit only while its writer holds the lease. INVALID_NAME, INVALID_FIELD.
absl::Status JoinFence(const wire::LeaseToken& lease, const Context& context,
                       std::vector<store::JoinedPlan>& joined);

// Keeps room for an answer with a content of so many bytes, if it is larger than usual. OVERLOADED.
absl::Status ReserveForContent(const Call& call, size_t content_bytes);

template <typename Request>
absl::StatusOr<versioning::WriteRequest> ToWriteRequest(const Request& request,
                                                        const Context& context) {
  const wire::Precondition* precondition = nullptr;
  int32_t max_attempts = 0;
  if constexpr (requires { request.precondition(); }) {
    if (request.has_precondition()) precondition = &request.precondition();
    max_attempts = request.max_attempts();
  }
  auto made =
      MakeWriteRequest(request.collection(), request.id(), precondition, max_attempts,
                       request.change(), request.request_id(), request.validate_only(), context);
  if constexpr (requires { request.keep_unchanged(); }) {
    if (made.ok()) made->keep_unchanged = request.keep_unchanged();
  }
  if constexpr (requires { request.lease(); }) {
    if (made.ok() && request.has_lease()) {
      RETURN_IF_ERROR(JoinFence(request.lease(), context, made->joined));
    }
  }
  if constexpr (requires { request.omit_content(); }) {
    if (made.ok() && !request.omit_content()) {
      // The call lives until the write is answered.
      made->admit_content = [&call = context.call](const document::Content& content) {
        return ReserveForContent(call, content.size());
      };
    }
  }
  return made;
}

}  // namespace strata::rpc
