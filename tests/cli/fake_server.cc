// The least that makes every command answer.
#include "tests/cli/fake_server.h"

#include <grpcpp/server_builder.h>
#include <grpcpp/support/server_interceptor.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/cli/status_of.h"

namespace strata::cli {
namespace {

using grpc::Status;
using grpc::StatusCode;

Status NoDocument() {
  return StatusOf(StatusCode::NOT_FOUND, "DOCUMENT_NOT_FOUND", "no such document");
}

Status NoCollection() {
  return StatusOf(StatusCode::NOT_FOUND, "COLLECTION_NOT_FOUND", "no such collection");
}

bool IsDeletion(const v1::Version& version) { return version.kind() == v1::VERSION_KIND_DELETED; }

size_t PageStart(const std::string& token) {
  return token.empty() ? 0 : static_cast<size_t>(std::stoul(token));
}

// Moves one page of `all` into `page` and answers the next token.
template <typename T>
std::string Page(const std::vector<T>& all, const std::string& token, int size,
                 google::protobuf::RepeatedPtrField<T>* page) {
  size_t at = PageStart(token);
  for (; at < all.size() && page->size() < size; ++at) *page->Add() = all[at];
  return at < all.size() ? std::to_string(at) : "";
}

}  // namespace

// Marks a document as being written, long enough that overlapping writes would meet.
class FakeServer::UnderWay {
 public:
  UnderWay(FakeServer& server, std::string key) : server_(server), key_(std::move(key)) {
    {
      const std::lock_guard lock(server_.mutex_);
      if (!server_.under_way_.insert(key_).second) server_.overlapped = true;
      server_.max_in_flight =
          std::max(server_.max_in_flight, static_cast<int>(server_.under_way_.size()));
    }
    std::this_thread::yield();
  }
  ~UnderWay() {
    const std::lock_guard lock(server_.mutex_);
    server_.under_way_.erase(key_);
  }

 private:
  FakeServer& server_;
  std::string key_;
};

// Hears each call before it is handled.
class FakeServer::Listener : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Listener(FakeServer& server) : server_(server) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    return new Ear(server_, info->method());
  }

 private:
  class Ear : public grpc::experimental::Interceptor {
   public:
    Ear(FakeServer& server, std::string method) : server_(server), method_(std::move(method)) {}
    void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
      using grpc::experimental::InterceptionHookPoints;
      if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) {
        ReceivedCall call{.method = method_, .authorization = {}};
        const auto [begin, end] = methods->GetRecvInitialMetadata()->equal_range("authorization");
        for (auto at = begin; at != end; ++at) {
          call.authorization.emplace_back(at->second.data(), at->second.size());
        }
        const std::lock_guard lock(server_.mutex_);
        server_.received_calls_.push_back(std::move(call));
      }
      methods->Proceed();
    }

   private:
    FakeServer& server_;
    const std::string method_;
  };

  FakeServer& server_;
};

FakeServer::FakeServer(const std::shared_ptr<grpc::ServerCredentials>& credentials) {
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", credentials, &port);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> listeners;
  listeners.push_back(std::make_unique<Listener>(*this));
  builder.experimental().SetInterceptorCreators(std::move(listeners));
  builder.RegisterService(static_cast<v1::DocumentService::Service*>(this));
  builder.RegisterService(static_cast<v1::CollectionService::Service*>(this));
  builder.RegisterService(&server_info);
  builder.RegisterService(&enrollments);
  builder.RegisterService(&transactions);
  builder.RegisterService(&leases);
  builder.RegisterService(&feed);
  builder.RegisterService(&queues);
  server_ = builder.BuildAndStart();
  address_ = "127.0.0.1:" + std::to_string(port);
}

FakeServer::~FakeServer() { server_->Shutdown(); }

std::vector<ReceivedCall> FakeServer::received_calls() {
  const std::lock_guard lock(mutex_);
  return received_calls_;
}

v1::Document FakeServer::DocumentOf(const std::string& collection, const std::string& id,
                                    const v1::Version& version) {
  v1::Document document;
  document.set_collection(collection);
  document.set_id(id);
  document.set_version(version.version());
  *document.mutable_update_time() = version.commit_time();
  if (version.has_content()) *document.mutable_content() = version.content();
  return document;
}

template <typename Request>
Status FakeServer::Check(const Request& request, const Versions& versions) const {
  const auto& precondition = request.precondition();
  const auto actual = static_cast<int64_t>(versions.size());
  const bool exists = !versions.empty() && !IsDeletion(versions.back());
  const bool holds = precondition.has_version()  ? precondition.version() == actual
                     : precondition.has_exists() ? precondition.exists() == exists
                                                 : true;
  if (holds) return Status::OK;
  return StatusOf(
      StatusCode::ABORTED, "VERSION_CONFLICT",
      "version is " + std::to_string(actual) + ", not " + std::to_string(precondition.version()),
      {{"expected", std::to_string(precondition.version())}, {"actual", std::to_string(actual)}});
}

