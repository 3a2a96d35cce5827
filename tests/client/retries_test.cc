// The rules of repetition, for calls that wait and for futures alike, against a server of a few
// lines that fails as it is told to.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "strata/client/client.h"
#include "strata/v1/document_service.grpc.pb.h"
#include "strata/v1/queue_service.grpc.pb.h"

namespace strata::client {
namespace {

using Clock = std::chrono::steady_clock;

grpc::Status Refused(grpc::StatusCode code, const std::string& reason = "", int retry_ms = -1) {
  google::rpc::Status details;
  if (!reason.empty()) {
    google::rpc::ErrorInfo info;
    info.set_reason(reason);
    info.set_domain("strata");
    details.add_details()->PackFrom(info);
  }
  if (retry_ms >= 0) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_nanos(retry_ms * 1'000'000);
    details.add_details()->PackFrom(retry);
  }
  return {code, "told so", details.SerializeAsString()};
}

// What it answers, call after call; from the last on always that.
class Script {
 public:
  explicit Script(std::vector<grpc::Status> answers) : answers_(std::move(answers)) {}

  grpc::Status Next(const std::string& request_id) {
    const std::lock_guard lock(mutex_);
    times_.push_back(Clock::now());
    request_ids_.push_back(request_id);
    return answers_[std::min(times_.size(), answers_.size()) - 1];
  }

  size_t calls() {
    const std::lock_guard lock(mutex_);
    return times_.size();
  }
  const std::vector<std::string>& request_ids() const { return request_ids_; }
  double GapMs(size_t index) const {
    return std::chrono::duration<double, std::milli>(times_[index + 1] - times_[index]).count();
  }

 private:
  std::mutex mutex_;
  const std::vector<grpc::Status> answers_;
  std::vector<Clock::time_point> times_;
  std::vector<std::string> request_ids_;
};

class Fake : public v1::DocumentService::Service, public v1::QueueService::Service {
 public:
  explicit Fake(Script& script) : script_(script) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(static_cast<v1::DocumentService::Service*>(this));
    builder.RegisterService(static_cast<v1::QueueService::Service*>(this));
    server_ = builder.BuildAndStart();
    target_ = "127.0.0.1:" + std::to_string(port);
  }
  ~Fake() override { server_->Shutdown(); }

  const std::string& target() const { return target_; }

  grpc::Status Get(grpc::ServerContext*, const v1::GetRequest*, v1::GetResponse*) override {
    return script_.Next("");
  }
  grpc::Status Update(grpc::ServerContext*, const v1::UpdateRequest* request,
                      v1::UpdateResponse*) override {
    return script_.Next(request->request_id());
  }
  grpc::Status Pop(grpc::ServerContext*, const v1::PopRequest*, v1::PopResponse*) override {
    return script_.Next("");
  }

 private:
  Script& script_;
  std::string target_;
  std::unique_ptr<grpc::Server> server_;
};

enum class Way { kWaiting, kFuture };

