#include "bench/feed/consumer.h"

#include <chrono>
#include <utility>

#include "bench/load/closed_loop.h"

namespace strata::bench {
namespace {

// No measurement takes as long.
constexpr std::chrono::minutes kStreamMax{10};

}  // namespace

Consumer::Consumer(const std::string& address, const std::string& subscription, int window,
                   Take take)
    : take_(std::move(take)), stub_(v1::FeedService::NewStub(Connect(address))) {
  context_.set_deadline(std::chrono::system_clock::now() + kStreamMax);
  stream_ = stub_->Consume(&context_);
  v1::ConsumeRequest request;
  request.mutable_open()->set_subscription(subscription);
  request.mutable_open()->set_consumer("bench");
  request.mutable_open()->set_window(window);
  stream_->Write(request);
  thread_ = std::thread([this] { Run(); });
}

Consumer::~Consumer() {
  {
    const absl::MutexLock lock(&writing_);
    closing_ = true;
    stream_->WritesDone();
  }
  thread_.join();
}

void Consumer::Run() {
  v1::ConsumeResponse response;
  while (stream_->Read(&response)) {
    if (response.has_deliveries()) take_(*this, response.deliveries());
  }
  const grpc::Status status = stream_->Finish();
  const absl::MutexLock writing(&writing_);
  if (closing_ && status.ok()) return;
  const absl::MutexLock lock(&mutex_);
  ended_ = "a consumer's stream ended: " + status.error_message();
}

void Consumer::Ack(int32_t partition, int64_t position, int32_t index) {
  v1::ConsumeRequest request;
  request.mutable_ack()->set_partition(partition);
  request.mutable_ack()->set_position(position);
  request.mutable_ack()->set_index(index);
  const absl::MutexLock lock(&writing_);
  if (!closing_) stream_->Write(request);
}

std::string Consumer::ended() const {
  const absl::MutexLock lock(&mutex_);
  return ended_;
}

}  // namespace strata::bench
