// A loop that serves methods of the tests' own, with messages borrowed from health and reflection.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpc/reflection/v1/reflection.grpc.pb.h"
#include "schemas/base/error.h"
#include "service/app/executor.h"
#include "service/server/server_loop.h"

namespace strata::server {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using grpc::reflection::v1::ServerReflectionRequest;
using grpc::reflection::v1::ServerReflectionResponse;

inline constexpr std::chrono::seconds kPatience{30};
inline constexpr char kUnary[] = "grpc.health.v1.Health/Check";
inline constexpr char kStream[] = "grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

// A unary method that the test handles.
inline Method Unary(std::function<void(CallHandle call)> handle) {
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

inline Method Answering() {
  return Unary([](const CallHandle& call) { call.Answer(absl::OkStatus()); });
}

// A stream whose every message `take` hears; it ends when the caller ends it, unless "stay" came.
class Hearing final : public HandlerOf<ServerReflectionRequest> {
 public:
  using Take = std::function<void(const std::string& text, Stream& stream)>;

  Hearing(Take take, Stream& stream) : take_(std::move(take)), stream_(stream) {}

  int64_t unanswered_max() const override { return 100; }
  void OnRequest(const ServerReflectionRequest& request) override {
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

inline Method Streaming(Hearing::Take take, Method::Kind kind = Method::Kind::kRead) {
  Method method;
  method.kind = kind;
  method.service = "grpc.reflection.v1.ServerReflection";
  method.name = "ServerReflectionInfo";
  method.make_request = [](google::protobuf::Arena* arena) -> google::protobuf::MessageLite* {
    return google::protobuf::Arena::CreateMessage<ServerReflectionRequest>(arena);
  };
  method.open = [take = std::move(take)](Stream& stream) {
    return std::make_unique<Hearing>(take, stream);
  };
  return method;
}

// The reason of a refusal, with its facts.
inline google::rpc::ErrorInfo InfoOf(const grpc::Status& status) {
  google::rpc::Status details;
  google::rpc::ErrorInfo info;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_TRUE(details.details_size() == 0 || details.details(0).UnpackTo(&info));
  return info;
}

inline void Echo(const std::string& text, Stream& stream) {
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
                                   access,
                                   /*committer=*/nullptr,
                                   {&ends, &more_ends},
                                   reads_block ? &readers_ : nullptr,
                                   /*executor_threads=*/2});
    EXPECT_TRUE(loop.ok()) << loop.status();
    loop_ = *std::move(loop);
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // windows stay as they are
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

  security::Access access;
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

}  // namespace strata::server
