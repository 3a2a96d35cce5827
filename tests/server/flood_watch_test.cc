// How often a server has to be looked at for floods.
#include "service/server/flood_watch.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

namespace strata::server {
namespace {

using std::chrono::milliseconds;

// Answers each call with UNIMPLEMENTED.
class FloodWatchTest : public testing::Test {
 protected:
  FloodWatchTest() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 1);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
    channel_ = grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                                   grpc::InsecureChannelCredentials());
  }
  ~FloodWatchTest() override { server_->Shutdown(); }

  void Call() {
    grpc::GenericStub stub(channel_);
    grpc::CompletionQueue queue;
    grpc::ClientContext context;
    const auto call = stub.PrepareUnaryCall(&context, "/of.No/Use", grpc::ByteBuffer(), &queue);
    call->StartCall();
    grpc::ByteBuffer response;
    grpc::Status status;
    call->Finish(&response, &status, &queue);
    void* tag = nullptr;
    bool ok = false;
    ASSERT_TRUE(queue.Next(&tag, &ok));
    ASSERT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << status.error_message();
  }
  static milliseconds IntervalAfterLook(FloodWatch& watch) {
    EXPECT_TRUE(watch.Look(std::chrono::steady_clock::now()).empty());
    return watch.interval();
  }

  grpc::CallbackGenericService service_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(FloodWatchTest, LooksLessOftenWhileNoCallBegins) {
  FloodWatch watch;
  EXPECT_EQ(IntervalAfterLook(watch), milliseconds(100));
  for (int round = 0; round < 3; ++round) {
    Call();
    EXPECT_EQ(IntervalAfterLook(watch), milliseconds(25));
    EXPECT_EQ(IntervalAfterLook(watch), milliseconds(100));
  }
}

TEST_F(FloodWatchTest, GoesOnLookingOftenWhileSomethingIsSuspicious) {
  FloodWatch watch;
  for (int i = 0; i < 50; ++i) Call();  // none of which comes to anything
  EXPECT_EQ(IntervalAfterLook(watch), milliseconds(25));
  EXPECT_EQ(IntervalAfterLook(watch), milliseconds(25));
}

}  // namespace
}  // namespace strata::server
