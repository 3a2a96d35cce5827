// What survives the end of a server and the start of the next on the same data.
#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>

#include "tests/rpc/test_server.h"
#include "tests/support/moved_clock.h"
#include "tests/support/temporary_directory.h"

namespace strata::rpc_test {
namespace {

using google::protobuf::util::MessageDifferencer;

class Restart : public testing::Test {
 protected:
  app::ServerOptions Options() const {
    app::ServerOptions options = TestOptions();
    options.engine = "rocksdb";
    options.data = directory_.Join("data");
    return options;
  }

  test_support::TemporaryDirectory directory_;
};

TEST_F(Restart, ARepeatedRequestAnswersWhatTheFirstDid) {
  const std::string create = R"({"collection": "books", "request_id": "r1",
                                 "content": {"json": {"stock": 3}}})";
  v1::Document first;
  std::string id;
  std::string update;
  v1::Document updated;
  {
    TestServer server(Options());
    const auto made = server.Create(create);
    ASSERT_TRUE(made.ok()) << made.status.error_message();
    first = made.response.document();
    id = made.response.document().id();
    update = R"({"collection": "books", "id": ")" + id + R"(", "request_id": "r2",
                 "patch": {"operations": [{"path": "/stock", "increment": -1}]}})";
    const auto changed = server.Update(update);
    ASSERT_TRUE(changed.ok()) << changed.status.error_message();
    updated = changed.response.document();
  }
  TestServer server(Options());
  const auto again = server.Create(create);
  ASSERT_TRUE(again.ok()) << again.status.error_message();
  EXPECT_TRUE(again.response.replayed());
  EXPECT_TRUE(MessageDifferencer::Equals(again.response.document(), first));
  const auto update_again = server.Update(update);
  EXPECT_TRUE(update_again.response.replayed());
  EXPECT_TRUE(MessageDifferencer::Equals(update_again.response.document(), updated));
  EXPECT_EQ(
      server.Get(R"({"collection": "books", "id": ")" + id + R"("})").response.document().version(),
      2);
}

TEST_F(Restart, TheLedgerIsTrimmedToWhatItIsToTell) {
  test_support::MovedClock clock;
  app::ServerOptions options = Options();
  options.clock = &clock;
  {
    TestServer server(options);
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(server.Create(R"({"collection": "books", "content": {"json": {}}})").ok());
    }
    EXPECT_EQ(server.Audit("{}").response.entries_size(), 3);
  }
  clock.Move(std::chrono::hours(24));
  options.ledger_retention = std::chrono::hours(12);
  TestServer server(options);
  while (server.Audit("{}").response.entries_size() != 1) std::this_thread::yield();
  EXPECT_EQ(server.List(R"({"collection": "books"})").response.documents_size(), 3);
}

TEST_F(Restart, ADrainUnderLoadLosesNothingAcknowledged) {
  std::mutex mutex;
  std::map<std::string, int64_t> acknowledged;
  std::atomic<int> writes = 0;
  std::atomic<int> ended = 0;
  {
    TestServer server(Options());
    std::vector<std::thread> clients;
    for (int c = 0; c < 4; ++c) {
      clients.emplace_back([&, c] {
        const std::string id = std::to_string(c);
        for (;;) {
          const auto made = server.Update(R"({"collection": "books", "id": ")" + id +
                                          R"(", "allow_missing": true, "patch": {"operations":
                                          [{"path": "/n", "increment": 1}]}})");
          if (!made.ok()) {
            ++ended;
            // What arrives between the last look at new calls and the end of the connection, gRPC
            // itself cancels.
            EXPECT_THAT(made.status.error_code(),
                        testing::AnyOf(grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::CANCELLED))
                << made.status.error_message();
            return;
          }
          const std::lock_guard lock(mutex);
          acknowledged[id] = made.response.document().version();
          ++writes;
        }
      });
    }
    // Clients whose writes fail end, on a full disk for example.
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (writes < 200 && ended == 0 && std::chrono::steady_clock::now() < patience) {
      std::this_thread::yield();
    }
    EXPECT_GE(writes, 200) << ended << " clients ended before";
    server.server().Shutdown();
    for (std::thread& client : clients) client.join();
  }
  TestServer server(Options());
  for (const auto& [id, version] : acknowledged) {
    const auto got = server.Get(R"({"collection": "books", "id": ")" + id + R"("})");
    ASSERT_TRUE(got.ok()) << got.status.error_message();
    // One more may have been written whose answer did not arrive.
    EXPECT_GE(got.response.document().version(), version);
    EXPECT_LE(got.response.document().version(), version + 1);
    EXPECT_EQ(got.response.document().content().json().fields().at("n").number_value(),
              static_cast<double>(got.response.document().version()));
  }
}

}  // namespace
}  // namespace strata::rpc_test
