// A stream of Consume as its client has it.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strata/v1/feed_service.grpc.pb.h"
#include "tests/rpc/test_server.h"

namespace strata::rpc_test {

// A delivery with the partition that it came for.
struct Delivered {
  int32_t partition = 0;
  v1::Delivery delivery;

  const v1::Event& event() const { return delivery.event(); }
};

class Consuming {
 public:
  // `open` is the first message's member, as JSON; empty: nothing has been said yet.
  explicit Consuming(const std::shared_ptr<grpc::Channel>& channel, std::string_view open = "",
                     const std::string& authorization = "")
      : stub_(v1::FeedService::NewStub(channel)) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(120));
    if (!authorization.empty()) context_.AddMetadata("authorization", authorization);
    stream_ = stub_->Consume(&context_);
    if (!open.empty()) Say(R"({"open": )" + std::string(open) + "}");
  }
  ~Consuming() { Cancel(), AwaitEnd(); }

  bool Say(const v1::ConsumeRequest& message) { return stream_->Write(message); }
  bool Say(std::string_view json) { return Say(Parse<v1::ConsumeRequest>(json)); }
  void Ack(const Delivered& delivered) {
    v1::ConsumeRequest message;
    message.mutable_ack()->set_partition(delivered.partition);
    message.mutable_ack()->set_position(delivered.event().position());
    message.mutable_ack()->set_index(delivered.event().index());
    Say(message);
  }
  void Nack(const Delivered& delivered, const std::string& reason, bool park = false) {
    v1::ConsumeRequest message;
    message.mutable_nack()->set_partition(delivered.partition);
    message.mutable_nack()->set_position(delivered.event().position());
    message.mutable_nack()->set_index(delivered.event().index());
    message.mutable_nack()->set_reason(reason);
    message.mutable_nack()->set_park(park);
    Say(message);
  }

  // The next message; nothing once the stream has ended.
  std::optional<v1::ConsumeResponse> Next() {
    v1::ConsumeResponse message;
    if (stream_ == nullptr || !stream_->Read(&message)) return std::nullopt;
    return message;
  }
  // The next delivery, whatever else is said before; nothing once the stream has ended.
  std::optional<Delivered> NextDelivery() {
    while (queue_.empty()) {
      std::optional<v1::ConsumeResponse> message = Next();
      if (!message) return std::nullopt;
      Keep(*message);
    }
    Delivered first = std::move(queue_.front());
    queue_.pop_front();
    return first;
  }
  // The next message of that kind, which is not deliveries: those before it are kept.
  std::optional<v1::ConsumeResponse> Await(v1::ConsumeResponse::MessageCase kind) {
    for (;;) {
      std::optional<v1::ConsumeResponse> message = Next();
      if (!message || message->message_case() == kind) return message;
      Keep(*message);
    }
  }
  std::optional<v1::ConsumeResponse::Acknowledged> AwaitAcknowledged() {
    const auto message = Await(v1::ConsumeResponse::kAcknowledged);
    if (!message) return std::nullopt;
    return message->acknowledged();
  }

  void HalfClose() { stream_->WritesDone(); }
  void Cancel() { context_.TryCancel(); }
  // As the server ends it.
  grpc::Status AwaitEnd() {
    if (stream_ == nullptr) return status_;
    while (Next()) {
    }
    status_ = stream_->Finish();
    stream_.reset();
    return status_;
  }

 private:
  void Keep(v1::ConsumeResponse& message) {
    for (v1::Delivery& delivery : *message.mutable_deliveries()->mutable_deliveries()) {
      queue_.push_back({message.deliveries().partition(), std::move(delivery)});
    }
  }

  std::unique_ptr<v1::FeedService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ConsumeRequest, v1::ConsumeResponse>> stream_;
  std::deque<Delivered> queue_;
  grpc::Status status_;
};

}  // namespace strata::rpc_test
