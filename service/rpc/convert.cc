#include "service/rpc/convert.h"

#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"
#include "schemas/document/struct_codec.h"
#include "service/rpc/answer_size.h"

namespace strata::rpc {
namespace {

constexpr int kFieldsMax = 100;
constexpr int kMaxAttemptsMax = 100;
constexpr int kMaxAttemptsDefault = 16;

// For a filter's form as JSON, before the filter's own limits: a Struct takes up to four times the
// bytes of its BSON, and operators nest besides values.
constexpr document::Limits kFilterLimits{.bytes_max = 4 * document::Filter::kBytesMax,
                                         .depth_max = 64};

// The range of google.protobuf.Timestamp: the years 1 to 9999.
constexpr int64_t kSecondsMin = -62'135'596'800;
constexpr int64_t kSecondsMax = 253'402'300'799;

}  // namespace

absl::Status CheckEncoding(wire::Encoding encoding) {
  if (wire::Encoding_IsValid(encoding)) return absl::OkStatus();
  return FieldError("encoding", "is " + std::to_string(encoding) +
                                    ", which is neither ENCODING_JSON (1) nor ENCODING_BSON (2)");
}

absl::StatusOr<UnixMicros> ToMicros(std::string_view field, const google::protobuf::Timestamp& time,
                                    Round round) {
  if (time.seconds() < kSecondsMin || time.seconds() > kSecondsMax || time.nanos() < 0 ||
      time.nanos() > 999'999'999) {
    return FieldError(
        field, "is no time between the years 1 and 9999, or its nanos are not 0 to 999999999");
  }
  const int32_t nanos = time.nanos() + (round == Round::kUp ? 999 : 0);
  return time.seconds() * 1'000'000 + nanos / 1000;
}

absl::StatusOr<document::Content> ToContent(std::string_view field, const wire::Content& content,
                                            const document::Limits& limits) {
  absl::StatusOr<document::Content> made;
  switch (content.body_case()) {
    case wire::Content::kJson:
      made = document::ContentFromStruct(content.json(), limits);
      break;
    case wire::Content::kBson:
      made = document::Content::FromBson(content.bson(), limits);
      break;
    case wire::Content::BODY_NOT_SET:
      return FieldError(field, "is required: json or bson");
  }
  if (!made.ok()) return InField(made.status(), field);
  return made;
}

namespace {

absl::StatusOr<document::Operation> ToOperation(std::string_view field,
                                                const wire::Operation& operation,
                                                const document::Limits& limits) {
  using document::OperationKind;
  document::Operation made;
  auto path = document::Path::Parse(operation.path());
  if (!path.ok()) return InField(path.status(), Inside(field, "path"));
  made.path = *std::move(path);
  absl::StatusOr<document::Value> operand = document::Value();
  std::string_view name;
  const auto take = [&](std::string_view member, OperationKind kind, auto&& value) {
    name = member;
    made.kind = kind;
    operand = std::forward<decltype(value)>(value);
  };
  switch (operation.op_case()) {
    case wire::Operation::kSet:
      take("set", OperationKind::kSet, document::ValueFromProto(operation.set(), limits));
      break;
    case wire::Operation::kUnset:
      if (!operation.unset())
        return FieldError(Inside(field, "unset"), "is false; true removes the member");
      made.kind = OperationKind::kUnset;
      break;
    case wire::Operation::kIncrement:
      take("increment", OperationKind::kIncrement,
           document::ValueFromProto(operation.increment(), limits));
      break;
    case wire::Operation::kAppend:
      take("append", OperationKind::kAppend,
           document::ArrayFromListValue(operation.append(), limits));
      break;
    case wire::Operation::kAppendMissing:
      take("append_missing", OperationKind::kAppendMissing,
           document::ArrayFromListValue(operation.append_missing(), limits));
      break;
    case wire::Operation::kRemoveAll:
      take("remove_all", OperationKind::kRemoveAll,
           document::ArrayFromListValue(operation.remove_all(), limits));
      break;
    case wire::Operation::OP_NOT_SET:
      return FieldError(field,
                        "has no operation: set, unset, increment, append, append_missing or "
                        "remove_all");
  }
  if (!operand.ok()) return InField(operand.status(), Inside(field, name));
  made.operand = *std::move(operand);
  return made;
}

}  // namespace

absl::StatusOr<document::Patch> ToPatch(std::string_view field, const wire::Patch& patch,
                                        const document::Limits& limits) {
  document::Patch made;
  const std::string operations = Inside(field, "operations");
  RETURN_IF_ERROR(CheckLength(operations, patch.operations(), document::Patch::kOperationsMax));
  if (patch.has_merge()) {
    ASSIGN_OR_RETURN(made.merge, ToContent(Inside(field, "merge"), patch.merge(), limits));
  }
  for (int i = 0; i < patch.operations_size(); ++i) {
    ASSIGN_OR_RETURN(
        document::Operation operation,
        ToOperation(Element(operations, static_cast<size_t>(i)), patch.operations(i), limits));
    made.operations.push_back(std::move(operation));
  }
  return made;
}

absl::StatusOr<versioning::Documents::NewContent> ToNewContent(const wire::UpdateRequest& request,
                                                               const document::Limits& limits) {
  switch (request.new_content_case()) {
    case wire::UpdateRequest::kReplace:
      return ToContent("replace", request.replace(), limits);
    case wire::UpdateRequest::kPatch:
      return ToPatch("patch", request.patch(), limits);
    case wire::UpdateRequest::NEW_CONTENT_NOT_SET:
      break;
  }
  return FieldError("new_content", "is required: replace or patch");
}

absl::StatusOr<std::vector<document::Path>> ToPaths(
    std::string_view field, const google::protobuf::RepeatedPtrField<std::string>& paths) {
  RETURN_IF_ERROR(CheckLength(field, paths, kFieldsMax));
  std::vector<document::Path> made;
  for (int i = 0; i < paths.size(); ++i) {
    auto path = document::Path::Parse(paths[i]);
    if (!path.ok()) return InField(path.status(), Element(field, static_cast<size_t>(i)));
    made.push_back(*std::move(path));
  }
  return made;
}

namespace {

struct ParsedFilter {
  document::Content content;
  document::Filter compiled;
};

absl::StatusOr<ParsedFilter> ParseFilter(std::string_view field, std::string_view struct_wire) {
  absl::StatusOr<document::Content> content =
      document::ContentFromStruct(struct_wire, kFilterLimits);
  if (!content.ok()) {
    Error error(ErrorReason::kInvalidFilter, ToStd(content.status().message()));
    for (const auto& [key, value] : MetadataOf(content.status())) error.With(key, value);
    return InField(error, field);
  }
  absl::StatusOr<document::Filter> filter = document::Filter::Compile(*content);
  if (!filter.ok()) return InField(filter.status(), field);
  return ParsedFilter{*std::move(content), *std::move(filter)};
}

}  // namespace

absl::StatusOr<std::optional<document::Filter>> ToFilter(std::string_view field,
                                                         std::string_view struct_wire) {
  if (struct_wire.empty()) return std::nullopt;
  ASSIGN_OR_RETURN(ParsedFilter filter, ParseFilter(field, struct_wire));
  return std::move(filter.compiled);
}

absl::StatusOr<std::optional<document::Content>> ToFilterContent(std::string_view field,
                                                                 std::string_view struct_wire) {
  if (struct_wire.empty()) return std::nullopt;
  ASSIGN_OR_RETURN(ParsedFilter filter, ParseFilter(field, struct_wire));
  return std::move(filter.content);
}

absl::StatusOr<versioning::Precondition> ToPrecondition(std::string_view field,
                                                        const wire::Precondition& precondition) {
  versioning::Precondition made;
  switch (precondition.condition_case()) {
    case wire::Precondition::kVersion:
      if (precondition.version() < 0) {
        return FieldError(Inside(field, "version"),
                          "is negative; 0 asks for a document that was never written");
      }
      made.version = precondition.version();
      break;
    case wire::Precondition::kExists:
      made.exists = precondition.exists();
      break;
    case wire::Precondition::kFilter: {
      ASSIGN_OR_RETURN(ParsedFilter filter,
                       ParseFilter(Inside(field, "filter"), precondition.filter()));
      made.filter = std::move(filter.compiled);
      break;
    }
    case wire::Precondition::kNewer: {
      auto newer =
          versioning::Newer::Make(precondition.newer().path(), precondition.newer().value());
      if (!newer.ok()) return InField(newer.status(), Inside(field, "newer"));
      made.newer = *std::move(newer);
      break;
    }
    case wire::Precondition::CONDITION_NOT_SET:
      break;
  }
  return made;
}

absl::StatusOr<versioning::ChangeInfo> ToChangeInfo(const wire::ChangeInfo& change,
                                                    std::string_view collection,
                                                    security::Access& access,
                                                    const server::CallInfo& info) {
  const security::Identity& identity = *info.identity;
  const security::Resource resource{security::ResourceKind::kCollection, collection};
  versioning::ChangeInfo made;
  made.actor = change.actor();
  made.on_behalf_of = change.on_behalf_of();
  if (!identity.principal.empty()) {
    if (!made.on_behalf_of.empty()) {
      RETURN_IF_ERROR(access.AuthorizeActingFor(identity, resource, made.on_behalf_of,
                                                "change.on_behalf_of", info.peer));
    }
    if (!made.actor.empty() && made.actor != identity.principal) {
      RETURN_IF_ERROR(
          access.AuthorizeActingFor(identity, resource, made.actor, "change.actor", info.peer));
      if (made.on_behalf_of.empty()) made.on_behalf_of = made.actor;
    }
    made.actor = identity.principal;
  }
  made.reason = change.reason();
  made.labels.insert(change.labels().begin(), change.labels().end());
  return made;
}

absl::StatusOr<int> ToMaxAttempts(std::string_view field, int32_t max_attempts) {
  if (max_attempts == 0) return kMaxAttemptsDefault;
  RETURN_IF_ERROR(CheckRange(field, max_attempts, 1, kMaxAttemptsMax));
  return max_attempts;
}

absl::StatusOr<versioning::WriteRequest> MakeWriteRequest(
    const std::string& collection, const std::string& id, const wire::Precondition* precondition,
    int32_t max_attempts, const wire::ChangeInfo& change, const std::string& request_id,
    bool validate_only, const Context& context) {
  const Call& call = context.call;
  versioning::WriteRequest made;
  made.name = {collection, id};
  ASSIGN_OR_RETURN(made.change,
                   ToChangeInfo(change, collection, context.services.access, call.info()));
  if (precondition != nullptr) {
    ASSIGN_OR_RETURN(made.precondition, ToPrecondition("precondition", *precondition));
  }
  ASSIGN_OR_RETURN(made.max_attempts, ToMaxAttempts("max_attempts", max_attempts));
  made.request_id = request_id;
  made.validate_only = validate_only;
  made.deadline = call.deadline();
  made.waiter = &call;
  made.brief = !call.at_length();
  return made;
}

absl::Status ReserveForContent(const Call& call, size_t content_bytes) {
  const size_t answer = AnswerBytesOf(content_bytes);
  return answer <= kSmallAnswerBytes ? absl::OkStatus() : call.Reserve(answer);
}

void FillTimestamp(UnixMicros time, google::protobuf::Timestamp& wire_time) {
  int64_t seconds = time / 1'000'000;
  int64_t micros = time % 1'000'000;
  if (micros < 0) {
    --seconds;
    micros += 1'000'000;
  }
  wire_time.set_seconds(seconds);
  wire_time.set_nanos(static_cast<int32_t>(micros) * 1000);
}

namespace {

// What a setter does with a view, but for the string that it makes of it first.
void Assign(std::string_view text, std::string& field) { field.assign(text.data(), text.size()); }

}  // namespace

void FillContent(const document::Content& content, wire::Encoding encoding,
                 wire::Content& wire_content) {
  if (encoding == wire::ENCODING_BSON) {
    Assign(content.bytes(), *wire_content.mutable_bson());
  } else {
    document::AppendStruct(content, *wire_content.mutable_json());
  }
}

void FillDocument(std::string_view collection, std::string_view id,
                  const versioning::StoredVersion& version, wire::Document& wire_document) {
  Assign(collection, *wire_document.mutable_collection());
  Assign(id, *wire_document.mutable_id());
  wire_document.set_version(version.header.version);
  FillTimestamp(version.header.create_time, *wire_document.mutable_create_time());
  FillTimestamp(version.header.commit_time, *wire_document.mutable_update_time());
  if (version.pending_transaction_id.empty()) return;  // to set it would make room for it
  wire_document.set_pending_transaction_id(version.pending_transaction_id);
}

void FillChangeInfo(const versioning::ChangeInfo& change, wire::ChangeInfo& wire_change) {
  wire_change.set_actor(change.actor);
  wire_change.set_on_behalf_of(change.on_behalf_of);
  wire_change.set_reason(change.reason);
  wire_change.mutable_labels()->insert(change.labels.begin(), change.labels.end());
}

void FillVersion(const versioning::StoredVersion& version, wire::Version& wire_version) {
  const versioning::VersionHeader& header = version.header;
  wire_version.set_version(header.version);
  wire_version.set_kind(static_cast<wire::VersionKind>(header.kind));
  FillTimestamp(header.commit_time, *wire_version.mutable_commit_time());
  if (header.change != versioning::ChangeInfo()) {
    FillChangeInfo(header.change, *wire_version.mutable_change());
  }
  wire_version.set_request_id(header.request_id);
  wire_version.set_transaction_id(header.transaction_id);
  // A ledger entry whose collection is gone has none.
  if (header.content_hash == document::Hash() && header.chain_hash == document::Hash()) return;
  Assign(document::HashBytes(header.content_hash), *wire_version.mutable_content_hash());
  Assign(document::HashBytes(header.chain_hash), *wire_version.mutable_chain_hash());
}

void FillChange(const document::FieldChange& change, wire::FieldChange& wire_change) {
  wire_change.set_path(change.path);
  switch (change.type) {
    case document::ChangeType::kAdded:
      wire_change.set_type(wire::CHANGE_TYPE_ADDED);
      break;
    case document::ChangeType::kRemoved:
      wire_change.set_type(wire::CHANGE_TYPE_REMOVED);
      break;
    case document::ChangeType::kChanged:
      wire_change.set_type(wire::CHANGE_TYPE_CHANGED);
      break;
  }
  // In the wire view a message field is bytes, which has no presence of its own: AppendValue
  // writes at least the kind of a value, so what is there is never empty.
  if (change.before) document::AppendValue(*change.before, *wire_change.mutable_before());
  if (change.after) document::AppendValue(*change.after, *wire_change.mutable_after());
  wire_change.set_values_omitted(change.values_omitted);
}

void FillChanges(const document::Changes& changes, wire::Version& wire_version) {
  for (const document::FieldChange& change : changes.list) {
    FillChange(change, *wire_version.add_changes());
  }
  wire_version.set_changes_truncated(changes.truncated);
}

versioning::StrategyOptions ToOptions(const wire::CollectionOptions& options) {
  const google::protobuf::Reflection& reflection = *options.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> set;
  reflection.ListFields(options, &set);
  versioning::StrategyOptions made;
  for (const auto* const field : set) {
    made.emplace(field->name(), reflection.GetInt32(options, field));
  }
  return made;
}

void FillApplyError(const absl::Status& status, wire::ApplyError& error) {
  const ErrorReason reason = ReasonOf(status).value_or(ErrorReason::kInternal);
  error.set_code(static_cast<int32_t>(status.code()));
  error.set_reason(std::string(ReasonName(reason)));
  if (reason == ErrorReason::kInternal) return error.set_message("a bug in the server");
  error.set_message(std::string(ToStd(status.message())));
  for (const auto& [key, value] : MetadataOf(status)) (*error.mutable_metadata())[key] = value;
}

void FillCollection(const versioning::Collection& collection, wire::Collection& wire_collection) {
  wire_collection.set_name(collection.name);
  wire_collection.set_incarnation(collection.incarnation);
  wire_collection.set_strategy(static_cast<wire::Strategy>(collection.strategy_entry->id));
  wire::CollectionOptions& options = *wire_collection.mutable_options();
  for (const auto& [name, value] : collection.options) {
    const auto* const field = wire::CollectionOptions::descriptor()->FindFieldByName(name);
    options.GetReflection()->SetInt32(&options, field, value);
  }
  FillTimestamp(collection.create_time, *wire_collection.mutable_create_time());
}

document::Content Projected(const document::Content& content,
                            const std::vector<document::Path>& paths) {
  return paths.empty() ? content : document::Project(content, paths);
}

}  // namespace strata::rpc
