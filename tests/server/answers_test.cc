// Room for answers, and answers that nobody takes.
#include <gmock/gmock.h>
#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "schemas/base/error.h"
#include "service/server/server_loop.h"
#include "tests/server/served.h"

namespace strata::server {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// Answers "large" with 4 MiB, anything else with little.
Method Large() {
  return Unary([](const CallHandle& call) {
    auto& response = static_cast<HealthCheckResponse&>(call.response());
    if (static_cast<const HealthCheckRequest&>(call.request()).service() == "large") {
      response.GetReflection()->MutableUnknownFields(&response)->AddLengthDelimited(
          99, std::string(4 * kMiB, 'x'));
    }
    call.Answer(absl::OkStatus());
  });
}

// A caller that asks and takes no answer in: its stream's window stays shut beyond the first bytes.
class Asker {
 public:
  explicit Asker(int port)
      : stub_(grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port),
                                        grpc::InsecureChannelCredentials(), WithSmallWindows())) {
    call_ = stub_.PrepareCall(&context_, std::string("/") + kUnary, &queue_);
    call_->StartCall(nullptr);
    Await();
    HealthCheckRequest request;
    request.set_service("large");
    const grpc::Slice slice(request.SerializeAsString());
    call_->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
    Await();
  }
  ~Asker() {
    context_.TryCancel();
    call_->Finish(&status_, nullptr);
    Await();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) continue;
  }

 private:
  static grpc::ChannelArguments WithSmallWindows() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    return arguments;
  }
  void Await() {
    void* tag = nullptr;
    bool ok = false;
    EXPECT_EQ(queue_.AsyncNext(&tag, &ok, std::chrono::system_clock::now() + kPatience),
              grpc::CompletionQueue::GOT_EVENT);
  }

  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  grpc::Status status_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

TEST(Answers, ThatNobodyTakesHoldTheirBytesUntilTheyAreGivenUp) {
  LoopOptions options;
  options.bytes_in_flight_max = 4 * kMiB;
  options.unary_deadline = std::chrono::milliseconds(300);
  options.late_answer_max = std::chrono::milliseconds(100);
  Served served({Large()}, options);
  const Asker asker(served.loop().port());
  served.ends.Await(1);
  const grpc::Status refused = served.Call();
  EXPECT_EQ(InfoOf(refused).reason(), "OVERLOADED");
  EXPECT_EQ(InfoOf(refused).metadata().at("share"), std::to_string(kMiB));
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!served.Call().ok()) ASSERT_LT(std::chrono::steady_clock::now(), end);
}

TEST(Answers, HaveRoomBeforeTheyAreMade) {
  Held held;
  Method row = held.Row();
  row.answer_bytes = 3 * kMiB;
  LoopOptions options;
  options.bytes_in_flight_max = 4 * kMiB;
  Served served({std::move(row)}, options);
  auto waiting = std::async(std::launch::async, [&] { return served.Call("hold"); });
  held.AwaitArrival();
  EXPECT_EQ(InfoOf(served.Call()).reason(), "OVERLOADED");
  held.LetGo();
  EXPECT_TRUE(waiting.get().ok());
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!served.Call().ok()) ASSERT_LT(std::chrono::steady_clock::now(), end);
}

// What was reserved at first counts, so that asking for less, or again, costs nothing.
TEST(Answers, MayTurnOutLargerThanUsual) {
  std::vector<absl::Status> reserved;
  Method row = Unary([&](const CallHandle& call) {
    for (const size_t bytes : {kMiB, 3 * kMiB, 3 * kMiB, kMiB, 100 * kMiB}) {
      reserved.push_back(call.call().Reserve(bytes));
    }
    call.Answer(absl::OkStatus());
  });
  row.answer_bytes = kMiB;
  LoopOptions options;
  options.bytes_in_flight_max = 8 * kMiB;
  Served served({std::move(row), Streaming(Echo)}, options);
  // Somebody else is there, so that no rule for who is alone applies.
  grpc::ClientContext context;
  const auto stream = served.stream().ServerReflectionInfo(&context);
  ServerReflectionRequest request;
  ServerReflectionResponse response;
  EXPECT_TRUE(stream->Write(request));
  EXPECT_TRUE(stream->Read(&response));
  EXPECT_TRUE(served.Call().ok());
  ASSERT_EQ(reserved.size(), 5u);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(reserved[static_cast<size_t>(i)].ok()) << i;
  EXPECT_EQ(ReasonOf(reserved.back()), ErrorReason::kOverloaded);
  context.TryCancel();
}

// A stream that floods its caller.
Method Flooding(std::promise<void>& closed) {
  class Handler final : public StreamHandler {
   public:
    Handler(Stream& stream, std::promise<void>& closed) : stream_(stream), closed_(closed) {}
    void OnMessage(const google::protobuf::MessageLite& /*message*/) override {
      for (int i = 0; i < 4; ++i) Echo(std::string(kMiB, 'x'), stream_);
    }
    void OnLastMessage() override {}
    void OnClosed() override { closed_.set_value(); }

   private:
    Stream& stream_;
    std::promise<void>& closed_;
  };
  Method method = Streaming(Echo);
  method.open = [&closed](Stream& stream) { return std::make_unique<Handler>(stream, closed); };
  return method;
}

