// The event loop with handlers of the tests' own: it knows no service, only the rows of its table.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
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
#include "service/server/admission.h"
#include "service/server/server_loop.h"
#include "tests/server/served.h"

namespace strata::server {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::Lt;
using testing::Pointee;
using testing::Property;
using testing::StartsWith;

// What a handler is told of a call; the name of the method goes with the loop.
struct Told {
  std::string method;
  CallInfo info;
};

// What handlers of both kinds are told of calls with this header, if it is not empty.
std::vector<Told> ToldWith(const security::Rules& rules, const std::string& authorization) {
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
                 })});
  served.access.Use(rules);
  grpc::ClientContext contexts[2];
  if (!authorization.empty()) {
    for (grpc::ClientContext& context : contexts) {
      context.AddMetadata("authorization", authorization);
    }
  }
  EXPECT_TRUE(served.Call("", &contexts[0]).ok());
  grpc::Status status;
  served.Exchange({"a"}, &status, &contexts[1]);
  EXPECT_TRUE(status.ok());
  return told;
}

auto Says(const char* method, const std::string& caller, const std::string& principal) {
  return AllOf(
      Field(&Told::method, method),
      Field(&Told::info, AllOf(Field(&CallInfo::peer, StartsWith("ipv4:127.0.0.1:")),
                               Field(&CallInfo::caller, Pointee(Property(&Caller::name, caller))),
                               Field(&CallInfo::identity,
                                     Pointee(Field(&security::Identity::principal, principal))),
                               Field(&CallInfo::deadline, Lt(CallInfo::Time::max())))));
}

TEST(CallInfos, TellHandlersOfBothKindsWhoCalls) {
  EXPECT_THAT(ToldWith({}, ""),
              ElementsAre(Says(kUnary, "127.0.0.1", ""), Says(kStream, "127.0.0.1", "")));
}

constexpr char kToken[] = "strata_of_anna";

security::Rules RulesWithTheToken() {
  const std::string line = *security::TokenLine("anna", kToken, std::nullopt);
  return {std::make_shared<const security::Tokens>(*security::Tokens::Parse(line, 0)), nullptr};
}

TEST(CallInfos, TellWhomTheTokenStandsFor) {
  EXPECT_THAT(
      ToldWith(RulesWithTheToken(), std::string("Bearer ") + kToken),
      ElementsAre(Says(kUnary, "user:anna", "user:anna"), Says(kStream, "user:anna", "user:anna")));
}

// A proxy in front may have tokens of its own.
TEST(CallInfos, TellNothingOfTokensThatNobodyAskedFor) {
  EXPECT_THAT(ToldWith({}, std::string("Bearer ") + kToken),
              ElementsAre(Says(kUnary, "127.0.0.1", ""), Says(kStream, "127.0.0.1", "")));
}