template <typename Request, typename Response>
Status FakeServer::Write(const Request& request, const std::string& id, v1::VersionKind kind,
                         const v1::Content* content, Response* response) {
  const UnderWay under_way(*this, request.collection() + "/" + id);
  const std::lock_guard lock(mutex_);
  if (!failures.empty()) {
    const Status failure = failures.front();
    failures.pop_front();
    return failure;
  }
  Versions& versions = documents_[request.collection()][id];
  for (const v1::Version& version : versions) {
    if (forgets_requests || request.request_id().empty()) break;
    if (version.request_id() != request.request_id()) continue;
    *response->mutable_document() = DocumentOf(request.collection(), id, version);
    response->set_replayed(true);
    response->set_changed(true);
    return Status::OK;
  }
  if constexpr (requires { request.precondition(); }) {
    const Status checked = Check(request, versions);
    if (!checked.ok()) return checked;
  }
  const bool exists = !versions.empty() && !IsDeletion(versions.back());
  v1::Newer newer;
  if constexpr (requires { response->set_stale(true); }) {
    newer = request.precondition().newer();
    if (finds_stale && request.precondition().has_newer()) {
      *response->mutable_document() = DocumentOf(request.collection(), id, versions.back());
      response->set_stale(true);
      return Status::OK;
    }
  }
  if (kind == v1::VERSION_KIND_DELETED && !exists && newer.path().empty()) return NoDocument();
  v1::Version version;
  version.set_version(static_cast<int64_t>(versions.size()) + 1);
  version.set_kind(kind);
  version.mutable_commit_time()->set_seconds(++commits_);
  *version.mutable_change() = request.change();
  if (kind == v1::VERSION_KIND_DELETED && !newer.path().empty()) {
    (*version.mutable_change()->mutable_labels())["newer:" + newer.path()] =
        std::to_string(newer.value());
  }
  version.set_request_id(request.request_id());
  version.set_content_hash("\x01\xab");
  version.set_chain_hash("\x02\xcd");
  if (content != nullptr) *version.mutable_content() = *content;
  *response->mutable_document() = DocumentOf(request.collection(), id, version);
  response->set_changed(!request.validate_only());
  if (!request.validate_only()) versions.push_back(version);
  if constexpr (requires { request.omit_content(); }) {
    if (request.omit_content()) response->mutable_document()->clear_content();
  }
  return Status::OK;
}

Status FakeServer::Create(Context*, const v1::CreateRequest* request,
                          v1::CreateResponse* response) {
  last_create = *request;
  const std::string id = request->id().empty() ? "made-here" : request->id();
  {
    const std::lock_guard lock(mutex_);
    const Versions& versions = documents_[request->collection()][id];
    if (!versions.empty() && !IsDeletion(versions.back())) {
      return StatusOf(StatusCode::ALREADY_EXISTS, "DOCUMENT_EXISTS",
                      "document exists at version " + std::to_string(versions.size()));
    }
  }
  return Write(*request, id, v1::VERSION_KIND_CREATED, &request->content(), response);
}

Status FakeServer::Update(Context*, const v1::UpdateRequest* request,
                          v1::UpdateResponse* response) {
  const std::string& id = request->id();
  v1::Content content = request->replace();
  v1::VersionKind kind = v1::VERSION_KIND_UPDATED;
  {
    const std::lock_guard lock(mutex_);
    last_update = *request;
    const Versions& versions = documents_[request->collection()][id];
    const bool exists = !versions.empty() && !IsDeletion(versions.back());
    if (!exists && !request->allow_missing() && !request->has_precondition()) return NoDocument();
    if (!exists) kind = v1::VERSION_KIND_CREATED;
    if (request->has_patch() && exists) content = versions.back().content();
  }
  return Write(*request, id, kind, &content, response);
}

Status FakeServer::Delete(Context*, const v1::DeleteRequest* request,
                          v1::DeleteResponse* response) {
  {
    const std::lock_guard lock(mutex_);
    last_delete = *request;
  }
  return Write(*request, request->id(), v1::VERSION_KIND_DELETED, nullptr, response);
}

Status FakeServer::Restore(Context*, const v1::RestoreRequest* request,
                           v1::RestoreResponse* response) {
  last_restore = *request;
  v1::Content content;
  {
    const std::lock_guard lock(mutex_);
    const Versions& versions = documents_[request->collection()][request->id()];
    const auto index = static_cast<size_t>(request->version() - 1);
    if (index >= versions.size()) {
      return StatusOf(StatusCode::NOT_FOUND, "VERSION_NOT_FOUND", "no such version");
    }
    content = versions[index].content();
  }
  return Write(*request, request->id(), v1::VERSION_KIND_RESTORED, &content, response);
}

