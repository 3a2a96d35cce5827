// The real server over an engine that is far away: reads block, take long and fail, commits are
// answered on threads that nobody knows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>
#include <vector>

#include "grpc/health/v1/health.grpc.pb.h"
#include "service/engines/engines.h"
#include "strata/v1/enrollment_service.grpc.pb.h"
#include "tests/rpc/test_server.h"
#include "tests/support/remote_store.h"

namespace strata::rpc_test {
namespace {

using test_support::RemoteStore;

constexpr std::chrono::seconds kPatience{20};

// Waits without sleeping for what another thread does soon.
template <typename Condition>
[[nodiscard]] bool Becomes(Condition&& condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

void LimitTime(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
}

class RemoteEngine : public testing::Test {
 protected:
  RemoteEngine() {
    auto owned = std::make_unique<RemoteStore>(
        *engines::OpenEngine("memory", engines::OpenOptions()), std::chrono::microseconds(20));
    store_ = owned.get();
    server_ = std::make_unique<TestServer>(Options(), std::move(owned));
    for (const char* id : {"a", "b", "c"}) EXPECT_TRUE(Increment(id).ok());
  }
  // So that a mistake ends a test, though not well.
  ~RemoteEngine() override {
    if (store_ == nullptr) return;
    store_->LetReadsGo();
    store_->LetAnswersGo();
  }

  static app::ServerOptions Options() {
    app::ServerOptions options = TestOptions();
    options.loop.unary_deadline = kPatience;
    return options;
  }

  grpc::Status Increment(const std::string& id) {
    return server_
        ->Update(R"({"collection": "c", "id": ")" + id + R"(", "allow_missing": true,
                     "patch": {"operations": [{"path": "/n", "increment": 1}]}})")
        .status;
  }
  grpc::Status Get(const std::string& id) {
    return server_->Get(R"({"collection": "c", "id": ")" + id + R"("})").status;
  }
  grpc::Status List() { return server_->List(R"({"collection": "c"})").status; }
  bool Serves() {
    grpc::ClientContext context;
    LimitTime(context);
    grpc::health::v1::HealthCheckResponse response;
    return grpc::health::v1::Health::NewStub(server_->Connect())
        ->Check(&context, grpc::health::v1::HealthCheckRequest(), &response)
        .ok();
  }
  template <typename Call>
  static std::vector<std::future<grpc::Status>> Start(int count, Call call) {
    std::vector<std::future<grpc::Status>> calls;
    for (int i = 0; i < count; ++i) calls.push_back(std::async(std::launch::async, call));
    return calls;
  }
  static void ExpectOk(std::vector<std::future<grpc::Status>>& calls) {
    for (auto& call : calls) {
      const grpc::Status status = call.get();
      EXPECT_TRUE(status.ok()) << status.error_message();
    }
  }

  RemoteStore* store_ = nullptr;
  std::unique_ptr<TestServer> server_;
};

TEST_F(RemoteEngine, AnswersEveryKindOfCall) {
  std::vector<std::future<grpc::Status>> calls;
  for (int i = 0; i < 8; ++i) {
    calls.push_back(std::async(std::launch::async, [this, i] {
      for (int n = 0; n < 20; ++n) {
        const grpc::Status status = Increment(i % 2 == 0 ? "a" : "b");
        if (!status.ok()) return status;
      }
      return grpc::Status::OK;
    }));
  }
  ExpectOk(calls);
  EXPECT_EQ(server_->Get(R"({"collection": "c", "id": "a"})").response.document().version(), 81);
  EXPECT_EQ(server_->List(R"({"collection": "c"})").response.documents_size(), 3);
  EXPECT_EQ(server_->History(R"({"collection": "c", "id": "b", "page_size": 1000})")
                .response.versions_size(),
            81);
  EXPECT_EQ(server_->Audit(R"({"collection": "c", "page_size": 1000})").response.entries_size(),
            163);
  grpc::ClientContext context;
  LimitTime(context);
  const auto reader = server_->collections().Verify(
      &context, Parse<v1::VerifyRequest>(R"({"collection": "c", "repair": true})"));
  v1::VerifyResponse found;
  while (reader->Read(&found)) {
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(found.versions(), 163);
  EXPECT_TRUE(server_->DeleteCollection(R"({"name": "c", "force": true})").ok());
  EXPECT_TRUE(Increment("a").ok());
}

// Neither unary calls nor messages of a stream read on the event loop.
TEST_F(RemoteEngine, NoReadHoldsUpTheEventLoop) {
  store_->HoldReads();
  auto gets = Start(4, [this] { return Get("a"); });
  auto updates = Start(4, [this] { return Increment("b"); });
  grpc::ClientContext context;
  LimitTime(context);
  const auto stub = v1::EnrollmentService::NewStub(server_->Connect());
  const auto stream = stub->Apply(&context);
  v1::ApplyRequest message;
  message.set_student_id("1");
  message.set_class_name("CS 101");
  message.set_sequence_number(1);
  message.set_operation(v1::ENROLLMENT_OPERATION_ENROLL);
  ASSERT_TRUE(stream->Write(message));
  // Those of one document stand in its write queue.
  EXPECT_TRUE(Becomes([this] { return store_->reads_held() == 4 + 1 + 1; }))
      << store_->reads_held();
  EXPECT_TRUE(Serves());
  store_->LetReadsGo();
  v1::ApplyResponse answer;
  EXPECT_TRUE(stream->Read(&answer));
  EXPECT_EQ(answer.result(), v1::ENROLLMENT_RESULT_APPLIED);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  ExpectOk(gets);
  ExpectOk(updates);
}

TEST_F(RemoteEngine, ScansThatWaitHoldUpNoGetAndNoUpdate) {
  store_->HoldReads(RemoteStore::Reads::kScans);
  auto lists = Start(Options().executor_threads + 2, [this] { return List(); });
  // One is left to other callers.
  const auto at_work = static_cast<size_t>(Options().executor_threads - 1);
  EXPECT_TRUE(Becomes([&] { return store_->reads_held() == at_work; }));
  EXPECT_TRUE(Get("a").ok());
  EXPECT_TRUE(Increment("a").ok());
  EXPECT_EQ(store_->reads_held(), at_work);
  store_->LetReadsGo();
  ExpectOk(lists);
}

// Commits are answered by two threads, and both have documents whose next write waits for a read.
TEST_F(RemoteEngine, ReadsThatWaitHoldUpNoCommitsAnswer) {
  store_->HoldAnswers();
  auto first_a = Start(1, [this] { return Increment("a"); });
  auto first_b = Start(1, [this] { return Increment("b"); });
  EXPECT_TRUE(Becomes([this] { return store_->answers_held() == 2; }));
  std::vector<std::future<grpc::Status>> next;
  for (const char* id : {"a", "b"}) {
    next.push_back(std::async(std::launch::async, [this, id] { return Increment(id); }));
  }
  auto other = Start(1, [this] { return Increment("c"); });
  EXPECT_TRUE(Becomes([this] { return store_->answers_held() == 3; }));
  // The next ones have come by then, or else find less to wait for.
  EXPECT_TRUE(Get("a").ok());
  store_->HoldReads();
  store_->LetAnswersGo();
  ExpectOk(first_a);
  ExpectOk(first_b);
  ExpectOk(other);
  store_->LetReadsGo();
  ExpectOk(next);
}

TEST_F(RemoteEngine, AReadThatFailsIsUnavailableAndWritesNothing) {
  store_->FailReads(true);
  for (const grpc::Status& status :
       {Get("a"), List(), Increment("a"),
        server_->History(R"({"collection": "c", "id": "a"})").status,
        server_->CreateCollection(R"({"name": "d"})").status,
        server_->DeleteCollection(R"({"name": "c", "force": true})").status}) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(DetailsOf(status).reason, "STORE_UNAVAILABLE") << status.error_message();
  }
  EXPECT_TRUE(Serves());
  store_->FailReads(false);
  EXPECT_EQ(server_->Get(R"({"collection": "c", "id": "a"})").response.document().version(), 1);
  EXPECT_EQ(server_->ListCollections("{}").response.collections_size(), 1);
}

// What is under way when the server stops is ended, wherever it is.
TEST_F(RemoteEngine, StopsWithCallsUnderWay) {
  std::vector<std::future<grpc::Status>> calls;
  for (const char* id : {"a", "b", "c", "d"}) {
    calls.push_back(std::async(std::launch::async, [this, id] {
      while (true) {
        if (const grpc::Status status = Increment(id); !status.ok()) return status;
      }
    }));
  }
  store_ = nullptr;  // goes with what the server closes
  server_->server().Shutdown();
  for (auto& call : calls) EXPECT_FALSE(call.get().ok());
}

}  // namespace
}  // namespace strata::rpc_test