TEST(Identities, AreLookedAtAnewWithEachMessageOfAStream) {
  Method streaming = Streaming(Echo);
  streaming.permission = security::Permission::kPrincipal;
  Served served({streaming});
  served.access.Use(RulesWithTheToken());
  grpc::ClientContext context;
  context.AddMetadata("authorization", std::string("Bearer ") + kToken);
  const auto stream = served.stream().ServerReflectionInfo(&context);
  ServerReflectionRequest request;
  ServerReflectionResponse response;
  EXPECT_TRUE(stream->Write(request));
  EXPECT_TRUE(stream->Read(&response));
  served.access.Use({std::make_shared<const security::Tokens>(), nullptr});
  EXPECT_TRUE(stream->Write(request));
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(InfoOf(stream->Finish()).reason(), "CREDENTIALS_INVALID");
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
  security::Access access;
  Admission admission(10'000, 1000, access);
  const Recognized nobody{std::make_shared<Caller>("somewhere"),
                          std::make_shared<security::Identity>(), absl::OkStatus()};
  Method operational = Streaming(Echo);
  operational.operational = true;
  const auto reason = [&](const Method& of) { return ReasonOf(admission.Admit(of, nobody)); };
  EXPECT_EQ(reason(Answering()), std::nullopt);
  EXPECT_EQ(reason(Streaming(Echo)), std::nullopt);
  admission.Drain();
  EXPECT_EQ(reason(Answering()), ErrorReason::kDraining);
  EXPECT_EQ(reason(Streaming(Echo)), ErrorReason::kDraining);
  EXPECT_EQ(reason(operational), std::nullopt);
}

// A row whose requests concern nothing is for nobody but whom its permission is granted on the
// server itself.
TEST(Admissions, WhatConcernsNothingIsNotFree) {
  security::Access access;
  access.Use({nullptr, std::make_shared<const security::Policy>(*security::Policy::Parse(
                           R"({"grants": [{"principals": ["dns:anna"], "role": "admin",
                                           "resources": ["collection/*"]},
                                          {"principals": ["dns:root"], "role": "operator",
                                           "resources": ["server"]}]})"))});
  const Admission admission(10'000, 1000, access);
  const Method method = Answering();
  const auto reason = [&](const char* principal) {
    CallInfo info;
    info.identity = std::make_shared<const security::Identity>(security::Identity{principal, ""});
    return ReasonOf(admission.Authorize(method, info, HealthCheckRequest()));
  };
  EXPECT_EQ(reason("dns:anna"), ErrorReason::kPermissionDenied);
  EXPECT_EQ(reason("dns:root"), std::nullopt);
}

TEST(Admissions, WhatIsNotAdmittedIsNotHandled) {
  Held held;
  std::atomic<int> opened = 0;
  Method streaming = Streaming(Echo);
  streaming.open = [&opened, open = streaming.open](Stream& stream) {
    ++opened;
    return open(stream);
  };
  Served served({held.Row(), std::move(streaming)});
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

// It is told so: gRPC would cut it off with its connection.
// Says whether there is room for as many bytes as it hears, and when there may be.
class Asking final : public HandlerOf<ServerReflectionRequest> {
 public:
  explicit Asking(Stream& stream) : stream_(stream) {}

  int64_t unanswered_max() const override { return 100; }
  void OnRequest(const ServerReflectionRequest& request) override {
    const size_t bytes = std::stoul(request.list_services());
    if (bytes == 0) stream_.KeepRoom(0);
    Echo(bytes == 0 || stream_.TakeRoom(bytes) ? "room" : "no room", stream_);
  }
  void OnRoom() override { Echo("look again", stream_); }
  void OnLastMessage() override { stream_.Finish(absl::OkStatus()); }
  void OnClosed() override {}

 private:
  Stream& stream_;
};

TEST(Streams, ThatFindNoRoomAreToldWhenThereMayBe) {
  Method method = Streaming(Echo);
  method.open = [](Stream& stream) { return std::make_unique<Asking>(stream); };
  LoopOptions options;
  options.bytes_in_flight_max = 4 << 20;
  Served served({method}, options);
  // The message that comes next.
  const auto next = [](auto& stream) {
    ServerReflectionResponse response;
    EXPECT_TRUE(stream->Read(&response));
    return response.valid_host();
  };
  const auto ask = [&](auto& stream, int64_t bytes) {
    ServerReflectionRequest request;
    request.set_list_services(std::to_string(bytes));
    EXPECT_TRUE(stream->Write(request));
    return next(stream);
  };
  grpc::ClientContext contexts[3];
  for (grpc::ClientContext& context : contexts) {
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
  }
  const auto large = served.stream().ServerReflectionInfo(&contexts[0]);
  const auto small = served.stream().ServerReflectionInfo(&contexts[1]);
  const auto gone = served.stream().ServerReflectionInfo(&contexts[2]);
  EXPECT_EQ(ask(large, 1'900'000), "room");
  EXPECT_EQ(ask(gone, 1 << 20), "no room");
  EXPECT_EQ(ask(small, 1 << 20), "no room");
  EXPECT_EQ(ask(small, 1 << 20), "no room");  // and comes into the line once
  contexts[2].TryCancel();
  EXPECT_EQ(gone->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(ask(large, 0), "room");
  EXPECT_EQ(next(small), "look again");
  EXPECT_EQ(ask(small, 1 << 20), "room");
  // What a stream holds goes with it.
  EXPECT_EQ(ask(large, 1'900'000), "no room");
  small->WritesDone();
  EXPECT_TRUE(small->Finish().ok());
  EXPECT_EQ(next(large), "look again");
  large->WritesDone();
  EXPECT_TRUE(large->Finish().ok());
}

TEST(Streams, ThatAreOldEndWithAReason) {
  LoopOptions options;
  options.connection_age_max = std::chrono::seconds(1);
  options.unary_deadline = std::chrono::milliseconds(100);
  Served served({Streaming(Echo)}, options);
  for (int i = 0; i < 2; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    grpc::Status status;
    EXPECT_THAT(served.Exchange({"stay"}, &status), ElementsAre("stay"));
    EXPECT_GE(std::chrono::steady_clock::now() - begin, options.connection_age_max);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(served.ends.Await(static_cast<size_t>(i) + 1).back().reason, ErrorReason::kDraining);
  }
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

// Begins when it is made; a queue hears of its end.
struct AsyncCheck {
  AsyncCheck(Served& served, grpc::CompletionQueue& queue) {
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    reader = served.unary().AsyncCheck(&context, HealthCheckRequest(), &queue);
    reader->Finish(&response, &status, this);
  }

  grpc::ClientContext context;
  HealthCheckResponse response;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncResponseReader<HealthCheckResponse>> reader;
};

grpc::StatusCode NextCode(grpc::CompletionQueue& queue) {
  void* tag = nullptr;
  bool ok = false;
  if (!queue.Next(&tag, &ok)) return grpc::StatusCode::UNKNOWN;
  return static_cast<AsyncCheck*>(tag)->status.error_code();
}

// Those at work and those that wait for their turn.
TEST(Scans, AreClosedWhenTheServerEnds) {
  std::atomic<int> at_work = 0;
  Served served({Endless(at_work)});
  EXPECT_EQ(served.CallUnknown().error_code(), grpc::StatusCode::UNIMPLEMENTED);  // connects
  grpc::CompletionQueue queue;
  std::deque<AsyncCheck> calls;
  for (int i = 0; i < 5; ++i) calls.emplace_back(served, queue);
  // Its answer says that those before it on the connection have arrived: gRPC cancels what arrives
  // while it ends.
  EXPECT_EQ(served.CallUnknown().error_code(), grpc::StatusCode::UNIMPLEMENTED);
  ASSERT_TRUE(Becomes(at_work, 1));  // of two threads, one is left to others
  served.loop().Shutdown(std::chrono::milliseconds(0));
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(NextCode(queue), grpc::StatusCode::UNAVAILABLE);
  }
  EXPECT_TRUE(Becomes(at_work, 0));
}

TEST(Scans, ThatWriteMayHaveWrittenWhenTheServerEnds) {
  std::atomic<int> at_work = 0;
  Method scan = Endless(at_work);
  scan.writes = true;
  Served served({std::move(scan)});
  auto call = std::async(std::launch::async, [&] { return served.Call(); });
  ASSERT_TRUE(Becomes(at_work, 1));
  served.loop().Shutdown(std::chrono::milliseconds(0));
  EXPECT_EQ(call.get().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(served.ends.Await(1).front().reason, ErrorReason::kOutcomeUnknown);
}

TEST(Scans, BeyondAThousandWaitingAreRefused) {
  std::atomic<int> at_work = 0;
  LoopOptions options;
  options.streams_per_connection_max = 2000;
  Served served({Endless(at_work)}, options);
  grpc::CompletionQueue queue;
  constexpr int kCalls = 1011;
  std::deque<AsyncCheck> calls;
  for (int i = 0; i < kCalls; ++i) calls.emplace_back(served, queue);
  for (int i = 0; i < 10; ++i) {  // one is at work, a thousand wait
    EXPECT_EQ(NextCode(queue), grpc::StatusCode::RESOURCE_EXHAUSTED);
  }
  served.loop().Shutdown(std::chrono::milliseconds(0));
  for (int i = 10; i < kCalls; ++i) {
    EXPECT_EQ(NextCode(queue), grpc::StatusCode::UNAVAILABLE);
  }
}

}  // namespace
}  // namespace strata::server
