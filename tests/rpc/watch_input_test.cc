// Watches that are refused: each row says what is asked for, which reason and field the answer must
// name, and what it must say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "schemas/store/single_record_store.h"
#include "service/engines/engines.h"
#include "tests/rpc/watching.h"

namespace strata::rpc_test {
namespace {

using testing::HasSubstr;

struct Row {
  std::string request;
  ErrorReason reason;
  std::string field;
  std::string says;
};

constexpr ErrorReason kField = ErrorReason::kInvalidField;

std::string Names(int count) {
  std::string names;
  for (int i = 0; i < count; ++i) {
    names += (i == 0 ? "\"c" : ",\"c") + std::to_string(i) + "\"";
  }
  return names;
}

std::vector<Row> AllRows() {
  return {
      {R"({"collections": [)" + Names(101) + "]}", kField, "collections", "101"},
      {R"({"collections": [""]})", ErrorReason::kInvalidName, "collections[0]", "empty"},
      {R"({"collections": ["a", ")" + std::string(257, 'x') + "\"]}", ErrorReason::kInvalidName,
       "collections[1]", "256"},
      {R"({"collections": ["a\nb"]})", ErrorReason::kInvalidName, "collections[0]", "control"},
      {R"({"id_prefix": "a"})", kField, "id_prefix", "exactly one collection"},
      {R"({"collections": ["a", "b"], "id_prefix": "a"})", kField, "id_prefix",
       "exactly one collection"},
      {R"({"collections": ["a"], "id_prefix": ")" + std::string(257, 'x') + "\"}", kField,
       "id_prefix", "256"},
      {R"({"kinds": ["VERSION_KIND_CREATED", "VERSION_KIND_UNSPECIFIED"]})", kField, "kinds[1]",
       "no kind"},
      {R"({"kinds": [99]})", kField, "kinds[0]", "no kind"},
      {R"({"encoding": 99})", kField, "encoding", "99"},
      {R"({"bookmark_interval": "0.010s"})", kField, "bookmark_interval", "1 s to 1 h"},
      {R"({"bookmark_interval": "0s"})", kField, "bookmark_interval", "1 s to 1 h"},
      {R"({"bookmark_interval": "-5s"})", kField, "bookmark_interval", "1 s to 1 h"},
      {R"({"bookmark_interval": "3600.001s"})", kField, "bookmark_interval", "1 s to 1 h"},
      {R"({"filter": {"a": ")" + std::string(65 << 10, 'x') + "\"}}", ErrorReason::kInvalidFilter,
       "filter", "65536"},
      {R"({"filter": {"a": {"$near": 1}}})", ErrorReason::kInvalidFilter, "filter", "$near"},
      {R"({"after_position": -1})", kField, "after_position", "-1"},
      {R"({"after_position": 9223372036854775807})", ErrorReason::kPositionUnknown,
       "after_position", "after the last commit"},
      {R"({"after_position": 1})", ErrorReason::kPositionTrimmed, "after_position", "is before"},
      {R"({"start_time": "9999-01-01T00:00:00Z"})", kField, "start_time", "future"},
      {R"({"snapshot": {"at_position": -1}})", kField, "snapshot.at_position", "-1"},
      {R"({"snapshot": {"at_position": 9223372036854775807}})", ErrorReason::kPositionUnknown,
       "snapshot.at_position", "after the last commit"},
      {R"({"snapshot": {"after_collection": "a"}})", kField, "snapshot.at_position",
       "to continue a copy"},
      {R"({"snapshot": {"at_position": 1, "after_id": "a"}})", ErrorReason::kInvalidName,
       "snapshot.after_collection", "empty"},
  };
}

TEST(WatchInput, IsRefusedByNameAndNothingIsSent) {
  TestServer server;
  ASSERT_TRUE(server.Create(R"({"collection": "a", "id": "a", "content": {"json": {}}})").ok());
  for (const Row& row : AllRows()) {
    SCOPED_TRACE(row.request.substr(0, 200));
    Watching watching(server, row.request);
    EXPECT_EQ(watching.Next(), std::nullopt);
    const grpc::Status status = watching.AwaitEnd();
    EXPECT_EQ(DetailsOf(status).reason, ReasonName(row.reason)) << status.error_message();
    EXPECT_EQ(DetailsOf(status).field(), row.field) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(row.says));
    ExpectDocumentedMetadata(status);
  }
}

TEST(WatchInput, TakesAllThatIsAtALimit) {
  TestServer server;
  for (const std::string& request :
       {R"({"collections": [)" + Names(100) + "]}", std::string(R"({"bookmark_interval": "1s"})"),
        std::string(R"({"bookmark_interval": "3600s"})"), std::string(R"({"after_position": 0})"),
        std::string(R"({"collections": ["a", "a"], "id_prefix": "x"})"),
        std::string(R"({"snapshot": {}})"), std::string("{}")}) {
    SCOPED_TRACE(request.substr(0, 200));
    Watching watching(server, request);
    EXPECT_NE(watching.Next(), std::nullopt) << watching.AwaitEnd().error_message();
  }
}

TEST(WatchInput, NothingIsFollowedWithoutPositions) {
  auto engine = *engines::OpenEngine("memory", engines::OpenOptions());
  TestServer server(TestOptions(), std::make_unique<store::SingleRecordStore>(std::move(engine)));
  for (const char* request : {"{}", R"({"after_position": 0})", R"({"snapshot": {}})"}) {
    Watching watching(server, request);
    const grpc::Status status = watching.AwaitEnd();
    EXPECT_EQ(DetailsOf(status).reason, "UNSUPPORTED_BY_ENGINE") << status.error_message();
    ExpectDocumentedMetadata(status);
  }
  const grpc::Status status = server.CallByName("strata.v1.FeedService/GetFeed", "{}");
  EXPECT_EQ(DetailsOf(status).reason, "UNSUPPORTED_BY_ENGINE");
}

}  // namespace
}  // namespace strata::rpc_test
