// The event loop with handlers of the tests' own: it knows no service, only the rows of its table.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "grpc/health/v1/health.grpc.pb.h"
#include "grpc/reflection/v1/reflection.grpc.pb.h"
#include "grpcpp/security/credentials.h"
#include "schemas/base/error.h"
#include "service/app/executor.h"
#include "service/server/admission.h"
#include "service/server/server_loop.h"

namespace strata::server {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using grpc::reflection::v1::ServerReflectionRequest;
using grpc::reflection::v1::ServerReflectionResponse;
using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::Lt;
using testing::Pair;
using testing::Pointee;
using testing::Property;
using testing::StartsWith;
using testing::UnorderedElementsAre;

constexpr std::chrono::seconds kPatience{30};
constexpr char kUnary[] = "grpc.health.v1.Health/Check";
constexpr char kStream[] = "grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

// A unary method that the test handles.
Method Unary(std::function<void(CallHandle call)> handle) {
  Method method;
  method.service = "grpc.health.v1.Health";
  method.name = "Check";
  method.make_request = [](google::protobuf::Arena* arena) -> google::protobuf::MessageLite* {
    return google::protobuf::Arena::CreateMessage<HealthCheckRequest>(arena);
  };
  method.make_response = [](google::protobuf::Arena* arena) -> google::protobuf::MessageLite* {
    return google::protobuf::Arena::CreateMessage<HealthCheckResponse>(arena);
  };
  method.handle = std::move(handle);
  return method;
}

Method Answering() {
  return Unary([](const CallHandle& call) { call.Answer(absl::OkStatus()); });
}

// A stream whose every message `take` hears; it ends when the caller ends it, unless "stay" came.
class Hearing final : public StreamHandler {
 public:
  using Take = std::function<void(const std::string& text, Stream& stream)>;

  Hearing(Take take, Stream& stream) : take_(std::move(take)), stream_(stream) {}

  int64_t unanswered_max() const override { return 100; }
  void OnMessage(std::string_view bytes) override {
    ServerReflectionRequest request;
    EXPECT_TRUE(request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
    stays_ = stays_ || request.list_services() == "stay";
    take_(request.list_services(), stream_);
  }
  void OnLastMessage() override {
    if (!stays_) stream_.Finish(absl::OkStatus());
  }
  void OnClosed() override {}

 private:
  const Take take_;
  Stream& stream_;
  bool stays_ = false;
};

Method Streaming(Hearing::Take take, Method::Kind kind = Method::Kind::kRead) {
  Method method;
  method.kind = kind;
  method.service = "grpc.reflection.v1.ServerReflection";
  method.name = "ServerReflectionInfo";
  method.open = [take = std::move(take)](Stream& stream) {
    return std::make_unique<Hearing>(take, stream);
  };
  return method;
}

void Echo(const std::string& text, Stream& stream) {
  ServerReflectionResponse response;
  response.set_valid_host(text);
  stream.Send(response);
}

// How calls ended.
class Ends final : public observability::CallObserver {
 public:
  struct One {
    std::string method;
    std::optional<ErrorReason> reason;
    size_t request_bytes = 0;
    size_t response_bytes = 0;
  };

  void OnEnd(const observability::CallEnd& end) override {
    EXPECT_LE(end.arrival, end.end);
    const std::lock_guard lock(mutex_);
    all_.push_back(
        {std::string(end.method), ReasonOf(end.status), end.request_bytes, end.response_bytes});
    changed_.notify_all();
  }

  // Once there are so many.
  std::vector<One> Await(size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kPatience, [&] { return all_.size() >= count; }));
    return all_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<One> all_;
};

// A loop on a free port, with a connection to it.
class Served {
 public:
  explicit Served(std::vector<Method> methods, LoopOptions options = {},
                  const std::shared_ptr<grpc::ChannelCredentials>& credentials =
                      grpc::InsecureChannelCredentials(),
                  bool reads_block = false) {
    options.listener.listen = "127.0.0.1:0";
    auto loop = ServerLoop::Start(options, std::move(methods),
                                  {executor_,
                                   /*committer=*/nullptr,
                                   {&ends, &more_ends},
                                   reads_block ? &readers_ : nullptr,
                                   /*executor_threads=*/2});
    EXPECT_TRUE(loop.ok()) << loop.status();
    loop_ = *std::move(loop);
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto channel = grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(loop_->port()),
                                                   credentials, arguments);
    unary_ = grpc::health::v1::Health::NewStub(channel);
    stream_ = grpc::reflection::v1::ServerReflection::NewStub(channel);
  }

