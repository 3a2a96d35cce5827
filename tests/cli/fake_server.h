// A server of a few lines for the tests of the command line: documents in maps, whole contents
// only.
#pragma once

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "strata/v1/collection_service.grpc.pb.h"
#include "strata/v1/document_service.grpc.pb.h"
#include "strata/v1/server_service.grpc.pb.h"
#include "tests/cli/fake_enrollments.h"
#include "tests/cli/fake_feed.h"
#include "tests/cli/fake_leases.h"
#include "tests/cli/fake_queues.h"
#include "tests/cli/fake_transactions.h"

namespace strata::cli {

// What a call came with.
struct ReceivedCall {
  std::string method;                      // "/strata.v1.DocumentService/Get"
  std::vector<std::string> authorization;  // each such header
};

// Serves on a free port from construction to destruction. Patches are recorded, not applied. Commit
// times are the commit's number in seconds. Thread-safe, but `failures`, `overlapped` and the
// recorded requests are for use while no call is under way.
class FakeServer : public v1::DocumentService::Service, public v1::CollectionService::Service {
 public:
  explicit FakeServer(const std::shared_ptr<grpc::ServerCredentials>& credentials =
                          grpc::InsecureServerCredentials());
  ~FakeServer() override;
  const std::string& address() const { return address_; }

  // All calls so far.
  std::vector<ReceivedCall> received_calls();

  // Answers GetServerInfo, with `info`.
  class ServerInfo : public v1::ServerService::Service {
   public:
    v1::GetServerInfoResponse info;
    grpc::Status GetServerInfo(grpc::ServerContext*, const v1::GetServerInfoRequest*,
                               v1::GetServerInfoResponse* response) override {
      *response = info;
      return grpc::Status::OK;
    }
  };

  // Served beside the documents.
  ServerInfo server_info;
  FakeEnrollments enrollments;
  FakeTransactions transactions;
  FakeLeases leases;
  FakeFeed feed;
  FakeQueues queues;

  // The next writes fail with these, one each, before anything is done.
  std::deque<grpc::Status> failures;
  // Whether writes whose number has to grow are stale.
  bool finds_stale = false;
  // Whether two writes of one document were ever under way at the same time.
  bool overlapped = false;
  int max_in_flight = 0;
  // The requests received last.
  v1::CreateRequest last_create;
  v1::UpdateRequest last_update;
  v1::DeleteRequest last_delete;
  v1::RestoreRequest last_restore;
  v1::GetRequest last_get;
  v1::HistoryRequest last_history;
  v1::AuditRequest last_audit;
  v1::ListRequest last_list;
  v1::CreateCollectionRequest last_create_collection;
  v1::DeleteCollectionRequest last_delete_collection;
  v1::LedgerHead ledger_head;  // what GetLedgerHead answers
  v1::VerifyRequest last_verify;
  bool last_verify_had_deadline = false;
  // What Verify answers, and how it ends. A step without a resume_token that is not the last has
  // its number; a request with one begins after that step.
  std::vector<v1::VerifyResponse> verify_steps;
  grpc::Status verify_end;
  // So many streams of Verify break: the n-th after n steps, or where it began if that is further.
  int verify_breaks = 0;
  int verify_streams = 0;
  // Request ids are kept with their versions, but repeat nothing.
  bool forgets_requests = false;
  // Histories are not answered, until their calls are cancelled.
  std::atomic<bool> is_silent = false;
  // How many changes there are between any two versions.
  size_t diff_changes = 1;
  // What is told of a version's changes is not all.
  bool truncates_changes = false;
  std::string transaction_id;  // of every version in a history and in an audit
  // Pages have at most so many entries.
  int page_max = 3;

  using Context = grpc::ServerContext;
  grpc::Status Create(Context*, const v1::CreateRequest*, v1::CreateResponse*) override;
  grpc::Status Get(Context*, const v1::GetRequest*, v1::GetResponse*) override;
  grpc::Status BatchGet(Context*, const v1::BatchGetRequest*, v1::BatchGetResponse*) override;
  grpc::Status Update(Context*, const v1::UpdateRequest*, v1::UpdateResponse*) override;
  grpc::Status Delete(Context*, const v1::DeleteRequest*, v1::DeleteResponse*) override;
  grpc::Status Restore(Context*, const v1::RestoreRequest*, v1::RestoreResponse*) override;
  grpc::Status History(Context*, const v1::HistoryRequest*, v1::HistoryResponse*) override;
  grpc::Status Diff(Context*, const v1::DiffRequest*, v1::DiffResponse*) override;
  grpc::Status Audit(Context*, const v1::AuditRequest*, v1::AuditResponse*) override;
  grpc::Status List(Context*, const v1::ListRequest*, v1::ListResponse*) override;
  grpc::Status CreateCollection(Context*, const v1::CreateCollectionRequest*,
                                v1::CreateCollectionResponse*) override;
  grpc::Status GetCollection(Context*, const v1::GetCollectionRequest*,
                             v1::GetCollectionResponse*) override;
  grpc::Status ListCollections(Context*, const v1::ListCollectionsRequest*,
                               v1::ListCollectionsResponse*) override;
  grpc::Status DeleteCollection(Context*, const v1::DeleteCollectionRequest*,
                                v1::DeleteCollectionResponse*) override;
  grpc::Status GetLedgerHead(Context*, const v1::GetLedgerHeadRequest*,
                             v1::GetLedgerHeadResponse*) override;
  grpc::Status Verify(Context*, const v1::VerifyRequest*,
                      grpc::ServerWriter<v1::VerifyResponse>*) override;

 private:
  using Versions = std::vector<v1::Version>;
  class UnderWay;
  class Listener;

  template <typename Request, typename Response>
  grpc::Status Write(const Request& request, const std::string& id, v1::VersionKind kind,
                     const v1::Content* content, Response* response);
  template <typename Request>
  grpc::Status Check(const Request& request, const Versions& versions) const;
  static v1::Document DocumentOf(const std::string& collection, const std::string& id,
                                 const v1::Version& version);

  std::mutex mutex_;
  std::map<std::string, std::map<std::string, Versions>> documents_;
  std::map<std::string, v1::Collection> collections_;
  int64_t incarnations_ = 0;
  std::set<std::string> deletions_;  // request ids
  std::set<std::string> under_way_;
  std::vector<ReceivedCall> received_calls_;
  int64_t commits_ = 0;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace strata::cli
