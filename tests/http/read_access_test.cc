// A port that only reads lets through nothing that writes, whoever asks.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "service/rpc/registry.h"
#include "tests/http/http_world.h"

namespace strata::http_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// What reads, and so is let through. A method that is on neither list makes the test fail.
const std::set<std::string>& Reading() {
  static const auto& methods = *new std::set<std::string>{"DocumentService/Get",
                                                          "DocumentService/BatchGet",
                                                          "DocumentService/History",
                                                          "DocumentService/Diff",
                                                          "DocumentService/Audit",
                                                          "DocumentService/List",
                                                          "CollectionService/GetCollection",
                                                          "CollectionService/ListCollections",
                                                          "CollectionService/GetLedgerHead",
                                                          "EnrollmentService/GetEnrollments",
                                                          "EnrollmentService/ListRoster",
                                                          "TransactionService/Read",
                                                          "TransactionService/GetTransaction",
                                                          "TransactionService/ListTransactions",
                                                          "LeaseService/GetLease",
                                                          "LeaseService/ListLeases",
                                                          "FeedService/GetFeed",
                                                          "FeedService/GetSubscription",
                                                          "FeedService/ListSubscriptions",
                                                          "FeedService/ListParked",
                                                          "QueueService/GetQueue",
                                                          "QueueService/ListQueues",
                                                          "QueueService/GetMessage",
                                                          "QueueService/ListMessages",
                                                          "QueueService/ListSchedules",
                                                          "ServerService/GetServerInfo"};
  return methods;
}

const std::set<std::string>& Writing() {
  static const auto& methods = *new std::set<std::string>{"DocumentService/Create",
                                                          "DocumentService/Update",
                                                          "DocumentService/Delete",
                                                          "DocumentService/Restore",
                                                          "CollectionService/CreateCollection",
                                                          "CollectionService/DeleteCollection",
                                                          "EnrollmentService/Enroll",
                                                          "EnrollmentService/Unenroll",
                                                          "EnrollmentService/PurgeTombstones",
                                                          "TransactionService/Commit",
                                                          "TransactionService/CancelTransaction",
                                                          "TransactionService/ResumeTransaction",
                                                          "LeaseService/Acquire",
                                                          "LeaseService/Renew",
                                                          "LeaseService/Release",
                                                          "FeedService/CreateSubscription",
                                                          "FeedService/DeleteSubscription",
                                                          "FeedService/ReplayParked",
                                                          "FeedService/DiscardParked",
                                                          "QueueService/CreateQueue",
                                                          "QueueService/UpdateQueue",
                                                          "QueueService/DeleteQueue",
                                                          "QueueService/Push",
                                                          "QueueService/Pop",
                                                          "QueueService/Reserve",
                                                          "QueueService/Acknowledge",
                                                          "QueueService/Rollback",
                                                          "QueueService/Extend",
                                                          "QueueService/Move",
                                                          "QueueService/Replay",
                                                          "QueueService/PurgeMessages",
                                                          "QueueService/CreateSchedule",
                                                          "QueueService/DeleteSchedule"};
  return methods;
}

TEST(ReadAccess, LetsNoMethodWrite) {
  HttpWorld world(HttpOptions("read"));
  int methods = 0;
  for (const std::string& service : rpc::ServiceNames(false)) {
    if (!service.starts_with("strata.v1.")) continue;
    const auto* const descriptor =
        google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(service);
    ASSERT_NE(descriptor, nullptr);
    for (int i = 0; i < descriptor->method_count(); ++i) {
      const auto& method = *descriptor->method(i);
      if (method.client_streaming() || method.server_streaming()) continue;
      const std::string name = descriptor->name() + "/" + method.name();
      SCOPED_TRACE(name);
      ++methods;
      const Response response = world.Call(name, "{}");
      ASSERT_TRUE(Reading().contains(name) != Writing().contains(name))
          << "say in this test whether it reads or writes";
      if (Reading().contains(name)) {
        EXPECT_NE(response.status, 403) << response.body;
        continue;
      }
      EXPECT_EQ(response.status, 403) << response.body;
      EXPECT_EQ(JsonText(response.body, "code"), "permission_denied");
      EXPECT_EQ(JsonText(response.body, "reason"), "PERMISSION_DENIED");
      EXPECT_THAT(JsonText(response.body, "message"),
                  AllOf(HasSubstr("only reads"), HasSubstr("--http-access all")));
    }
  }
  EXPECT_EQ(methods, static_cast<int>(Reading().size() + Writing().size()));
  EXPECT_EQ(world.commits(), 0);
}

// What a request asks for counts, too, not only its method.
TEST(ReadAccess, LetsNoRequestRepair) {
  HttpWorld world(HttpOptions("read"));
  ASSERT_TRUE(world.grpc().CreateCollection(R"({"name": "books"})").ok());
  const auto end_of = [&](const std::string& json) {
    HttpClient client(world.port());
    client.Send(PostStream("CollectionService/Verify", json));
    client.ReadHead();
    Message message = client.ReadMessage();
    while (message.flags == 0) message = client.ReadMessage();
    return message.text;
  };
  EXPECT_EQ(end_of(R"({"collection": "books"})"), "{}");
  const std::string refused = end_of(R"({"collection": "books", "repair": true})");
  EXPECT_EQ(JsonText(refused, "code"), "permission_denied");
  EXPECT_THAT(JsonText(refused, "message"), HasSubstr("needs manage"));
}

TEST(ReadAccess, IsOfThePortAndNotOfItsCallers) {
  HttpWorld reads(HttpOptions("read"));
  HttpWorld all(HttpOptions("all"));
  constexpr char kBook[] = R"({"collection": "books", "id": "a", "content": {"json": {}}})";
  EXPECT_EQ(reads.Call("DocumentService/Create", kBook).status, 403);
  EXPECT_TRUE(reads.grpc().Create(kBook).ok()) << "by gRPC";
  EXPECT_EQ(reads.Call("DocumentService/Get", R"({"collection": "books", "id": "a"})").status, 200);
  EXPECT_EQ(all.Call("DocumentService/Create", kBook).status, 200);
}

}  // namespace
}  // namespace strata::http_test
