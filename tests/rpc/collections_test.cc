// Each RPC of CollectionService does what its proto says, and all strategies answer alike.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/rpc/test_server.h"

namespace strata::rpc_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<std::string> Names(const v1::ListCollectionsResponse& response) {
  std::vector<std::string> names;
  for (const auto& collection : response.collections()) names.push_back(collection.name());
  return names;
}

TEST(Collections, AreMadeWithDefaultsOrAsAsked) {
  TestServer server;
  const auto defaults = server.CreateCollection(R"({"name": "a"})");
  ASSERT_TRUE(defaults.ok()) << defaults.status.error_message();
  EXPECT_EQ(defaults.response.collection().strategy(), v1::STRATEGY_DELTAS);
  EXPECT_EQ(defaults.response.collection().options().keyframe_interval(), 16);
  EXPECT_GT(defaults.response.collection().create_time().seconds(), 0);
  const auto asked = server.CreateCollection(R"({"name": "b", "strategy": "STRATEGY_DELTAS",
                                                 "options": {"keyframe_interval": 4}})");
  EXPECT_EQ(asked.response.collection().options().keyframe_interval(), 4);
  const auto other =
      server.CreateCollection(R"({"name": "c", "strategy": "STRATEGY_FULL_COPIES"})");
  EXPECT_EQ(other.response.collection().strategy(), v1::STRATEGY_FULL_COPIES);
  EXPECT_EQ(other.response.collection().options().keyframe_interval(), 0);
}

TEST(Collections, AreMadeByTheFirstWriteUnlessThatIsSwitchedOff) {
  app::ServerOptions options = TestOptions();
  options.default_strategy = "shadow-collection";
  TestServer server(options);
  ASSERT_TRUE(server.Create(R"({"collection": "a", "content": {"json": {}}})").ok());
  const auto made = server.GetCollection(R"({"name": "a"})");
  EXPECT_EQ(made.response.collection().strategy(), v1::STRATEGY_SHADOW_COLLECTION);
  EXPECT_EQ(made.response.collection().statistics().documents(), 1);
  EXPECT_GT(made.response.collection().statistics().keyspaces_size(), 0);

  options.create_collections = false;
  TestServer strict(options);
  EXPECT_EQ(strict.Create(R"({"collection": "a", "content": {"json": {}}})").details().reason,
            "COLLECTION_NOT_FOUND");
}

TEST(Collections, AreListedInPagesThatEndExactly) {
  TestServer server;
  for (const char* name : {"b", "a", "d", "c"}) {
    ASSERT_TRUE(server.CreateCollection(std::string(R"({"name": ")") + name + R"("})").ok());
  }
  const auto first = server.ListCollections(R"({"page_size": 2})");
  EXPECT_THAT(Names(first.response), ElementsAre("a", "b"));
  const auto second = server.ListCollections(R"({"page_size": 2, "page_token": ")" +
                                             first.response.next_page_token() + R"("})");
  EXPECT_THAT(Names(second.response), ElementsAre("c", "d"));
  EXPECT_THAT(second.response.next_page_token(), IsEmpty());
}

TEST(Collections, AreDeletedWithAllTheyHoldIfForced) {
  TestServer server;
  ASSERT_TRUE(server.CreateCollection(R"({"name": "empty"})").ok());
  EXPECT_TRUE(server.DeleteCollection(R"({"name": "empty"})").ok());
  ASSERT_TRUE(server.Create(R"({"collection": "full", "id": "x", "content": {"json": {}}})").ok());
  EXPECT_EQ(server.DeleteCollection(R"({"name": "full"})").details().reason,
            "COLLECTION_NOT_EMPTY");
  EXPECT_TRUE(server.DeleteCollection(R"({"name": "full", "force": true})").ok());
  EXPECT_THAT(server.ListCollections("{}").response.collections(), IsEmpty());
  const auto again = server.Create(R"({"collection": "full", "id": "x", "content": {"json": {}}})");
  EXPECT_EQ(again.response.document().version(), 1);
  const auto ledger = server.Audit(R"({"collection": "full"})");
  ASSERT_THAT(ledger.response.entries(), SizeIs(2));
  EXPECT_THAT(ledger.response.entries(0).version().chain_hash(), IsEmpty());
  EXPECT_THAT(ledger.response.entries(1).version().chain_hash(), SizeIs(32));
}