TEST(Answers, OfAStreamThatNobodyTakesEndIt) {
  std::promise<void> closed;
  LoopOptions options;
  options.stream_message_max = std::chrono::milliseconds(300);
  Served served({Flooding(closed)}, options);
  grpc::ClientContext context;
  const auto stream = served.stream().ServerReflectionInfo(&context);
  EXPECT_TRUE(stream->Write(ServerReflectionRequest()));
  EXPECT_EQ(closed.get_future().wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(served.ends.Await(1).front().reason, ErrorReason::kCancelled);
  context.TryCancel();
}

TEST(Answers, OfAStreamCountAsInFlight) {
  std::promise<void> closed;
  LoopOptions options;
  options.bytes_in_flight_max = 4 * kMiB;
  Served served({Flooding(closed), Answering()}, options);
  EXPECT_TRUE(served.Call().ok());
  grpc::ClientContext context;
  const auto stream = served.stream().ServerReflectionInfo(&context);
  EXPECT_TRUE(stream->Write(ServerReflectionRequest()));
  const auto end = std::chrono::steady_clock::now() + kPatience;
  grpc::Status status;
  while ((status = served.Call()).ok()) ASSERT_LT(std::chrono::steady_clock::now(), end);
  EXPECT_EQ(InfoOf(status).reason(), "OVERLOADED");
  context.TryCancel();
  EXPECT_EQ(closed.get_future().wait_for(kPatience), std::future_status::ready);
  while (!served.Call().ok()) ASSERT_LT(std::chrono::steady_clock::now(), end);
}

// Streams of which a caller may open any number, and which have no end.
TEST(Answers, FindRoomHoweverManyOperationalStreamsAreOpen) {
  Method operational = Streaming(Echo);
  operational.operational = true;
  LoopOptions options;
  options.bytes_in_flight_max = kMiB / 4;
  Served served({std::move(operational), Answering()}, options);
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<
      std::unique_ptr<grpc::ClientReaderWriter<ServerReflectionRequest, ServerReflectionResponse>>>
      streams;
  int opened = 0;
  for (int i = 0; i < 40; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    streams.push_back(served.stream().ServerReflectionInfo(contexts.back().get()));
    ServerReflectionResponse response;
    streams.back()->Write(ServerReflectionRequest());
    opened += streams.back()->Read(&response);
  }
  EXPECT_GT(opened, 0);
  EXPECT_LT(opened, 40);
  const grpc::Status status = served.Call();
  EXPECT_TRUE(status.ok()) << status.error_message();
  for (const auto& context : contexts) context->TryCancel();
}

TEST(Answers, ThatHoldAllTheRoomLeaveNoneForAStreamsMessages) {
  Held held;
  Method row = held.Row();
  row.answer_bytes = 3 * kMiB;
  LoopOptions options;
  options.bytes_in_flight_max = 8 * kMiB;
  Served served({std::move(row), Streaming(Echo)}, options);
  grpc::ClientContext context;
  const auto stream = served.stream().ServerReflectionInfo(&context);
  ServerReflectionRequest request;
  ServerReflectionResponse response;
  EXPECT_TRUE(stream->Write(request));
  EXPECT_TRUE(stream->Read(&response));
  auto waiting = std::async(std::launch::async, [&] { return served.Call("hold"); });
  held.AwaitArrival();
  request.set_list_services(std::string(2 * kMiB, 'x'));
  EXPECT_TRUE(stream->Write(request));
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(InfoOf(stream->Finish()).reason(), "OVERLOADED");
  held.LetGo();
  EXPECT_TRUE(waiting.get().ok());
}

// A committer whose disk takes as long as the test likes.
class SlowCommitter final : public store::CooperativeCommitter {
 public:
  void Join() override {}
  void Leave() override {}
  bool WorkWaits() const override { return work_; }
  void CommitOneGroup() override {
    work_ = false;
    committing_.set_value();
    EXPECT_EQ(let_go_.get_future().wait_for(kPatience), std::future_status::ready);
  }

  std::atomic<bool> work_ = false;
  std::promise<void> committing_;
  std::promise<void> let_go_;
};

TEST(Answers, DoNotWaitForADiskThatStandsStill) {
  SlowCommitter committer;
  security::Access access;
  app::ThreadPool executor(1);
  LoopOptions options;
  options.listener.listen = "127.0.0.1:0";
  Method method = Unary([&](const CallHandle& call) {
    if (static_cast<const HealthCheckRequest&>(call.request()).service() == "write") {
      committer.work_ = true;
    }
    call.Answer(absl::OkStatus());
  });
  auto loop = ServerLoop::Start(options, {std::move(method)}, {executor, access, &committer, {}});
  ASSERT_TRUE(loop.ok());
  const auto stub = grpc::health::v1::Health::NewStub(grpc::CreateChannel(
      "127.0.0.1:" + std::to_string((*loop)->port()), grpc::InsecureChannelCredentials()));
  const auto call = [&](const char* text) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience / 3);
    HealthCheckRequest request;
    request.set_service(text);
    HealthCheckResponse response;
    return stub->Check(&context, request, &response);
  };
  EXPECT_TRUE(call("write").ok());
  EXPECT_EQ(committer.committing_.get_future().wait_for(kPatience), std::future_status::ready);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(call("read").ok()) << i;
  committer.let_go_.set_value();
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(call("read").ok()) << i;
  (*loop)->Shutdown(kPatience);
}

}  // namespace
}  // namespace strata::server
