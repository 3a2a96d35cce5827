// The handler of Verify by itself, on a stream whose moments the test chooses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "service/server/call.h"
#include "strata/v1/collection_service.pb.h"
#include "tests/rpc/handlers.h"
#include "tests/support/status_matchers.h"

namespace strata::rpc_test {
namespace {

using test_support::IsOk;
using testing::Optional;
using testing::SizeIs;

// Each message has left for the caller before Send returns, as it may with the event loop on
// another thread.
class QuickStream final : public server::Stream {
 public:
  void Send(const google::protobuf::MessageLite& message) override {
    sent.push_back(message.SerializeAsString());
    if (!end) handler->OnSent();
  }
  size_t waiting() const override { return 0; }
  void Finish(const absl::Status& status) override {
    if (!end) end = status;
  }

  std::unique_ptr<server::StreamHandler> handler;
  std::vector<std::string> sent;
  std::optional<absl::Status> end;
};

TEST(VerifyStreamTest, TakesNoStepBehindTheLastHoweverSoonItIsSent) {
  Handlers handlers;
  versioning::testing::World& world = handlers.world;
  ASSERT_THAT(world->Create(versioning::testing::Request("a"), versioning::testing::Number(1)),
              IsOk());

  QuickStream stream;
  stream.handler = handlers.Find("/strata.v1.CollectionService/Verify").open(stream);
  v1::VerifyRequest request;
  request.set_collection("things");
  request.set_id("a");
  stream.handler->OnMessage(request.SerializeAsString());
  stream.handler->OnLastMessage();
  handlers.executor.RunAll();
  EXPECT_THAT(stream.end, Optional(IsOk()));
  ASSERT_THAT(stream.sent, SizeIs(1));
  v1::VerifyResponse last;
  ASSERT_TRUE(last.ParseFromString(stream.sent.back()));
  EXPECT_TRUE(last.complete());
  EXPECT_EQ(last.documents(), 1);
  stream.handler->OnClosed();
}

}  // namespace
}  // namespace strata::rpc_test
