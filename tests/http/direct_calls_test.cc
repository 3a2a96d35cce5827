// Calls of the port with handlers of the tests' own: how each ends, and that its end is reported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "service/http/answer.h"
#include "service/http/calls.h"
#include "tests/server/served.h"

namespace strata::http_test {
namespace {

using http::CallStream;
using http::CallUnary;
using server::HealthCheckRequest;
using server::Held;
using server::LoopOptions;
using server::Served;
using server::ServerReflectionRequest;
using server::ServerReflectionResponse;
using server::Stream;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const server::Endpoint& TheOnly(Served& served) {
  return *served.loop().calls()->endpoints.front();
}

server::Arrival Somebody(Served& served, milliseconds timeout = server::kPatience) {
  server::Arrival arrival{.peer = "ipv4:10.0.0.7:51234"};
  arrival.deadline = std::chrono::steady_clock::now() + timeout;
  arrival.recognized = served.loop().calls()->Recognize(arrival.peer, {});
  return arrival;
}

bool NotGone() { return false; }

grpc::Status Call(Served& served, const std::string& text, server::Arrival arrival,
                  const http::IsGone& is_gone = NotGone) {
  HealthCheckRequest request;
  request.set_service(text);
  std::string response;
  return CallUnary(served.loop().calls(), TheOnly(served), std::move(arrival),
                   request.SerializeAsString(), is_gone, response);
}

TEST(UnaryCalls, AreReportedOnceWithTheirSizes) {
  Served served({server::Unary([](const server::CallHandle& call) {
    EXPECT_EQ(call.call().info().peer, "ipv4:10.0.0.7:51234");
    EXPECT_EQ(call.call().info().caller->name(), "10.0.0.7");
    if (static_cast<const HealthCheckRequest&>(call.request()).service() == "bad") {
      return call.Answer(Error(ErrorReason::kInvalidField, "bad"));
    }
    auto& response = static_cast<server::HealthCheckResponse&>(call.response());
    response.set_status(server::HealthCheckResponse::SERVING);
    call.Answer(absl::OkStatus());
  })});
  EXPECT_TRUE(Call(served, "12345", Somebody(served)).ok());
  EXPECT_EQ(Call(served, "bad", Somebody(served)).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const auto ends = served.ends.Await(2);
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0].method, server::kUnary);
  EXPECT_EQ(ends[0].reason, std::nullopt);
  EXPECT_EQ(ends[0].request_bytes, 7u);
  EXPECT_EQ(ends[0].response_bytes, 2u);
  EXPECT_EQ(ends[1].reason, ErrorReason::kInvalidField);
  EXPECT_EQ(ends[1].response_bytes, 0u);
}

TEST(UnaryCalls, EndAtTheirCallersDeadlineAsByGrpc) {
  Held held;
  Served served({held.Row()});
  const grpc::Status late = Call(served, "hold", Somebody(served, milliseconds(50)));
  EXPECT_EQ(late.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(late.error_message(), "Deadline Exceeded");
  EXPECT_EQ(served.ends.Await(1).front().reason, ErrorReason::kCancelled);
  held.LetGo();  // which is dropped
  const grpc::Status never = Call(served, "", Somebody(served, milliseconds(0)));
  EXPECT_EQ(never.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(served.ends.Await(1).size(), 1u);
}

TEST(UnaryCalls, EndAtTheServersDeadline) {
  Held held;
  LoopOptions options;
  options.unary_deadline = milliseconds(50);
  Served served({held.Row()}, options);
  const grpc::Status late = Call(served, "hold", Somebody(served));
  EXPECT_EQ(late.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(late.error_message(), "the server's deadline of 50 ms passed");
  EXPECT_EQ(served.ends.Await(1).front().reason, ErrorReason::kDeadlineExceeded);
  held.LetGo();
}

TEST(UnaryCalls, OfWhoIsGoneAreGivenUp) {
  Held held;
  Served served({held.Row()});
  EXPECT_EQ(Call(served, "hold", Somebody(served), [] { return true; }).error_code(),
            grpc::StatusCode::CANCELLED);
  EXPECT_EQ(served.ends.Await(1).front().reason, ErrorReason::kCancelled);
  held.LetGo();
}

TEST(UnaryCalls, EndWithTheServer) {
  for (const auto kind : {server::Method::Kind::kRead, server::Method::Kind::kWrite}) {
    Held held;
    server::Method method = held.Row();
    method.kind = kind;
    method.writes = kind == server::Method::Kind::kWrite;
    Served served({std::move(method)});
    auto call =
        std::async(std::launch::async, [&] { return Call(served, "hold", Somebody(served)); });
    held.AwaitArrival();
    grpc::Status status;
    served.loop().Shutdown(milliseconds(0), [&] { status = call.get(); });
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(served.ends.Await(1).front().reason, kind == server::Method::Kind::kRead
                                                       ? ErrorReason::kDraining
                                                       : ErrorReason::kOutcomeUnknown);
    held.LetGo();
  }
}

// The first message says how many there are; without a number it stays.
server::Method Counting(server::Method::Kind kind) {
  return server::Streaming(
      [](const std::string& text, Stream& stream) {
        if (text == "stay") return server::Echo("begin", stream);
        for (int i = 0; i < std::stoi(text); ++i) server::Echo(std::to_string(i), stream);
      },
      kind);
}

grpc::Status CallForMany(Served& served, const std::string& text, server::Arrival arrival,
                         const http::Take& take, const http::IsGone& is_gone = NotGone) {
  ServerReflectionRequest request;
  request.set_list_services(text);
  return CallStream(served.loop().calls(), TheOnly(served), std::move(arrival),
                    request.SerializeAsString(), is_gone, take);
}

std::string TextOf(const std::string& message) {
  ServerReflectionResponse response;
  EXPECT_TRUE(response.ParseFromString(message));
  return response.valid_host();
}

TEST(StreamCalls, AreTakenInTheirOrderAndReported) {
  for (const auto kind : {server::Method::Kind::kRead, server::Method::Kind::kScan}) {
    Served served({Counting(kind)});
    std::vector<std::string> taken;
    const grpc::Status status =
        CallForMany(served, "3", Somebody(served), [&](const std::string& message) {
          taken.push_back(TextOf(message));
          return true;
        });
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_THAT(taken, ElementsAre("0", "1", "2"));
    const auto end = served.ends.Await(1).front();
    EXPECT_EQ(end.method, server::kStream);
    EXPECT_EQ(end.reason, std::nullopt);
    EXPECT_EQ(end.request_bytes, 3u);
    EXPECT_EQ(end.response_bytes, 9u);
  }
}

TEST(StreamCalls, EndHoweverTheyAreLeft) {
  LoopOptions options;
  options.connection_age_max = std::chrono::seconds(2);
  for (const auto kind : {server::Method::Kind::kRead, server::Method::Kind::kScan}) {
    Served served({Counting(kind)}, options);
    const auto take = [](const std::string&) { return true; };
    EXPECT_EQ(
        CallForMany(served, "stay", Somebody(served), [](const std::string&) { return false; })
            .error_code(),
        grpc::StatusCode::CANCELLED);
    EXPECT_EQ(CallForMany(served, "stay", Somebody(served), take, [] { return true; }).error_code(),
              grpc::StatusCode::CANCELLED);
    const grpc::Status late = CallForMany(served, "stay", Somebody(served, milliseconds(50)), take);
    EXPECT_EQ(late.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
    EXPECT_EQ(late.error_message(), "Deadline Exceeded");
    const grpc::Status old = CallForMany(served, "stay", Somebody(served), take);
    EXPECT_THAT(old.error_message(), HasSubstr("maximum age"));
    auto call = std::async(std::launch::async,
                           [&] { return CallForMany(served, "stay", Somebody(served), take); });
    while (served.loop().calls()->live_calls() == 0) std::this_thread::yield();
    grpc::Status drained;
    served.loop().Shutdown(milliseconds(0), [&] { drained = call.get(); });
    EXPECT_EQ(drained.error_code(), grpc::StatusCode::UNAVAILABLE);
    const auto ends = served.ends.Await(5);
    ASSERT_EQ(ends.size(), 5u);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(ends[i].reason, ErrorReason::kCancelled) << i;
    for (size_t i = 3; i < 5; ++i) EXPECT_EQ(ends[i].reason, ErrorReason::kDraining) << i;
  }
}

TEST(Answers, AreWrittenAsHttpHasThem) {
  http::Answer answer{.status = 404, .body = "{}"};
  answer.headers.emplace_back("Allow", "GET");
  const std::string head = http::HeadOf(answer, /*chunked=*/false, /*closes=*/true);
  EXPECT_THAT(head, StartsWith("HTTP/1.1 404 Not Found\r\n"));
  EXPECT_TRUE(head.ends_with("\r\n\r\n"));
  for (const char* const line :
       {"\r\nAllow: GET\r\n", "\r\nContent-Type: application/json\r\n", "\r\nContent-Length: 2\r\n",
        "\r\nCache-Control: no-store\r\n", "\r\nConnection: close\r\n",
        "\r\nX-Content-Type-Options: nosniff\r\n"}) {
    EXPECT_THAT(head, HasSubstr(line));
  }
  answer.status = 304;
  answer.headers = {{"Cache-Control", "no-cache"}};
  const std::string unchanged = http::HeadOf(answer, /*chunked=*/false, /*closes=*/false);
  EXPECT_THAT(unchanged, HasSubstr("\r\nCache-Control: no-cache\r\n"));
  for (const char* const name :
       {"no-store", "Content-Length:", "\r\nContent-Type:", "Connection:"}) {
    EXPECT_THAT(unchanged, Not(HasSubstr(name)));
  }
  EXPECT_EQ(http::Chunk(std::string(26, 'x')), "1a\r\n" + std::string(26, 'x') + "\r\n");
}

}  // namespace
}  // namespace strata::http_test