class Retries : public ::testing::TestWithParam<Way> {
 protected:
  // An update against a server that answers so.
  absl::Status Update(Script& script, absl::Duration retry_for = absl::Seconds(20)) {
    const Fake fake(script);
    const auto client = Client::Connect({.target = fake.target(), .retry_for = retry_for});
    const Collection books = client->collection("books");
    const Change change = Replace(Object{});
    return GetParam() == Way::kWaiting ? books.Update("a", change).status()
                                       : books.UpdateAsync("a", change).get().status();
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, Retries, ::testing::Values(Way::kWaiting, Way::kFuture),
                         [](const auto& way) {
                           return way.param == Way::kWaiting ? "Waiting" : "Future";
                         });

TEST_P(Retries, WhatMayHelpIsAskedAgainWithTheSameRequestId) {
  const grpc::Status kinds[] = {Refused(grpc::StatusCode::UNAVAILABLE),
                                Refused(grpc::StatusCode::UNAVAILABLE, "OUTCOME_UNKNOWN"),
                                Refused(grpc::StatusCode::CANCELLED),
                                Refused(grpc::StatusCode::DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED"),
                                Refused(grpc::StatusCode::ABORTED, "RETRIES_EXHAUSTED", 1),
                                Refused(grpc::StatusCode::RESOURCE_EXHAUSTED, "OVERLOADED", 1),
                                Refused(grpc::StatusCode::RESOURCE_EXHAUSTED, "OF_THE_FUTURE", 1)};
  for (const grpc::Status& kind : kinds) {
    Script script({kind, grpc::Status::OK});
    EXPECT_TRUE(Update(script).ok());
    ASSERT_EQ(script.calls(), 2u);
    EXPECT_FALSE(script.request_ids()[0].empty());
    EXPECT_EQ(script.request_ids()[0], script.request_ids()[1]);
  }
}

TEST_P(Retries, WhatCannotHelpIsNotAskedAgain) {
  const grpc::Status kinds[] = {Refused(grpc::StatusCode::ABORTED, "VERSION_CONFLICT"),
                                Refused(grpc::StatusCode::CANCELLED, "CANCELLED"),
                                Refused(grpc::StatusCode::INTERNAL),
                                Refused(grpc::StatusCode::UNKNOWN),
                                Refused(grpc::StatusCode::ABORTED, "LEASE_HELD", 1),
                                Refused(grpc::StatusCode::RESOURCE_EXHAUSTED, "DOCUMENT_TOO_LARGE"),
                                Refused(grpc::StatusCode::INVALID_ARGUMENT, "INVALID_FIELD")};
  for (const grpc::Status& kind : kinds) {
    Script script({kind, grpc::Status::OK});
    EXPECT_EQ(static_cast<int>(Update(script).code()), static_cast<int>(kind.error_code()));
    EXPECT_EQ(script.calls(), 1u);
  }
}

TEST_P(Retries, PausesGrowAndAreNeverShorterThanTheServerSays) {
  Script script({Refused(grpc::StatusCode::UNAVAILABLE, "DRAINING", 1),
                 Refused(grpc::StatusCode::UNAVAILABLE, "DRAINING", 1),
                 Refused(grpc::StatusCode::RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED", 700),
                 grpc::Status::OK});
  EXPECT_TRUE(Update(script).ok());
  ASSERT_EQ(script.calls(), 4u);
  EXPECT_GE(script.GapMs(0), 50);
  EXPECT_GE(script.GapMs(1), 100);
  EXPECT_GE(script.GapMs(2), 700);
}

TEST_P(Retries, NoAttemptBeginsAfterRetryFor) {
  Script script({Refused(grpc::StatusCode::UNAVAILABLE)});
  const auto begin = Clock::now();
  const Error error = ErrorOf(Update(script, absl::Milliseconds(400)));
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
  EXPECT_TRUE(error.outcome_unknown);
  EXPECT_EQ(error.request_id, script.request_ids()[0]);
  EXPECT_GE(script.calls(), 2u);
  EXPECT_LE(script.calls(), 5u);
  Script once({Refused(grpc::StatusCode::UNAVAILABLE)});
  EXPECT_FALSE(Update(once, absl::ZeroDuration()).ok());
  EXPECT_EQ(once.calls(), 1u);
}

TEST_P(Retries, WhatIsUnknownStaysSoUntilAnAnswerSettlesIt) {
  const auto unknown_after = [&](std::vector<grpc::Status> answers) {
    Script script(std::move(answers));
    return ErrorOf(Update(script, absl::Milliseconds(300))).outcome_unknown;
  };
  const grpc::Status lost = Refused(grpc::StatusCode::UNAVAILABLE);
  const grpc::Status busy = Refused(grpc::StatusCode::RESOURCE_EXHAUSTED, "OVERLOADED", 100);
  EXPECT_TRUE(unknown_after({lost}));
  EXPECT_TRUE(unknown_after({lost, busy}));
  EXPECT_TRUE(unknown_after({Refused(grpc::StatusCode::INTERNAL)}));
  EXPECT_FALSE(unknown_after({busy}));
  EXPECT_FALSE(unknown_after({Refused(grpc::StatusCode::UNAVAILABLE, "DRAINING", 50)}));
  EXPECT_FALSE(unknown_after({lost, Refused(grpc::StatusCode::ABORTED, "VERSION_CONFLICT")}));
}

TEST(Repeated, ReadsAreNeverUnknown) {
  Script script({Refused(grpc::StatusCode::UNAVAILABLE)});
  const Fake fake(script);
  const auto client =
      Client::Connect({.target = fake.target(), .retry_for = absl::Milliseconds(300)});
  EXPECT_FALSE(ErrorOf(client->collection("books").Get("a").status()).outcome_unknown);
  EXPECT_GE(script.calls(), 2u);
}

// What would do harm twice is asked for again only where the server said that it did nothing.
TEST(Repeated, WhatDoesHarmTwiceIsNot) {
  const std::pair<grpc::Status, size_t> cases[] = {
      {Refused(grpc::StatusCode::UNAVAILABLE), 1},
      {Refused(grpc::StatusCode::UNAVAILABLE, "OUTCOME_UNKNOWN"), 1},
      {Refused(grpc::StatusCode::DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED"), 1},
      {Refused(grpc::StatusCode::UNAVAILABLE, "DRAINING", 1), 2},
      {Refused(grpc::StatusCode::RESOURCE_EXHAUSTED, "OVERLOADED", 1), 2},
      {Refused(grpc::StatusCode::ABORTED, "RETRIES_EXHAUSTED", 1), 2}};
  for (const auto& [status, calls] : cases) {
    Script script({status, grpc::Status::OK});
    const Fake fake(script);
    const auto client = Client::Connect({.target = fake.target()});
    const auto popped = client->queues().Pop("q");
    EXPECT_EQ(popped.ok(), calls == 2);
    EXPECT_EQ(script.calls(), calls);
  }
}

}  // namespace
}  // namespace strata::client