TEST(Collections, AreToldApartByTheirIncarnations) {
  TestServer server;
  const auto made = server.CreateCollection(R"({"name": "a"})");
  EXPECT_EQ(made.response.collection().incarnation(), 1);
  ASSERT_TRUE(server.DeleteCollection(R"({"name": "a", "incarnation": 1})").ok());
  EXPECT_EQ(server.DeleteCollection(R"({"name": "a", "incarnation": 1})").details().reason,
            "COLLECTION_NOT_FOUND");
  ASSERT_TRUE(server.CreateCollection(R"({"name": "a"})").ok());
  EXPECT_EQ(server.GetCollection(R"({"name": "a"})").response.collection().incarnation(), 2);
  EXPECT_EQ(server.ListCollections("{}").response.collections(0).incarnation(), 2);
  const auto refused = server.DeleteCollection(R"({"name": "a", "incarnation": 1})");
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(refused.details().reason, "INCARNATION_MISMATCH");
  EXPECT_EQ(refused.details().metadata.at("collection"), "a");
  EXPECT_EQ(refused.details().metadata.at("expected"), "1");
  EXPECT_EQ(refused.details().metadata.at("actual"), "2");
  EXPECT_TRUE(server.DeleteCollection(R"({"name": "a", "incarnation": 2})").ok());
}

TEST(Collections, ADeletionThatIsRepeatedSparesASuccessor) {
  TestServer server;
  const std::string document = R"({"collection": "a", "id": "x", "content": {"json": {}}})";
  const std::string deletion = R"({"name": "a", "force": true, "request_id": "once"})";
  ASSERT_TRUE(server.Create(document).ok());
  const auto first = server.DeleteCollection(deletion);
  ASSERT_TRUE(first.ok());
  EXPECT_FALSE(first.response.replayed());
  ASSERT_TRUE(server.Create(document).ok());
  const auto second = server.DeleteCollection(deletion);
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(second.response.replayed());
  EXPECT_TRUE(server.Get(R"({"collection": "a", "id": "x"})").ok());
  const auto reused = server.DeleteCollection(R"({"name": "a", "request_id": "once"})");
  EXPECT_EQ(reused.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(reused.details().reason, "REQUEST_ID_REUSED");
  EXPECT_EQ(reused.details().metadata.at("field"), "request_id");
  // Another name, another memory.
  ASSERT_TRUE(server.CreateCollection(R"({"name": "b"})").ok());
  EXPECT_FALSE(
      server.DeleteCollection(R"({"name": "b", "request_id": "once"})").response.replayed());
}

// What a caller sees does not depend on the strategy.
TEST(Collections, AllStrategiesAnswerAlike) {
  TestServer server;
  std::vector<std::string> histories;
  for (int strategy = 1; strategy <= 5; ++strategy) {
    const std::string name = "c" + std::to_string(strategy);
    ASSERT_TRUE(server
                    .CreateCollection(R"({"name": ")" + name + R"(", "strategy": )" +
                                      std::to_string(strategy) + "}")
                    .ok());
    const std::string document = R"("collection": ")" + name + R"(", "id": "x")";
    ASSERT_TRUE(server.Create("{" + document + R"(, "content": {"json": {"a": 1}}})").ok());
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(server
                      .Update("{" + document + R"(, "patch": {"operations":
                              [{"path": "/a", "increment": 1}]}})")
                      .ok());
    }
    ASSERT_TRUE(server.Delete("{" + document + "}").ok());
    ASSERT_TRUE(server.Restore("{" + document + R"(, "version": 7})").ok());
    auto history =
        server.History("{" + document + R"(, "include_content": true, "include_changes": true})");
    ASSERT_THAT(history.response.versions(), SizeIs(23));
    for (auto& version : *history.response.mutable_versions()) {  // what time and chance make
      version.clear_commit_time();
      version.clear_content_hash();
      version.clear_chain_hash();
    }
    histories.push_back(history.response.DebugString());
  }
  EXPECT_THAT(histories, testing::Each(histories[0]));
}

}  // namespace
}  // namespace strata::rpc_test
