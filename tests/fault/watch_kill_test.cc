// Watchers of a server that is killed: they go on from the place last told, and miss nothing.
//
// STRATA_WATCH_KILLS: so often (10).
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <strata/v1/document_service.grpc.pb.h>
#include <strata/v1/feed_service.grpc.pb.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/fault/child_process.h"
#include "tests/fault/server_process.h"
#include "tests/support/temporary_directory.h"

namespace strata::fault {
namespace {

constexpr int kWriters = 4;
constexpr int kWrittenPerLife = 300;

int KillsWanted() {
  const char* const wanted = std::getenv("STRATA_WATCH_KILLS");
  return wanted == nullptr ? 10 : std::atoi(wanted);
}

// Position, index, document, version.
using Told = std::tuple<int64_t, int32_t, std::string, int64_t>;

class WatchKillTest : public testing::Test {
 protected:
  WatchKillTest() : settings_{directory_.Join("data"), directory_.Join("log"), "127.0.0.1:0", {}} {}

  // Until a call fails, or for so many updates each.
  void Write(const ServerProcess& server, int writer, int64_t most) {
    const auto documents = v1::DocumentService::NewStub(server.Connect());
    for (int64_t i = 0; i < most; ++i) {
      v1::UpdateRequest request;
      request.set_collection("things");
      request.set_id(std::to_string((i * kWriters + writer) % 40));
      request.set_allow_missing(true);
      request.set_omit_content(true);
      v1::Operation& count = *request.mutable_patch()->add_operations();
      count.set_path("/count");
      count.mutable_increment()->set_number_value(1);
      v1::UpdateResponse response;
      grpc::ClientContext context;
      if (!documents->Update(&context, request, &response).ok()) return;
      ++written_;
    }
  }

  // Until the stream ends, or the place is behind `end`. What came of a commit that was not whole
  // yet comes again, and is forgotten.
  void Follow(const ServerProcess& server, int64_t end) {
    const auto feed = v1::FeedService::NewStub(server.Connect());
    v1::WatchRequest request;
    request.set_after_position(resume_);
    request.mutable_bookmark_interval()->set_seconds(1);
    grpc::ClientContext context;
    const auto stream = feed->Watch(&context, request);
    std::vector<Told> pending;
    v1::WatchResponse message;
    while (resume_ < end && stream->Read(&message)) {
      for (const v1::Event& event : message.events()) {
        pending.emplace_back(event.position(), event.index(), event.id(),
                             event.version().version());
      }
      ASSERT_GE(message.resume_position(), resume_);
      if (message.resume_position() == resume_) continue;
      resume_ = message.resume_position();
      told_.insert(told_.end(), pending.begin(), pending.end());
      pending.clear();
    }
    context.TryCancel();
    stream->Finish();
  }

  static std::vector<Told> Audit(const ServerProcess& server) {
    const auto documents = v1::DocumentService::NewStub(server.Connect());
    std::vector<Told> all;
    v1::AuditRequest request;
    request.set_page_size(1000);
    do {
      v1::AuditResponse response;
      grpc::ClientContext context;
      const grpc::Status status = documents->Audit(&context, request, &response);
      EXPECT_TRUE(status.ok()) << status.error_message();
      if (!status.ok()) break;
      for (const v1::AuditEntry& entry : response.entries()) {
        all.emplace_back(entry.commit_position(), entry.index(), entry.id(),
                         entry.version().version());
      }
      request.set_page_token(response.next_page_token());
    } while (!request.page_token().empty());
    return all;
  }

  test_support::TemporaryDirectory directory_;
  ServerSettings settings_;
  std::atomic<int64_t> written_ = 0;
  int64_t resume_ = 0;
  std::vector<Told> told_;
};

TEST_F(WatchKillTest, AWatcherGoesOnAndMissesNothing) {
  for (int kill = 0; kill < KillsWanted(); ++kill) {
    ServerProcess server(settings_);
    const int64_t enough = written_ + kWrittenPerLife;
    std::vector<std::thread> threads;
    for (int writer = 0; writer < kWriters; ++writer) {
      threads.emplace_back([&, writer] { Write(server, writer, 1'000'000); });
    }
    threads.emplace_back([&] { Follow(server, INT64_MAX); });
    while (written_ < enough) std::this_thread::yield();
    server.Kill();
    for (std::thread& thread : threads) thread.join();
  }
  ServerProcess server(settings_);
  Write(server, 0, 1);
  const std::vector<Told> ledger = Audit(server);
  ASSERT_FALSE(ledger.empty());
  Follow(server, std::get<0>(ledger.back()));
  EXPECT_EQ(told_, ledger);
  EXPECT_GE(static_cast<int64_t>(told_.size()), written_);
  EXPECT_EQ(server.Stop(), 0);
  std::printf("%zu events over %d kills\n", told_.size(), KillsWanted());
}

TEST_F(WatchKillTest, TheCommandEndsWellByAnInterrupt) {
  ServerProcess server(settings_);
  Write(server, 0, 2);
  const std::string said = directory_.Join("said");
  ChildProcess watching(
      {StrataBinary(), "watch", "--beginning", "--json", "--server", server.address()}, said);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(watching.ReadLine(std::chrono::seconds(30)),
                testing::Optional(testing::HasSubstr("EVENT_TYPE_VERSION")));
  }
  watching.Signal(SIGINT);
  EXPECT_EQ(watching.Wait(), 0);
  EXPECT_THAT(ReadFile(said), testing::HasSubstr("go on with: --from "));
  EXPECT_EQ(server.Stop(), 0);
}

}  // namespace
}  // namespace strata::fault