  ServerLoop& loop() { return *loop_; }

  grpc::Status Call(const std::string& text = "", grpc::ClientContext* context = nullptr) {
    grpc::ClientContext own;
    if (context == nullptr) context = &own;
    Limit(*context);
    HealthCheckRequest request;
    request.set_service(text);
    HealthCheckResponse response;
    return unary_->Check(context, request, &response);
  }

  // Sends the texts, and returns what came back before the end.
  std::vector<std::string> Exchange(const std::vector<std::string>& texts, grpc::Status* status,
                                    grpc::ClientContext* context = nullptr) {
    grpc::ClientContext own;
    if (context == nullptr) context = &own;
    Limit(*context);
    const auto stream = stream_->ServerReflectionInfo(context);
    for (const std::string& text : texts) {
      ServerReflectionRequest request;
      request.set_list_services(text);
      stream->Write(request);
    }
    stream->WritesDone();
    std::vector<std::string> answers;
    ServerReflectionResponse response;
    while (stream->Read(&response)) answers.push_back(response.valid_host());
    *status = stream->Finish();
    return answers;
  }

  grpc::health::v1::Health::Stub& unary() { return *unary_; }
  grpc::reflection::v1::ServerReflection::Stub& stream() { return *stream_; }

  // Calls a method of a known service that is not in the table.
  grpc::Status CallUnknown() {
    grpc::ClientContext context;
    Limit(context);
    return unary_->Watch(&context, HealthCheckRequest())->Finish();
  }

  Ends ends;
  Ends more_ends;

 private:
  // So that a mistake fails the test instead of hanging it.
  static void Limit(grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
  }

  app::ThreadPool executor_{2};
  app::ThreadPool readers_{2};
  std::unique_ptr<ServerLoop> loop_;
  std::unique_ptr<grpc::health::v1::Health::Stub> unary_;
  std::unique_ptr<grpc::reflection::v1::ServerReflection::Stub> stream_;
};

// What a handler is told of a call; the name of the method goes with the loop.
struct Told {
  std::string method;
  CallInfo info;
};

// What handlers of both kinds are told of a call that says who it is.
std::vector<Told> ToldWith(const LoopOptions& options,
                           const std::shared_ptr<grpc::ChannelCredentials>& credentials =
                               grpc::InsecureChannelCredentials()) {
  std::vector<Told> told;
  const auto hear = [&told](const CallInfo& info) {
    told.push_back({std::string(info.method), info});
  };
  Served served({Unary([&](const CallHandle& call) {
                   hear(call.call().info());
                   call.Answer(absl::OkStatus());
                 }),
                 Streaming([&](const std::string&, Stream& stream) {
                   hear(stream.info());
                   stream.Finish(absl::OkStatus());
                 })},
                options, credentials);
  grpc::ClientContext contexts[2];
  for (grpc::ClientContext& context : contexts) {
    context.AddMetadata("x-name", "one");
    context.AddMetadata("x-name", "two");
    context.AddMetadata("x-other", "three");
  }
  EXPECT_TRUE(served.Call("", &contexts[0]).ok());
  grpc::Status status;
  served.Exchange({"a"}, &status, &contexts[1]);
  EXPECT_TRUE(status.ok());
  return told;
}

TEST(CallInfos, TellHandlersOfBothKindsWhoCallsAndWhatWasAskedFor) {
  LoopOptions options;
  options.metadata_told = {"x-name", "x-absent"};
  const std::vector<Told> told = ToldWith(options);
  const auto says = [](const char* method) {
    return AllOf(
        Field(&Told::method, method),
        Field(&Told::info,
              AllOf(Field(&CallInfo::peer, StartsWith("ipv4:127.0.0.1:")),
                    Field(&CallInfo::caller,
                          Pointee(Property(&Caller::address, std::string("127.0.0.1")))),
                    Field(&CallInfo::metadata,
                          UnorderedElementsAre(Pair("x-name", "one"), Pair("x-name", "two"))),
                    Field(&CallInfo::identity, IsEmpty()),
                    Field(&CallInfo::deadline, Lt(CallInfo::Time::max())))));
  };
  EXPECT_THAT(told, ElementsAre(says(kUnary), says(kStream)));
}

