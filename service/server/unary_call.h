// One unary call from its registration to its end. Private to the event loop.
#pragma once

#include <google/protobuf/arena.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "service/server/event_queue.h"

namespace strata::server {

// Owned by what may still come: its events from gRPC, and the handles of its handler.
class UnaryCall final : public Call {
 public:
  UnaryCall(EventQueue& queue, const Endpoint& endpoint);

  // When the server's own deadline passes.
  Time expiry() const { return expiry_; }
  // Answers DEADLINE_EXCEEDED, unless another answer is on its way. On the queue's thread.
  void Expire();
  // Cancels a call whose answer does not leave. On the queue's thread.
  void GiveUp();
  // Answers that the server ends. On the queue's thread.
  void Drain();

  absl::Status Defer(std::function<void()> work) const override;

 private:
  ~UnaryCall() override;

  void OnStart(bool ok);
  void OnSent(bool ok);
  void OnDone(bool ok);

  bool WantsDoneEvent() const;
  void Begin();
  void HandleElsewhere(CallHandle&& handle);
  void End(const absl::Status& status);
  absl::Status Admit(const Recognized& recognized);
  bool Parse();
  void Handle(CallHandle handle);

  absl::Status Reserve(size_t bytes) const override;
  void Answer(const absl::Status& status) override;
  void Release() override;

  bool TakeAnswer() { return !answered_.exchange(true, std::memory_order_acq_rel); }
  grpc::ByteBuffer SerializeResponse();
  void Report(const absl::Status& status) const;
  void StopWaiting();
  void EndIfOver();
  void Unref();

  // Room for the messages of a usual call without another allocation.
  static constexpr size_t kFirstBlockBytes = 2048;

  EventQueue& queue_;
  const std::shared_ptr<LoopState> state_;
  const Endpoint& endpoint_;

  std::optional<grpc::ServerContext> context_;
  std::optional<grpc::ServerAsyncResponseWriter<grpc::ByteBuffer>> responder_;
  grpc::ByteBuffer request_bytes_;
  size_t request_size_ = 0;
  size_t response_size_ = 0;
  mutable InFlight in_flight_;
  QuotaUse quota_;
  mutable size_t reserved_ = 0;  // of it, for the answer
  Time arrival_;
  Time expiry_;

  std::atomic<int> references_ = 1;
  std::atomic<bool> answered_ = false;

  // Only on the queue's thread.
  bool sent_ = false;  // or never to be
  bool done_ = false;  // or nobody asked to hear of it
  std::optional<EventQueue::UnaryCalls::iterator> waiting_;
  bool late_ = false;  // waits with those whose deadline has passed

  EventOf<UnaryCall, &UnaryCall::OnStart> start_event_{*this};
  EventOf<UnaryCall, &UnaryCall::OnSent> sent_event_{*this};
  EventOf<UnaryCall, &UnaryCall::OnDone> done_event_{*this};

  alignas(8) char first_block_[kFirstBlockBytes];
  google::protobuf::Arena arena_;
};

}  // namespace strata::server
