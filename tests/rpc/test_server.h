// A server in this process on a free port, with a connection to it, and calls in few words, each of
// which looks at the metadata of the error that it may get.
#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "schemas/base/error.h"
#include "service/app/server.h"
#include "strata/v1/collection_service.grpc.pb.h"
#include "strata/v1/document_service.grpc.pb.h"
#include "strata/v1/feed_service.grpc.pb.h"
#include "strata/v1/lease_service.grpc.pb.h"
#include "strata/v1/queue_service.grpc.pb.h"
#include "strata/v1/transaction_service.grpc.pb.h"
#include "tests/rpc/documented_metadata.h"
#include "tests/rpc/interposed_store.h"

namespace strata::rpc_test {

// Options for port 0 and the memory engine.
app::ServerOptions TestOptions();

// What a status carries.
struct Details {
  std::string reason;
  std::string domain;
  std::map<std::string, std::string> metadata;
  std::vector<std::string> types;  // "google.rpc.ErrorInfo", …, in order
  std::string violation_field;     // of BadRequest
  std::string resource_type;       // of ResourceInfo
  std::string resource_name;

  bool Has(std::string_view type) const;
  std::string field() const { return metadata.count("field") != 0 ? metadata.at("field") : ""; }
};
Details DetailsOf(const grpc::Status& status);

// The message that the JSON text stands for. Aborts if it is none.
template <typename Message>
Message Parse(std::string_view json);
void ParseInto(std::string_view json, google::protobuf::Message& message);

// The document as BSON.
std::string Bson(std::string_view json);

template <typename Response>
struct Outcome {
  grpc::Status status;
  Response response;

  bool ok() const { return status.ok(); }
  Details details() const { return DetailsOf(status); }
};

class TestServer {
 public:
  explicit TestServer(const app::ServerOptions& options = TestOptions());
  // Over this store.
  TestServer(const app::ServerOptions& options, std::unique_ptr<store::Store> store);

  app::Server& server() { return *server_; }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  // A connection of its own.
  std::shared_ptr<grpc::Channel> Connect() const;
  v1::DocumentService::Stub& documents() { return *documents_; }
  v1::CollectionService::Stub& collections() { return *collections_; }
  v1::TransactionService::Stub& transactions() { return *transactions_; }
  v1::LeaseService::Stub& leases() { return *leases_; }
  v1::FeedService::Stub& feed() { return *feed_; }
  v1::QueueService::Stub& queues() { return *queues_; }

