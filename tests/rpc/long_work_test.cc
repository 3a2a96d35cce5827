// What takes long waits for its caller's turn on the executor, however few bytes ask for it; what
// does not goes on meanwhile.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "service/engines/engines.h"
#include "tests/rpc/test_server.h"
#include "tests/support/hooked_store.h"

namespace strata::rpc_test {
namespace {

constexpr std::chrono::seconds kPatience{30};

// A memory engine whose scans of heads wait while the test says so.
class HeldScans {
 public:
  HeldScans() {
    engines::OpenOptions open;
    engine_ = *engines::OpenEngine("memory", open);
  }

  std::unique_ptr<store::Store> Store() {
    test_support::StoreHooks hooks;
    hooks.before_scan = [this](store::Keyspace keyspace, const store::Range&) {
      if (keyspace != store::Keyspace::kHeads) return;
      std::unique_lock lock(mutex_);
      ++waiting_;
      changed_.notify_all();
      changed_.wait(lock, [this] { return !held_; });
      --waiting_;
    };
    return std::make_unique<test_support::HookedStore>(*engine_, std::move(hooks));
  }
  void Hold() { Set(true); }
  void LetGo() { Set(false); }
  void AwaitOne() {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, kPatience, [this] { return waiting_ > 0; }));
  }

 private:
  void Set(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }

  std::unique_ptr<store::Store> engine_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  int waiting_ = 0;
};

class LongWork : public testing::Test {
 protected:
  static app::ServerOptions Options() {
    app::ServerOptions options = TestOptions();
    options.executor_threads = 1;
    return options;
  }
  ~LongWork() override { scans_.LetGo(); }

  void Make(const std::string& id, const std::string& content) {
    ASSERT_TRUE(server_
                    .Create(R"({"collection": "c", "id": ")" + id + R"(", "content": {"json": )" +
                            content + "}}")
                    .ok());
  }

  // The call is not answered as long as the executor is busy with a scan, while others are.
  template <typename Call>
  void ExpectWaitsForItsTurn(Call call) {
    scans_.Hold();
    auto list = std::async(std::launch::async,
                           [this] { return server_.List(R"({"collection": "c"})").ok(); });
    scans_.AwaitOne();
    std::future<bool> long_one = std::async(std::launch::async, [&] { return call().ok(); });
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(server_.Get(R"({"collection": "c", "id": "small"})").ok());
      ASSERT_TRUE(server_
                      .Update(R"({"collection": "c", "id": "small",
                                  "patch": {"operations": [{"path": "/n", "increment": 1}]}})")
                      .ok());
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_EQ(long_one.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
    scans_.LetGo();
    EXPECT_TRUE(long_one.get());
    EXPECT_TRUE(list.get());
  }

  HeldScans scans_;
  TestServer server_{Options(), scans_.Store()};
};

const std::string kLarge = R"({"text": ")" + std::string(200'000, 'x') + R"(", "n": 1})";

TEST_F(LongWork, APatchOfALargeDocument) {
  Make("small", R"({"n": 0})");
  Make("large", kLarge);
  ExpectWaitsForItsTurn([this] {
    return server_.Update(R"({"collection": "c", "id": "large", "omit_content": true,
                              "patch": {"operations": [{"path": "/n", "increment": 1}]}})");
  });
}

TEST_F(LongWork, APreconditionOnALargeDocument) {
  Make("small", R"({"n": 0})");
  Make("large", kLarge);
  ExpectWaitsForItsTurn([this] {
    return server_.Update(R"({"collection": "c", "id": "large", "omit_content": true,
                              "precondition": {"filter": {"text": {"$regex": "x$"}}},
                              "replace": {"json": {"n": 2}}})");
  });
}

TEST_F(LongWork, AnEnrollmentOfALargeDocument) {
  Make("small", R"({"n": 0})");
  Make("large", kLarge);
  ExpectWaitsForItsTurn([this] {
    return server_.CallByName("strata.v1.EnrollmentService/Enroll",
                              R"({"collection": "c", "student_id": "large", "class_name": "a",
                                  "sequence_number": 1})");
  });
}