Status FakeServer::Get(Context*, const v1::GetRequest* request, v1::GetResponse* response) {
  last_get = *request;
  const std::lock_guard lock(mutex_);
  const Versions& versions = documents_[request->collection()][request->id()];
  if (versions.empty()) return NoDocument();
  if (IsDeletion(versions.back()) && !request->has_version()) {
    const std::string deletion = std::to_string(versions.size());
    return StatusOf(StatusCode::NOT_FOUND, "DOCUMENT_DELETED", "deleted by version " + deletion,
                    {{"version", deletion}});
  }
  const size_t index =
      request->has_version() ? static_cast<size_t>(request->version()) - 1 : versions.size() - 1;
  if (index >= versions.size()) {
    return StatusOf(StatusCode::NOT_FOUND, "VERSION_NOT_FOUND", "no such version");
  }
  *response->mutable_document() = DocumentOf(request->collection(), request->id(), versions[index]);
  return Status::OK;
}

Status FakeServer::BatchGet(Context*, const v1::BatchGetRequest* request,
                            v1::BatchGetResponse* response) {
  const std::lock_guard lock(mutex_);
  for (const std::string& id : request->ids()) {
    const Versions& versions = documents_[request->collection()][id];
    if (response->documents_size() == page_max) {
      response->add_remaining_ids(id);
    } else if (versions.empty() || IsDeletion(versions.back())) {
      response->add_missing_ids(id);
    } else {
      *response->add_documents() = DocumentOf(request->collection(), id, versions.back());
    }
  }
  return Status::OK;
}

Status FakeServer::History(Context* context, const v1::HistoryRequest* request,
                           v1::HistoryResponse* response) {
  while (is_silent && !context->IsCancelled()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const std::lock_guard lock(mutex_);
  last_history = *request;
  Versions versions = documents_[request->collection()][request->id()];
  if (versions.empty()) return NoDocument();
  if (!request->oldest_first()) std::reverse(versions.begin(), versions.end());
  for (v1::Version& version : versions) {
    if (!request->include_content()) version.clear_content();
    version.set_transaction_id(transaction_id);
    if (!request->include_changes()) continue;
    version.set_changes_truncated(truncates_changes);
    v1::FieldChange& change = *version.add_changes();
    change.set_path("/stock");
    change.set_type(v1::CHANGE_TYPE_ADDED);
    change.mutable_after()->set_number_value(static_cast<double>(version.version()));
  }
  response->set_next_page_token(Page(versions, request->page_token(),
                                     std::min(page_max, request->page_size()),
                                     response->mutable_versions()));
  return Status::OK;
}

Status FakeServer::Diff(Context*, const v1::DiffRequest* request, v1::DiffResponse* response) {
  response->set_from_version(request->from_version());
  response->set_to_version(request->to_version() == 0 ? 9 : request->to_version());
  if (response->from_version() == response->to_version()) return Status::OK;
  std::vector<v1::FieldChange> changes(diff_changes);
  for (v1::FieldChange& change : changes) {
    change.set_path("/stock");
    change.set_type(v1::CHANGE_TYPE_CHANGED);
    change.mutable_before()->set_number_value(3);
    change.mutable_after()->set_number_value(2);
  }
  response->set_next_page_token(
      Page(changes, request->page_token(), page_max, response->mutable_changes()));
  return Status::OK;
}

Status FakeServer::Audit(Context*, const v1::AuditRequest* request, v1::AuditResponse* response) {
  const std::lock_guard lock(mutex_);
  last_audit = *request;
  std::vector<v1::AuditEntry> entries;
  for (const auto& [collection, documents] : documents_) {
    for (const auto& [id, versions] : documents) {
      for (const v1::Version& version : versions) {
        v1::AuditEntry& entry = entries.emplace_back();
        entry.set_commit_position(version.commit_time().seconds());
        entry.set_collection(collection);
        entry.set_id(id);
        *entry.mutable_version() = version;
        entry.mutable_version()->clear_content();
        entry.mutable_version()->set_changes_truncated(truncates_changes);
        entry.mutable_version()->set_transaction_id(transaction_id);
      }
    }
  }
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.commit_position() < b.commit_position(); });
  if (request->newest_first()) std::reverse(entries.begin(), entries.end());
  response->set_next_page_token(Page(entries, request->page_token(),
                                     std::min(page_max, request->page_size()),
                                     response->mutable_entries()));
  return Status::OK;
}