TEST(CallInfos, TellNothingThatNobodyAskedFor) {
  const auto says_little = Field(&Told::info, AllOf(Field(&CallInfo::metadata, IsEmpty()),
                                                    Field(&CallInfo::identity, IsEmpty())));
  EXPECT_THAT(ToldWith({}), ElementsAre(says_little, says_little));
}

// Local credentials vouch for every connection from this machine as "local".
TEST(CallInfos, TellWhomTheCredentialsVouchFor) {
  LoopOptions options;
  options.credentials = grpc::experimental::LocalServerCredentials(LOCAL_TCP);
  const auto is_local = Field(&Told::info, Field(&CallInfo::identity, "local"));
  EXPECT_THAT(ToldWith(options, grpc::experimental::LocalCredentials(LOCAL_TCP)),
              ElementsAre(is_local, is_local));
}

TEST(CallObservers, EachHearsOfEveryEndOnce) {
  Served served({Unary([](const CallHandle& call) {
                   const auto& request = static_cast<const HealthCheckRequest&>(call.request());
                   if (request.service() == "bad") {
                     return call.Answer(Error(ErrorReason::kInvalidField, "bad"));
                   }
                   auto& response = static_cast<HealthCheckResponse&>(call.response());
                   response.set_status(HealthCheckResponse::SERVING);
                   call.Answer(absl::OkStatus());
                 }),
                 Streaming(Echo)});
  EXPECT_TRUE(served.Call("12345").ok());
  EXPECT_EQ(served.Call("bad").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  grpc::Status status;
  EXPECT_THAT(served.Exchange({"1", "22"}, &status), ElementsAre("1", "22"));
  EXPECT_TRUE(status.ok());
  {
    grpc::ClientContext context;
    const auto stream = served.stream().ServerReflectionInfo(&context);
    ServerReflectionRequest request;
    request.set_list_services("stay");
    stream->Write(request);
    ServerReflectionResponse response;
    EXPECT_TRUE(stream->Read(&response));
    context.TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  served.ends.Await(4);
  EXPECT_EQ(served.CallUnknown().error_code(), grpc::StatusCode::UNIMPLEMENTED);

  const auto ended = [](const char* method, std::optional<ErrorReason> reason, size_t request,
                        size_t response) {
    return AllOf(Field(&Ends::One::method, method), Field(&Ends::One::reason, reason),
                 Field(&Ends::One::request_bytes, request),
                 Field(&Ends::One::response_bytes, response));
  };
  // A text of n bytes takes n and 2.
  const auto all = ElementsAre(
      ended(kUnary, std::nullopt, 7, 2), ended(kUnary, ErrorReason::kInvalidField, 5, 0),
      ended(kStream, std::nullopt, 7, 7), ended(kStream, ErrorReason::kCancelled, 6, 6),
      ended("unknown", ErrorReason::kUnknownMethod, 0, 0));
  EXPECT_THAT(served.ends.Await(5), all);
  served.loop().Shutdown(std::chrono::milliseconds(0));
  EXPECT_THAT(served.ends.Await(5), all);
  EXPECT_THAT(served.more_ends.Await(5), all);
}

TEST(Admissions, OfCallsAndStreamsFollowOneRule) {
  Admission admission(10'000, 1000);
  Method operational = Streaming(Echo);
  operational.operational = true;
  const auto reason = [&](const Method& of) { return ReasonOf(admission.Admit(of, CallInfo())); };
  for (const Method& each : {Answering(), Streaming(Echo)}) {
    EXPECT_EQ(reason(each), std::nullopt);
    admission.Enter(1001);
    EXPECT_EQ(reason(each), ErrorReason::kOverloaded);
    EXPECT_EQ(reason(operational), std::nullopt);
    admission.Leave(1);
    EXPECT_EQ(reason(each), std::nullopt);
    admission.Leave(1000);
  }
  admission.Drain();
  EXPECT_EQ(reason(Answering()), ErrorReason::kDraining);
  EXPECT_EQ(reason(Streaming(Echo)), ErrorReason::kDraining);
  EXPECT_EQ(reason(operational), std::nullopt);
}

// A unary call that an answer waits for, until the test lets it go.
class Held {
 public:
  Method Row() {
    return Unary([this](CallHandle call) {
      if (static_cast<const HealthCheckRequest&>(call.request()).service() != "hold") {
        return call.Answer(absl::OkStatus());
      }
      call_.emplace(std::move(call));
      arrived_.set_value();
    });
  }
  void AwaitArrival() {
    EXPECT_EQ(arrived_.get_future().wait_for(kPatience), std::future_status::ready);
  }
  void LetGo() { std::exchange(call_, std::nullopt)->Answer(absl::OkStatus()); }

 private:
  std::promise<void> arrived_;
  std::optional<CallHandle> call_;
};

TEST(Admissions, WhatIsNotAdmittedIsNotHandled) {
  Held held;
  std::atomic<int> opened = 0;
  Method streaming = Streaming(Echo);
  streaming.open = [&opened, open = streaming.open](Stream& stream) {
    ++opened;
    return open(stream);
  };
  LoopOptions options;
  options.bytes_in_flight_max = 1000;
  Served served({held.Row(), std::move(streaming)}, options);
  auto waiting = std::async(std::launch::async, [&] { return served.Call("hold"); });
  held.AwaitArrival();
  std::thread shutdown([&] { served.loop().Shutdown(kPatience); });
  grpc::Status status;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  int admitted = 0;
  do {
    served.Exchange({"a"}, &status);
    admitted += status.ok();
  } while (status.ok() && std::chrono::steady_clock::now() < end);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(opened, admitted);
  EXPECT_EQ(served.ends.Await(static_cast<size_t>(admitted) + 1).back().reason,
            ErrorReason::kDraining);
  held.LetGo();
  EXPECT_TRUE(waiting.get().ok());
  shutdown.join();
}

// The handler of a stream waits here for a call that the loop must answer meanwhile.
void ExpectLoopIsFree(Method::Kind kind, bool reads_block) {
  std::promise<void> called;
  std::shared_future<void> heard = called.get_future().share();
  Method operational = Unary([&](const CallHandle& call) {
    called.set_value();
    call.Answer(absl::OkStatus());
  });
  operational.operational = true;
  std::promise<void> entered;
  Served served({std::move(operational), Streaming(
                                             [&](const std::string& text, Stream& stream) {
                                               entered.set_value();
                                               EXPECT_EQ(heard.wait_for(kPatience / 3),
                                                         std::future_status::ready);
                                               Echo(text, stream);
                                             },
                                             kind)},
                {}, grpc::InsecureChannelCredentials(), reads_block);
  grpc::Status status;
  auto stream = std::async(std::launch::async, [&] { return served.Exchange({"a"}, &status); });
  entered.get_future().wait();
  EXPECT_TRUE(served.Call().ok());
  EXPECT_THAT(stream.get(), ElementsAre("a"));
  EXPECT_TRUE(status.ok());
}

TEST(Streams, ThatBlockHoldUpNobodyWhereReadsBlock) {
  ExpectLoopIsFree(Method::Kind::kRead, true);
  ExpectLoopIsFree(Method::Kind::kWrite, true);
}

TEST(Streams, ThatVisitManyRecordsHoldUpNobody) { ExpectLoopIsFree(Method::Kind::kScan, false); }

// As on the loop: one message after the other, in their order.
TEST(Streams, OnTheExecutorHearOneThingAtATime) {
  std::atomic<int> inside = 0;
  std::atomic<int> at_once = 0;
  Served served({Streaming(
      [&](const std::string& text, Stream& stream) {
        at_once = std::max(at_once.load(), ++inside);
        Echo(text, stream);
        --inside;
      },
      Method::Kind::kScan)});
  std::vector<std::string> texts;
  for (int i = 0; i < 500; ++i) texts.push_back(std::to_string(i));
  std::vector<std::thread> clients;
  for (int c = 0; c < 2; ++c) {
    clients.emplace_back([&] {
      grpc::Status status;
      EXPECT_EQ(served.Exchange(texts, &status), texts);
      EXPECT_TRUE(status.ok());
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_LE(at_once, 2);  // one of each stream
}

// Callers that leave while their handlers are at work, and a server that stops under them.
TEST(Streams, OnTheExecutorEndHoweverTheyAreLeft) {
  for (int round = 0; round < 20; ++round) {
    Served served({Streaming(Echo, Method::Kind::kScan)});
    std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
    std::vector<std::unique_ptr<
        grpc::ClientReaderWriter<ServerReflectionRequest, ServerReflectionResponse>>>
        streams;
    for (int i = 0; i < 20; ++i) {
      contexts.push_back(std::make_unique<grpc::ClientContext>());
      streams.push_back(served.stream().ServerReflectionInfo(contexts.back().get()));
      ServerReflectionRequest request;
      request.set_list_services("stay");
      streams.back()->Write(request);
      ServerReflectionResponse response;
      EXPECT_TRUE(streams.back()->Read(&response));
      for (int m = 0; m < 5; ++m) streams.back()->Write(request);
    }
    for (size_t i = 0; i < contexts.size(); i += 2) contexts[i]->TryCancel();
    served.loop().Shutdown(std::chrono::milliseconds(0));
    for (const auto& stream : streams) {
      ServerReflectionResponse response;
      while (stream->Read(&response)) continue;
      EXPECT_FALSE(stream->Finish().ok());
    }
    EXPECT_EQ(served.ends.Await(20).size(), 20u);
  }
}

// A scan that goes on until nobody waits for it any more.
Method Endless(std::atomic<int>& at_work) {
  Method method = Unary([&at_work](const CallHandle& call) {
    ++at_work;
    while (!call.call().closed()) std::this_thread::yield();
    --at_work;
  });
  method.kind = Method::Kind::kScan;
  return method;
}

bool Becomes(const std::atomic<int>& value, int wanted) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (value != wanted && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return value == wanted;
}

TEST(Scans, AreClosedWhenTheirCallersDeadlinePasses) {
  std::atomic<int> at_work = 0;
  Served served({Endless(at_work)});
  HealthCheckRequest request;
  HealthCheckResponse response;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
  EXPECT_EQ(served.unary().Check(&context, request, &response).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(Becomes(at_work, 0));
  EXPECT_EQ(served.ends.Await(1).back().reason, ErrorReason::kCancelled);
}

// Those at work and those that wait for their turn.
TEST(Scans, AreClosedWhenTheServerEnds) {
  std::atomic<int> at_work = 0;
  Served served({Endless(at_work)});
  std::vector<std::future<grpc::Status>> calls;
  for (int i = 0; i < 5; ++i) {
    calls.push_back(std::async(std::launch::async, [&] { return served.Call(); }));
  }
  ASSERT_TRUE(Becomes(at_work, 1));  // of two threads, one is left to others
  served.loop().Shutdown(std::chrono::milliseconds(0));
  for (auto& call : calls) EXPECT_EQ(call.get().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(Becomes(at_work, 0));
}

TEST(Scans, BeyondAThousandWaitingAreRefused) {
  std::atomic<int> at_work = 0;
  LoopOptions options;
  options.streams_per_connection_max = 2000;
  Served served({Endless(at_work)}, options);
  grpc::CompletionQueue queue;
  struct One {
    grpc::ClientContext context;
    HealthCheckResponse response;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<HealthCheckResponse>> reader;
  };
  constexpr int kCalls = 1011;
  std::vector<One> calls(kCalls);
  for (One& call : calls) {
    call.reader = served.unary().AsyncCheck(&call.context, HealthCheckRequest(), &queue);
    call.reader->Finish(&call.response, &call.status, &call);
  }
  void* tag = nullptr;
  bool ok = false;
  for (int i = 0; i < 10; ++i) {  // one is at work, a thousand wait
    ASSERT_TRUE(queue.Next(&tag, &ok));
    EXPECT_EQ(static_cast<One*>(tag)->status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  }
  served.loop().Shutdown(std::chrono::milliseconds(0));
  for (int i = 10; i < kCalls; ++i) {
    ASSERT_TRUE(queue.Next(&tag, &ok));
    EXPECT_EQ(static_cast<One*>(tag)->status.error_code(), grpc::StatusCode::UNAVAILABLE);
  }
}

}  // namespace
}  // namespace strata::server