  // Calls the method of a service with a request in JSON.
#define STRATA_TEST_CALL(service, Method)                                                  \
  Outcome<v1::Method##Response> Method(std::string_view json) {                            \
    return Call<v1::Method##Response>(*service, &std::decay_t<decltype(*service)>::Method, \
                                      Parse<v1::Method##Request>(json));                   \
  }
  STRATA_TEST_CALL(documents_, Create)
  STRATA_TEST_CALL(documents_, Get)
  STRATA_TEST_CALL(documents_, BatchGet)
  STRATA_TEST_CALL(documents_, Update)
  STRATA_TEST_CALL(documents_, Delete)
  STRATA_TEST_CALL(documents_, Restore)
  STRATA_TEST_CALL(documents_, History)
  STRATA_TEST_CALL(documents_, Diff)
  STRATA_TEST_CALL(documents_, Audit)
  STRATA_TEST_CALL(documents_, List)
  STRATA_TEST_CALL(collections_, CreateCollection)
  STRATA_TEST_CALL(collections_, GetCollection)
  STRATA_TEST_CALL(collections_, ListCollections)
  STRATA_TEST_CALL(collections_, DeleteCollection)
  STRATA_TEST_CALL(collections_, GetLedgerHead)
  STRATA_TEST_CALL(transactions_, Commit)
  STRATA_TEST_CALL(transactions_, Read)
  STRATA_TEST_CALL(transactions_, GetTransaction)
  STRATA_TEST_CALL(transactions_, ListTransactions)
  STRATA_TEST_CALL(transactions_, CancelTransaction)
  STRATA_TEST_CALL(transactions_, ResumeTransaction)
  STRATA_TEST_CALL(leases_, Acquire)
  STRATA_TEST_CALL(leases_, Renew)
  STRATA_TEST_CALL(leases_, Release)
  STRATA_TEST_CALL(leases_, GetLease)
  STRATA_TEST_CALL(leases_, ListLeases)
  STRATA_TEST_CALL(feed_, GetFeed)
  STRATA_TEST_CALL(feed_, CreateSubscription)
  STRATA_TEST_CALL(feed_, GetSubscription)
  STRATA_TEST_CALL(feed_, ListSubscriptions)
  STRATA_TEST_CALL(feed_, DeleteSubscription)
  STRATA_TEST_CALL(feed_, ListParked)
  STRATA_TEST_CALL(feed_, ReplayParked)
  STRATA_TEST_CALL(feed_, DiscardParked)
  STRATA_TEST_CALL(queues_, CreateQueue)
  STRATA_TEST_CALL(queues_, GetQueue)
  STRATA_TEST_CALL(queues_, ListQueues)
  STRATA_TEST_CALL(queues_, UpdateQueue)
  STRATA_TEST_CALL(queues_, DeleteQueue)
  STRATA_TEST_CALL(queues_, Push)
  STRATA_TEST_CALL(queues_, Pop)
  STRATA_TEST_CALL(queues_, Reserve)
  STRATA_TEST_CALL(queues_, Acknowledge)
  STRATA_TEST_CALL(queues_, Rollback)
  STRATA_TEST_CALL(queues_, Extend)
  STRATA_TEST_CALL(queues_, Move)
  STRATA_TEST_CALL(queues_, GetMessage)
  STRATA_TEST_CALL(queues_, ListMessages)
  STRATA_TEST_CALL(queues_, Replay)
  STRATA_TEST_CALL(queues_, PurgeMessages)
  STRATA_TEST_CALL(queues_, CreateSchedule)
  STRATA_TEST_CALL(queues_, ListSchedules)
  STRATA_TEST_CALL(queues_, DeleteSchedule)
#undef STRATA_TEST_CALL

  template <typename Response, typename Stub, typename Method, typename Request>
  Outcome<Response> Call(Stub& stub, Method method, const Request& request) {
    grpc::ClientContext context;
    Outcome<Response> outcome;
    outcome.status = (stub.*method)(&context, request, &outcome.response);
    ExpectDocumentedMetadata(outcome.status);
    return outcome;
  }

  // Sends bytes to any method ("strata.v1.DocumentService/Get") and waits for the status, and the
  // bytes of the answer.
  grpc::Status CallRaw(const std::string& method, const std::string& bytes,
                       std::string* answer = nullptr);
  template <typename Response>
  Outcome<Response> CallRawFor(const std::string& method, const std::string& bytes) {
    Outcome<Response> outcome;
    std::string answer;
    outcome.status = CallRaw(method, bytes, &answer);
    outcome.response.ParseFromString(answer);
    return outcome;
  }
  // Calls any method that is among the linked services with a request in JSON.
  grpc::Status CallByName(const std::string& method, std::string_view json);

 private:
  void Open();

  std::unique_ptr<app::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::DocumentService::Stub> documents_;
  std::unique_ptr<v1::CollectionService::Stub> collections_;
  std::unique_ptr<v1::TransactionService::Stub> transactions_;
  std::unique_ptr<v1::LeaseService::Stub> leases_;
  std::unique_ptr<v1::FeedService::Stub> feed_;
  std::unique_ptr<v1::QueueService::Stub> queues_;
};

template <typename Message>
Message Parse(std::string_view json) {
  Message message;
  ParseInto(json, message);
  return message;
}

}  // namespace strata::rpc_test
