// A consumer of a subscription: a stream of Consume and the thread that reads it.
#pragma once

#include <grpcpp/grpcpp.h>
#include <strata/v1/feed_service.grpc.pb.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/synchronization/mutex.h"

namespace strata::bench {

class Consumer {
 public:
  using Deliveries = v1::ConsumeResponse::Deliveries;
  // Called by the consumer's thread.
  using Take = std::function<void(Consumer& consumer, const Deliveries& deliveries)>;

  // Over a connection of its own.
  Consumer(const std::string& address, const std::string& subscription, int window, Take take);
  // Gives its partitions back and waits for the stream's end.
  ~Consumer();
  Consumer(const Consumer&) = delete;
  Consumer& operator=(const Consumer&) = delete;

  // On any thread. What the stream no longer takes is dropped.
  void Ack(int32_t partition, int64_t position, int32_t index);

  // Why the stream ended by itself; empty: it did not.
  std::string ended() const;

 private:
  void Run();

  const Take take_;
  const std::unique_ptr<v1::FeedService::Stub> stub_;
  grpc::ClientContext context_;
  absl::Mutex writing_;
  bool closing_ = false;  // guarded by writing_
  std::unique_ptr<grpc::ClientReaderWriter<v1::ConsumeRequest, v1::ConsumeResponse>> stream_;
  mutable absl::Mutex mutex_;
  std::string ended_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace strata::bench