TEST_F(LongWork, ALargeDocumentAsJson) {
  Make("small", R"({"n": 0})");
  Make("large", kLarge);
  ExpectWaitsForItsTurn([this] { return server_.Get(R"({"collection": "c", "id": "large"})"); });
}

TEST_F(LongWork, AnOldVersionFarFromItsKeyframe) {
  ASSERT_TRUE(server_
                  .CreateCollection(R"({"name": "c", "strategy": "STRATEGY_DELTAS",
                                        "options": {"keyframe_interval": 1000}})")
                  .ok());
  Make("small", R"({"n": 0})");
  Make("old", R"({"text": ")" + std::string(30'000, 'x') + R"(", "n": 1})");
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(server_
                    .Update(R"({"collection": "c", "id": "old", "omit_content": true,
                                "patch": {"operations": [{"path": "/n", "increment": 1}]}})")
                    .ok());
  }
  ExpectWaitsForItsTurn([this] {
    return server_.Get(R"({"collection": "c", "id": "old", "version": 59,
                           "encoding": "ENCODING_BSON"})");
  });
}

TEST_F(LongWork, EnrollmentsInALargeDocument) {
  Make("small", R"({"n": 0})");
  ASSERT_TRUE(server_
                  .Create(R"({"collection": "students", "id": "1", "content": {"json":
                              {"classes": [], "text": ")" +
                          std::string(200'000, 'x') + R"("}}})")
                  .ok());
  const std::string service = "strata.v1.EnrollmentService/";
  ExpectWaitsForItsTurn([&] {
    return server_.CallByName(service + "Enroll", R"({"student_id": "1", "class_name": "CS 101",
                                                      "sequence_number": 1})");
  });
  ExpectWaitsForItsTurn(
      [&] { return server_.CallByName(service + "GetEnrollments", R"({"student_id": "1"})"); });
}

// A scan that nobody waits for gives the executor up, and the server does not wait for it.
class ManyRegexes : public testing::Test {
 protected:
  // Two scans at work keep both threads that one caller may have.
  static app::ServerOptions Options() {
    app::ServerOptions options = TestOptions();
    options.executor_threads = 3;
    options.grace = std::chrono::milliseconds(100);
    return options;
  }
  void SetUp() override {
    std::string text;
    for (int i = 0; i < 20'000; ++i) text += static_cast<char>('a' + i * 7 % 26);
    for (int i = 0; i < 1000; ++i) {
      ASSERT_TRUE(
          server_.Create(R"({"collection": "c", "content": {"json": {"text": ")" + text + R"("}}})")
              .ok());
    }
    std::string conditions;
    for (int i = 0; i < 100; ++i) {
      conditions += (i > 0 ? ", " : "") + std::string(R"({"text": {"$regex": "[a-m]+[n-z]q)") +
                    std::to_string(i) + R"("}})";
    }
    list_ =
        Parse<v1::ListRequest>(R"({"collection": "c", "filter": {"$or": [)" + conditions + "]}}");
  }
  grpc::Status List(std::chrono::milliseconds deadline) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + deadline);
    v1::ListResponse response;
    return server_.documents().List(&context, list_, &response);
  }

  TestServer server_{Options()};
  v1::ListRequest list_;
};

TEST_F(ManyRegexes, EndWithTheirCallersDeadlines) {
  std::vector<std::future<grpc::Status>> lists;
  for (int i = 0; i < 8; ++i) {
    lists.push_back(
        std::async(std::launch::async, [this] { return List(std::chrono::milliseconds(100)); }));
  }
  for (auto& list : lists) {
    EXPECT_EQ(list.get().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  // Whole, each takes many times as long: the eight would be in the way for half a minute, where
  // the machine has nothing else to do.
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(server_.List(R"({"collection": "c", "page_size": 1})").ok());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST_F(ManyRegexes, EndWithTheServer) {
  std::vector<std::future<grpc::Status>> lists;
  for (int i = 0; i < 8; ++i) {
    lists.push_back(std::async(std::launch::async, [this] { return List(kPatience); }));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // so that some are at work
  const auto begin = std::chrono::steady_clock::now();
  server_.server().Shutdown();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  for (auto& list : lists) EXPECT_EQ(list.get().error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace strata::rpc_test
