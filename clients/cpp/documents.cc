// The calls of DocumentService, and Modify on top of them.
#include "strata/client/documents.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "clients/cpp/json_value.h"
#include "clients/cpp/requests.h"
#include "clients/cpp/write_parts.h"
#include "strata/client/feed.h"
#include "strata/v1/document_service.grpc.pb.h"

namespace strata::client {
namespace {

using DocumentStub = v1::DocumentService::Stub;

absl::Time TimeOf(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

// By hand, as every call goes through it.
absl::StatusOr<Document> DocumentOf(v1::Document& message) {
  Document document;
  document.collection = std::move(*message.mutable_collection());
  document.id = std::move(*message.mutable_id());
  document.version = message.version();
  if (message.has_create_time()) document.create_time = TimeOf(message.create_time());
  if (message.has_update_time()) document.update_time = TimeOf(message.update_time());
  document.pending_transaction_id = std::move(*message.mutable_pending_transaction_id());
  if (message.content().body_case() == v1::Content::BODY_NOT_SET) return document;
  const v1::Content& content = message.content();
  absl::StatusOr<Value> value =
      content.has_bson() ? FromBson(content.bson()) : FromJson(content.json());
  if (!value.ok()) {
    return absl::InternalError("the server's answer is damaged: " +
                               std::string(value.status().message()));
  }
  document.content = *std::move(value);
  return document;
}

// Of the answers of Create, Update, Delete and Restore.
template <typename Request, typename Response>
absl::StatusOr<Written> WrittenOf(const Request& request, absl::Status status, Response& response) {
  if constexpr (!std::is_same_v<Request, v1::CreateRequest>) {
    status = OfDocument(request.collection(), request.id(), std::move(status));
  }
  if (!status.ok()) return status;
  absl::StatusOr<Document> document = DocumentOf(*response.mutable_document());
  if (!document.ok()) return document.status();
  Written written;
  written.document = *std::move(document);
  written.attempts = response.attempts();
  written.changed = response.changed();
  written.replayed = response.replayed();
  if constexpr (requires { response.stale(); }) written.stale = response.stale();
  written.commit_position = response.commit_position();
  return written;
}

bool IsMissing(Reason reason) {
  return reason == Reason::kDocumentNotFound || reason == Reason::kDocumentDeleted ||
         reason == Reason::kCollectionNotFound;
}

absl::StatusOr<std::optional<Document>> FoundOf(const v1::GetRequest& request, absl::Status status,
                                                v1::GetResponse& response) {
  const bool past = request.at_case() != v1::GetRequest::AT_NOT_SET;
  if (!past && IsMissing(ReasonOf(status))) return std::optional<Document>();
  if (!status.ok()) return status;
  absl::StatusOr<Document> document = DocumentOf(*response.mutable_document());
  if (!document.ok()) return document.status();
  return std::optional<Document>(*std::move(document));
}

template <typename T>
std::future<absl::StatusOr<T>> Ready(absl::Status status) {
  std::promise<absl::StatusOr<T>> promise;
  promise.set_value(std::move(status));
  return promise.get_future();
}

absl::StatusOr<v1::CreateRequest> CreateOf(const Core& core, const std::string& collection,
                                           const std::string& id, const Value& content,
                                           const CreateOptions& options) {
  v1::CreateRequest request;
  absl::Status status = FillRequest(core, options, request);
  status.Update(FillCreate(collection, id, content, request));
  if (!status.ok()) return status;
  return request;
}

absl::StatusOr<v1::GetRequest> GetOf(const Core& core, const std::string& collection,
                                     const std::string& id, const GetOptions& options) {
  v1::GetRequest request;
  absl::Status status = FillRequest(core, options, request);
  if (!status.ok()) return status;
  request.set_collection(collection);
  request.set_id(id);
  return request;
}

absl::StatusOr<v1::UpdateRequest> UpdateOf(const Core& core, const std::string& collection,
                                           const std::string& id, const Change& change,
                                           const UpdateOptions& options) {
  v1::UpdateRequest request;
  absl::Status status = FillRequest(core, options, request);
  status.Update(FillUpdate(collection, id, change, request));
  if (!status.ok()) return status;
  return request;
}

absl::StatusOr<v1::DeleteRequest> DeleteOf(const Core& core, const std::string& collection,
                                           const std::string& id, const DeleteOptions& options) {
  v1::DeleteRequest request;
  absl::Status status = FillRequest(core, options, request);
  if (!status.ok()) return status;
  request.set_collection(collection);
  request.set_id(id);
  return request;
}

absl::StatusOr<v1::RestoreRequest> RestoreOf(const Core& core, const std::string& collection,
                                             const std::string& id, int64_t version,
                                             const RestoreOptions& options) {
  v1::RestoreRequest request;
  absl::Status status = FillRequest(core, options, request);
  if (!status.ok()) return status;
  request.set_collection(collection);
  request.set_id(id);
  request.set_version(version);
  return request;
}

// What Modify found: the content if there is one, and the version that its write builds on.
struct Found {
  std::optional<Document> document;
  int64_t version = 0;
};

absl::StatusOr<Found> ReadForModify(Core& core, const std::string& collection,
                                    const std::string& id) {
  absl::StatusOr<v1::GetRequest> request = GetOf(core, collection, id, {});
  if (!request.ok()) return request.status();
  v1::GetResponse response;
  const absl::Status status = core.Call(&DocumentStub::Get, *request, &response);
  if (status.ok()) {
    absl::StatusOr<Document> document = DocumentOf(*response.mutable_document());
    if (!document.ok()) return document.status();
    const int64_t version = document->version;
    return Found{.document = *std::move(document), .version = version};
  }
  const Error error = ErrorOf(status);
  if (!IsMissing(error.reason)) return status;
  // That of the deletion.
  const auto version = error.metadata.find("version");
  if (version == error.metadata.end()) return Found{};
  return Found{.document = {}, .version = std::strtoll(version->second.c_str(), nullptr, 10)};
}

UpdateOptions OptionsOf(const ModifyOptions& options, int64_t version) {
  UpdateOptions update;
  update.if_version = version;
  update.allow_missing = true;
  update.actor = options.actor;
  update.on_behalf_of = options.on_behalf_of;
  update.reason = options.reason;
  update.labels = options.labels;
  update.lease = options.lease;
  return update;
}

}  // namespace

absl::Status OfDocument(const std::string& collection, const std::string& id, absl::Status status) {
  if (!LacksCollection(status)) return status;
  Error error = ErrorOf(status);
  error.reason_name = ReasonName(Reason::kDocumentNotFound);
  error.message = "no such document";
  error.metadata = {{"collection", collection}, {"id", id}};
  return StatusOf(error);
}

Operation Set(std::string path, Value value) {
  return {Operation::Kind::kSet, std::move(path), std::move(value), {}};
}
Operation Unset(std::string path) { return {Operation::Kind::kUnset, std::move(path), {}, {}}; }
Operation Increment(std::string path, Value number) {
  return {Operation::Kind::kIncrement, std::move(path), std::move(number), {}};
}
Operation Append(std::string path, Array values) {
  return {Operation::Kind::kAppend, std::move(path), {}, std::move(values)};
}
Operation AppendMissing(std::string path, Array values) {
  return {Operation::Kind::kAppendMissing, std::move(path), {}, std::move(values)};
}
Operation RemoveAll(std::string path, Array values) {
  return {Operation::Kind::kRemoveAll, std::move(path), {}, std::move(values)};
}

Change Replace(Value content) { return {.replace = std::move(content)}; }
Change Merge(Value content) { return {.merge = std::move(content)}; }
Change Patch(std::vector<Operation> operations) { return {.operations = std::move(operations)}; }

Collection::Collection(std::shared_ptr<Core> core, std::string name)
    : core_(std::move(core)), name_(std::move(name)) {}

absl::StatusOr<Written> Collection::Create(const std::string& id, const Value& content,
                                           const CreateOptions& options) const {
  const auto request = CreateOf(*core_, name_, id, content, options);
  if (!request.ok()) return request.status();
  v1::CreateResponse response;
  return WrittenOf(*request, core_->Call(&DocumentStub::Create, *request, &response), response);
}

std::future<absl::StatusOr<Written>> Collection::CreateAsync(const std::string& id,
                                                             const Value& content,
                                                             const CreateOptions& options) const {
  auto request = CreateOf(*core_, name_, id, content, options);
  if (!request.ok()) return Ready<Written>(request.status());
  return core_->CallAsync<Written>(&DocumentStub::PrepareAsyncCreate, *std::move(request),
                                   &WrittenOf<v1::CreateRequest, v1::CreateResponse>);
}

absl::StatusOr<std::optional<Document>> Collection::Get(const std::string& id,
                                                        const GetOptions& options) const {
  const auto request = GetOf(*core_, name_, id, options);
  if (!request.ok()) return request.status();
  v1::GetResponse response;
  return FoundOf(*request, core_->Call(&DocumentStub::Get, *request, &response), response);
}

std::future<absl::StatusOr<std::optional<Document>>> Collection::GetAsync(
    const std::string& id, const GetOptions& options) const {
  auto request = GetOf(*core_, name_, id, options);
  if (!request.ok()) return Ready<std::optional<Document>>(request.status());
  return core_->CallAsync<std::optional<Document>>(&DocumentStub::PrepareAsyncGet,
                                                   *std::move(request), &FoundOf);
}

absl::StatusOr<BatchGetAnswer> Collection::BatchGet(std::vector<std::string> ids,
                                                    const BatchGetOptions& options) const {
  v1::BatchGetRequest request;
  absl::Status status = FillRequest(*core_, options, request);
  request.set_collection(name_);
  BatchGetAnswer answer;
  do {
    request.mutable_ids()->Assign(ids.begin(), ids.end());
    v1::BatchGetResponse response;
    if (status.ok()) status = core_->Call(&DocumentStub::BatchGet, request, &response);
    if (LacksCollection(status)) {
      answer.missing_ids.insert(answer.missing_ids.end(), ids.begin(), ids.end());
      return answer;
    }
    if (!status.ok()) return status;
    for (v1::Document& message : *response.mutable_documents()) {
      absl::StatusOr<Document> document = DocumentOf(message);
      if (!document.ok()) return document.status();
      answer.documents.push_back(*std::move(document));
    }
    answer.missing_ids.insert(answer.missing_ids.end(), response.missing_ids().begin(),
                              response.missing_ids().end());
    ids.assign(response.remaining_ids().begin(), response.remaining_ids().end());
  } while (!ids.empty());
  return answer;
}

absl::StatusOr<Written> Collection::Update(const std::string& id, const Change& change,
                                           const UpdateOptions& options) const {
  const auto request = UpdateOf(*core_, name_, id, change, options);
  if (!request.ok()) return request.status();
  v1::UpdateResponse response;
  return WrittenOf(*request, core_->Call(&DocumentStub::Update, *request, &response), response);
}

std::future<absl::StatusOr<Written>> Collection::UpdateAsync(const std::string& id,
                                                             const Change& change,
                                                             const UpdateOptions& options) const {
  auto request = UpdateOf(*core_, name_, id, change, options);
  if (!request.ok()) return Ready<Written>(request.status());
  return core_->CallAsync<Written>(&DocumentStub::PrepareAsyncUpdate, *std::move(request),
                                   &WrittenOf<v1::UpdateRequest, v1::UpdateResponse>);
}

// Each round is a read and an update with a request id of its own; what is unknown about an update
// is settled by its own repetitions, so a conflict says for sure that it was not done.
absl::StatusOr<Written> Collection::Modify(const std::string& id, const ModifyFunction& function,
                                           const ModifyOptions& options) const {
  constexpr std::chrono::milliseconds kPauseMax{100};
  const auto first = Repetition::Clock::now();
  for (int conflicts = 0;; ++conflicts) {
    absl::StatusOr<Found> found = ReadForModify(*core_, name_, id);
    if (!found.ok()) return found.status();
    std::optional<Value> before;
    if (found->document.has_value()) before = found->document->content;
    absl::StatusOr<std::optional<Value>> after = function(std::move(before));
    if (!after.ok()) return after.status();
    if (!after->has_value()) {
      Written written;
      written.document = found->document.value_or(
          Document{.collection = name_, .id = id, .version = found->version});
      return written;
    }
    absl::StatusOr<Written> written =
        Update(id, Replace(**std::move(after)), OptionsOf(options, found->version));
    if (written.ok() || ReasonOf(written.status()) != Reason::kVersionConflict) return written;
    if (conflicts == 0) continue;
    std::optional<Repetition::Clock::time_point> next =
        Repetition(core_->retry_ms()).Next({}, conflicts, first);
    if (!next.has_value()) return written;
    std::this_thread::sleep_until(std::min(*next, Repetition::Clock::now() + kPauseMax));
  }
}

std::future<absl::StatusOr<Written>> Collection::ModifyAsync(const std::string& id,
                                                             ModifyFunction function,
                                                             const ModifyOptions& options) const {
  return std::async(std::launch::async,
                    [collection = *this, id, function = std::move(function), options] {
                      return collection.Modify(id, function, options);
                    });
}

absl::StatusOr<Written> Collection::Delete(const std::string& id,
                                           const DeleteOptions& options) const {
  const auto request = DeleteOf(*core_, name_, id, options);
  if (!request.ok()) return request.status();
  v1::DeleteResponse response;
  return WrittenOf(*request, core_->Call(&DocumentStub::Delete, *request, &response), response);
}

std::future<absl::StatusOr<Written>> Collection::DeleteAsync(const std::string& id,
                                                             const DeleteOptions& options) const {
  auto request = DeleteOf(*core_, name_, id, options);
  if (!request.ok()) return Ready<Written>(request.status());
  return core_->CallAsync<Written>(&DocumentStub::PrepareAsyncDelete, *std::move(request),
                                   &WrittenOf<v1::DeleteRequest, v1::DeleteResponse>);
}

absl::StatusOr<Written> Collection::Restore(const std::string& id, int64_t version,
                                            const RestoreOptions& options) const {
  const auto request = RestoreOf(*core_, name_, id, version, options);
  if (!request.ok()) return request.status();
  v1::RestoreResponse response;
  return WrittenOf(*request, core_->Call(&DocumentStub::Restore, *request, &response), response);
}

std::future<absl::StatusOr<Written>> Collection::RestoreAsync(const std::string& id,
                                                              int64_t version,
                                                              const RestoreOptions& options) const {
  auto request = RestoreOf(*core_, name_, id, version, options);
  if (!request.ok()) return Ready<Written>(request.status());
  return core_->CallAsync<Written>(&DocumentStub::PrepareAsyncRestore, *std::move(request),
                                   &WrittenOf<v1::RestoreRequest, v1::RestoreResponse>);
}

Range<Version> Collection::History(const std::string& id, const HistoryOptions& options) const {
  v1::HistoryRequest request;
  absl::Status filled = FillRequest(*core_, options, request);
  request.set_collection(name_);
  request.set_id(id);
  return Pages<Version>(
      core_, &DocumentStub::History, std::move(request), std::move(filled),
      [](const auto& response) -> auto& { return response.versions(); });
}

Range<FieldChange> Collection::Diff(const std::string& id, int64_t from_version, int64_t to_version,
                                    const DiffOptions& options) const {
  v1::DiffRequest request;
  absl::Status filled = FillRequest(*core_, options, request);
  request.set_collection(name_);
  request.set_id(id);
  request.set_from_version(from_version);
  request.set_to_version(to_version);
  return Pages<FieldChange>(
      core_, &DocumentStub::Diff, std::move(request), std::move(filled),
      [](const auto& response) -> auto& { return response.changes(); });
}

Range<AuditEntry> Collection::Audit(AuditOptions options) const {
  options.collection = name_;
  return AuditOf(core_, options);
}

Range<AuditEntry> Collection::Audit() const { return Audit(AuditOptions()); }

Range<AuditEntry> AuditOf(const std::shared_ptr<Core>& core, const AuditOptions& options) {
  v1::AuditRequest request;
  absl::Status filled = WriteMessage(options, request);
  return Pages<AuditEntry>(
      core, &DocumentStub::Audit, std::move(request), std::move(filled),
      [](const auto& response) -> auto& { return response.entries(); });
}

Range<Document> Collection::List(const ListOptions& options) const {
  v1::ListRequest request;
  absl::Status filled = FillRequest(*core_, options, request);
  request.set_collection(name_);
  return Pages<Document>(
      core_, &DocumentStub::List, std::move(request), std::move(filled),
      [](const auto& response) -> auto& { return response.documents(); });
}

client::Watch Collection::Watch(WatchOptions options) const {
  options.collections = {name_};
  return client::Watch(core_, options);
}

}  // namespace strata::client
