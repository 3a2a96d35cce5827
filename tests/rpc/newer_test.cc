// precondition.newer over a real socket: what the answers say, alone and in a transaction.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "strata/v1/transaction_service.pb.h"
#include "tests/rpc/test_server.h"

namespace strata::rpc_test {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr char kGreatest[] = "9223372036854775807";

std::string Newer(const std::string& value) {
  return R"("precondition": {"newer": {"path": "/version", "value": ")" + value + R"("}})";
}
std::string Moby(const std::string& rest) {
  return R"({"collection": "books", "id": "moby", )" + rest + "}";
}
std::string Upsert(const std::string& value) {
  return Moby(R"("allow_missing": true, "replace": {"json": {"title": "Moby"}}, )" + Newer(value));
}
std::string Delete(const std::string& value) { return Moby(Newer(value)); }

class NewerNumbers : public testing::Test {
 protected:
  TestServer server_;
};

TEST_F(NewerNumbers, AnAnswerSaysThatTheWriteIsStaleAndHowTheDocumentStands) {
  const auto created = server_.Update(Upsert("7"));
  ASSERT_TRUE(created.ok()) << created.status.error_message();
  EXPECT_TRUE(created.response.changed());
  EXPECT_FALSE(created.response.stale());
  const auto late = server_.Update(Upsert("7"));
  ASSERT_TRUE(late.ok()) << late.status.error_message();
  EXPECT_TRUE(late.response.stale());
  EXPECT_FALSE(late.response.changed());
  EXPECT_EQ(late.response.attempts(), 0);
  EXPECT_EQ(late.response.commit_position(), 0);
  EXPECT_EQ(late.response.document().version(), 1);
  const auto& members = late.response.document().content().json().fields();
  EXPECT_EQ(members.at("version").number_value(), 7);
  EXPECT_EQ(members.at("title").string_value(), "Moby");
  const auto late_deletion = server_.Delete(Delete("6"));
  ASSERT_TRUE(late_deletion.ok()) << late_deletion.status.error_message();
  EXPECT_TRUE(late_deletion.response.stale());
  EXPECT_EQ(late_deletion.response.document().version(), 1);
}

TEST_F(NewerNumbers, ADeletionShowsItsNumberAsALabel) {
  const auto deleted = server_.Delete(Delete(kGreatest));
  ASSERT_TRUE(deleted.ok()) << deleted.status.error_message();
  EXPECT_TRUE(deleted.response.changed());
  EXPECT_EQ(deleted.response.document().version(), 1);
  const auto history = server_.History(Moby(R"("page_size": 10)"));
  ASSERT_EQ(history.response.versions_size(), 1);
  const v1::Version& version = history.response.versions(0);
  EXPECT_EQ(version.kind(), v1::VERSION_KIND_DELETED);
  EXPECT_THAT(version.change().labels(), UnorderedElementsAre(Pair("newer:/version", kGreatest)));
  const auto late = server_.Update(Upsert(kGreatest));
  ASSERT_TRUE(late.ok()) << late.status.error_message();
  EXPECT_TRUE(late.response.stale());
  EXPECT_FALSE(late.response.document().has_content());
  EXPECT_EQ(DetailsOf(server_.Get(Moby(R"("encoding": 1)")).status).reason, "DOCUMENT_DELETED");
}

TEST_F(NewerNumbers, ATransactionSaysItOfEachWrite) {
  ASSERT_TRUE(server_.Update(Upsert("7")).ok());
  for (const std::string& mode : std::vector<std::string>{"ONE_COMMIT", "TWO_PHASE"}) {
    const std::string emma = R"("collection": "books", "id": "emma )" + mode + R"(", )";
    const std::string request = R"({"request_id": ")" + mode + R"(", "mode": "TRANSACTION_MODE_)" +
                                mode + R"(", "writes": [{"update": )" + Upsert("7") +
                                R"(}, {"delete": {)" + emma + Newer("3") + "}}]}";
    for (const bool replayed : {false, true}) {
      const auto done = server_.Commit(request);
      ASSERT_TRUE(done.ok()) << done.status.error_message();
      EXPECT_EQ(done.response.replayed(), replayed);
      std::vector<bool> stale;
      for (const v1::CommitResult& result : done.response.results()) {
        stale.push_back(result.stale());
        EXPECT_NE(result.stale(), result.changed());
      }
      EXPECT_THAT(stale, ElementsAre(true, false));
    }
  }
}

}  // namespace
}  // namespace strata::rpc_test