Status FakeServer::List(Context*, const v1::ListRequest* request, v1::ListResponse* response) {
  const std::lock_guard lock(mutex_);
  last_list = *request;
  const auto collection = documents_.find(request->collection());
  if (collection == documents_.end()) return NoCollection();
  std::vector<v1::Document> documents;
  for (const auto& [id, versions] : collection->second) {
    if (versions.empty() || !id.starts_with(request->id_prefix())) continue;
    if (IsDeletion(versions.back()) && !request->show_deleted()) continue;
    documents.push_back(DocumentOf(request->collection(), id, versions.back()));
  }
  response->set_next_page_token(Page(documents, request->page_token(),
                                     std::min(page_max, request->page_size()),
                                     response->mutable_documents()));
  return Status::OK;
}

Status FakeServer::CreateCollection(Context*, const v1::CreateCollectionRequest* request,
                                    v1::CreateCollectionResponse* response) {
  const std::lock_guard lock(mutex_);
  last_create_collection = *request;
  v1::Collection& collection = collections_[request->name()];
  if (!collection.name().empty()) {
    return StatusOf(StatusCode::ALREADY_EXISTS, "COLLECTION_EXISTS", "collection exists");
  }
  collection.set_name(request->name());
  collection.set_strategy(request->strategy() == v1::STRATEGY_UNSPECIFIED ? v1::STRATEGY_DELTAS
                                                                          : request->strategy());
  *collection.mutable_options() = request->options();
  collection.set_incarnation(++incarnations_);
  *response->mutable_collection() = collection;
  return Status::OK;
}

Status FakeServer::GetCollection(Context*, const v1::GetCollectionRequest* request,
                                 v1::GetCollectionResponse* response) {
  const std::lock_guard lock(mutex_);
  if (!collections_.contains(request->name())) return NoCollection();
  *response->mutable_collection() = collections_[request->name()];
  v1::CollectionStatistics& statistics = *response->mutable_collection()->mutable_statistics();
  statistics.set_documents(1234);
  v1::KeyspaceSize& heads = *statistics.add_keyspaces();
  heads.set_keyspace("heads");
  heads.set_bytes(1000000);
  return Status::OK;
}

Status FakeServer::ListCollections(Context*, const v1::ListCollectionsRequest* request,
                                   v1::ListCollectionsResponse* response) {
  const std::lock_guard lock(mutex_);
  std::vector<v1::Collection> all;
  for (const auto& [name, collection] : collections_) all.push_back(collection);
  response->set_next_page_token(
      Page(all, request->page_token(), page_max, response->mutable_collections()));
  return Status::OK;
}

Status FakeServer::DeleteCollection(Context*, const v1::DeleteCollectionRequest* request,
                                    v1::DeleteCollectionResponse* response) {
  const std::lock_guard lock(mutex_);
  last_delete_collection = *request;
  if (deletions_.contains(request->request_id())) {
    response->set_replayed(true);
    return Status::OK;
  }
  if (!collections_.contains(request->name())) return NoCollection();
  if (request->incarnation() != 0 &&
      request->incarnation() != collections_[request->name()].incarnation()) {
    return StatusOf(StatusCode::FAILED_PRECONDITION, "INCARNATION_MISMATCH",
                    "collection's incarnation is another");
  }
  if (!request->force() && !documents_[request->name()].empty()) {
    return StatusOf(StatusCode::FAILED_PRECONDITION, "COLLECTION_NOT_EMPTY",
                    "collection holds documents; use force");
  }
  if (!request->request_id().empty()) deletions_.insert(request->request_id());
  collections_.erase(request->name());
  documents_.erase(request->name());
  return Status::OK;
}

Status FakeServer::GetLedgerHead(Context*, const v1::GetLedgerHeadRequest*,
                                 v1::GetLedgerHeadResponse* response) {
  *response->mutable_head() = ledger_head;
  return Status::OK;
}

Status FakeServer::Verify(Context* context, const v1::VerifyRequest* request,
                          grpc::ServerWriter<v1::VerifyResponse>* writer) {
  last_verify = *request;
  last_verify_had_deadline = context->deadline() != std::chrono::system_clock::time_point::max();
  const bool breaks = verify_streams++ < verify_breaks;
  size_t i = request->resume_token().empty() ? 0 : std::stoul(request->resume_token()) + 1;
  for (; i < verify_steps.size(); ++i) {
    if (breaks && i >= static_cast<size_t>(verify_streams)) break;
    v1::VerifyResponse step = verify_steps[i];
    if (!step.complete()) step.set_resume_token(std::to_string(i));
    writer->Write(step);
  }
  return breaks ? Status(StatusCode::UNAVAILABLE, "socket closed") : verify_end;
}

}  // namespace strata::cli
