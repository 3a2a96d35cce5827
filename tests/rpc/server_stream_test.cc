// The handlers of server streams by themselves, on a stream whose moments the test chooses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "grpc/health/v1/health.pb.h"
#include "service/server/call.h"
#include "strata/v1/collection_service.pb.h"
#include "tests/rpc/handlers.h"
#include "tests/support/status_matchers.h"

namespace strata::rpc_test {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using test_support::IsOk;
using testing::IsEmpty;
using testing::Optional;
using testing::SizeIs;

// Keeps what is sent until the test lets it leave for the caller.
class SlowStream final : public server::Stream {
 public:
  void Send(const google::protobuf::MessageLite& message) override {
    waiting_.push_back(message.SerializeAsString());
  }
  size_t waiting() const override { return waiting_.size(); }
  bool TakeRoom(size_t /*bytes*/) override { return true; }
  void KeepRoom(size_t /*bytes*/) override {}
  void Finish(const absl::Status& status) override {
    if (!end) end = status;
  }

  // All that waits.
  std::vector<std::string> Leave() {
    std::vector<std::string> left = std::exchange(waiting_, {});
    handler->OnSent();
    return left;
  }

  // A message of the wire view, as the loop makes it.
  void Tell(const server::Method& method, const std::string& bytes) const {
    const std::unique_ptr<google::protobuf::MessageLite> message(method.make_request(nullptr));
    ASSERT_TRUE(message->ParseFromString(bytes));
    handler->OnMessage(*message);
  }

  std::unique_ptr<server::StreamHandler> handler;
  std::optional<absl::Status> end;

 private:
  std::vector<std::string> waiting_;
};

constexpr char kVerify[] = "/strata.v1.CollectionService/Verify";
constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";

TEST(ServerStreams, VerifyTakesNoStepBehindTheLast) {
  Handlers handlers;
  ASSERT_THAT(
      handlers.world->Create(versioning::testing::Request("a"), versioning::testing::Number(1)),
      IsOk());
  SlowStream stream;
  stream.handler = handlers.Find(kVerify).open(stream);
  v1::VerifyRequest request;
  request.set_collection("things");
  request.set_id("a");
  stream.Tell(handlers.Find(kVerify), request.SerializeAsString());
  EXPECT_EQ(stream.waiting(), 0u);
  stream.handler->OnLastMessage();
  EXPECT_THAT(stream.end, Optional(IsOk()));
  const std::vector<std::string> sent = stream.Leave();
  ASSERT_THAT(sent, SizeIs(1));
  v1::VerifyResponse last;
  ASSERT_TRUE(last.ParseFromString(sent.back()));
  EXPECT_TRUE(last.complete());
  EXPECT_EQ(last.documents(), 1);
  EXPECT_THAT(stream.Leave(), IsEmpty());
  stream.handler->OnClosed();
}

std::vector<HealthCheckResponse::ServingStatus> StatesIn(const std::vector<std::string>& messages) {
  std::vector<HealthCheckResponse::ServingStatus> states;
  for (const std::string& bytes : messages) {
    HealthCheckResponse response;
    EXPECT_TRUE(response.ParseFromString(bytes));
    states.push_back(response.status());
  }
  return states;
}

TEST(ServerStreams, WatchKeepsLittleForASlowCallerAndTellsItTheLastState) {
  Handlers handlers;
  SlowStream stream;
  stream.handler = handlers.Find(kWatch).open(stream);
  stream.Tell(handlers.Find(kWatch), "");
  stream.handler->OnLastMessage();
  EXPECT_THAT(StatesIn(stream.Leave()), testing::ElementsAre(HealthCheckResponse::NOT_SERVING));
  for (int i = 0; i < 1000; ++i) handlers.health.SetServing(i % 2 == 0);
  handlers.health.SetServing(true);
  std::vector<HealthCheckResponse::ServingStatus> heard;
  size_t longest = 0;
  for (std::vector<std::string> left = stream.Leave(); !left.empty(); left = stream.Leave()) {
    longest = std::max(longest, left.size());
    for (const auto state : StatesIn(left)) heard.push_back(state);
  }
  EXPECT_LE(longest, 4u);
  EXPECT_EQ(heard.back(), HealthCheckResponse::SERVING);
  handlers.health.SetServing(false);
  EXPECT_THAT(StatesIn(stream.Leave()), testing::ElementsAre(HealthCheckResponse::NOT_SERVING));
  EXPECT_EQ(stream.end, std::nullopt);
  stream.handler->OnClosed();
  handlers.health.SetServing(true);
  EXPECT_EQ(stream.waiting(), 0u);
}

TEST(ServerStreams, TakeOneMessageAndNoOther) {
  const Handlers handlers;
  const auto refusal = [&](std::vector<std::string> messages) {
    SlowStream stream;
    stream.handler = handlers.Find(kVerify).open(stream);
    for (const std::string& message : messages) stream.Tell(handlers.Find(kVerify), message);
    if (!stream.end) stream.handler->OnLastMessage();
    EXPECT_EQ(ReasonOf(*stream.end), ErrorReason::kInvalidMessage);
    stream.handler->OnClosed();
    return std::string(stream.end->message());
  };
  EXPECT_EQ(refusal({}), "no message came");
  EXPECT_EQ(refusal({"", ""}), "a second message came");
}

}  // namespace
}  // namespace strata::rpc_test
