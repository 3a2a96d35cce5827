// A stream of Watch as its client has it.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strata/v1/feed_service.grpc.pb.h"
#include "tests/rpc/test_server.h"

namespace strata::rpc_test {

class Watching {
 public:
  // Ends after `limit`, that a test does not hang.
  Watching(const std::shared_ptr<grpc::Channel>& channel, const v1::WatchRequest& request,
           std::chrono::seconds limit = std::chrono::seconds(120))
      : stub_(v1::FeedService::NewStub(channel)) {
    context_.set_deadline(std::chrono::system_clock::now() + limit);
    stream_ = stub_->Watch(&context_, request);
  }
  Watching(TestServer& server, std::string_view json)
      : Watching(server.channel(), Parse<v1::WatchRequest>(json)) {}
  ~Watching() { End(); }

  // The next message; nothing once the stream has ended.
  std::optional<v1::WatchResponse> Next() {
    v1::WatchResponse message;
    if (!stream_->Read(&message)) return std::nullopt;
    return message;
  }
  // Messages until there are so many events, which are returned.
  std::vector<v1::Event> Events(size_t count) {
    std::vector<v1::Event> events;
    while (events.size() < count) {
      const std::optional<v1::WatchResponse> message = Next();
      if (!message) break;
      events.insert(events.end(), message->events().begin(), message->events().end());
    }
    return events;
  }
  void Cancel() { context_.TryCancel(); }
  // Leaves the stream, or takes its end in.
  grpc::Status End() {
    if (stream_ == nullptr) return status_;
    Cancel();
    while (Next()) {
    }
    status_ = stream_->Finish();
    stream_.reset();
    return status_;
  }
  // As the server ends it.
  grpc::Status AwaitEnd() {
    while (Next()) {
    }
    status_ = stream_->Finish();
    stream_.reset();
    return status_;
  }

 private:
  std::unique_ptr<v1::FeedService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::WatchResponse>> stream_;
  grpc::Status status_;
};

}  // namespace strata::rpc_test
