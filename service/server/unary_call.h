// One unary call of any port, from its arrival to its answer. Private to the ports.
#pragma once

#include <google/protobuf/arena.h>
#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>

#include "service/server/call.h"
#include "service/server/call_life.h"

namespace strata::server {

// Has two owners: its port, and the handles of its handler. A port derives from it.
class UnaryCall : public Call, public LiveCall {
 public:
  // When the server's own deadline passes.
  Time expiry() const { return expiry_; }
  // Answers DEADLINE_EXCEEDED, unless another answer is on its way.
  void Expire();
  void Drain() override;
  // The caller does not take the answer in: nothing is sent from now on.
  virtual void Cancel() = 0;

  absl::Status Defer(std::function<void()> work) const override;

 protected:
  UnaryCall(std::shared_ptr<LoopState> state, const Endpoint& endpoint);
  ~UnaryCall() override;

  // Of the port, in this order. First of all.
  void Arrive(Arrival arrival);
  // Admits the call and has it handled, here or elsewhere.
  void Handle();
  // Reports that the caller has given up; false: an answer is on its way.
  bool Abandon();
  // The answer has left, or never will.
  void Leave();
  // Then the call may be gone.
  void Unref();

  // Sends the answer. Called once, on any thread, unless the port abandons the call.
  virtual void Send(const absl::Status& status, const grpc::ByteBuffer& response) = 0;
  // Answers before the handler does.
  virtual void End(const absl::Status& status);

  const Endpoint& endpoint() const { return life_.endpoint(); }
  LoopState& state() const { return life_.state(); }

  grpc::ByteBuffer request_bytes_;

 private:
  void HandleElsewhere(CallHandle&& handle);
  void HandleHere(CallHandle handle);
  bool Parse();
  grpc::ByteBuffer SerializeResponse();

  absl::Status Reserve(size_t bytes) const override;
  void Answer(const absl::Status& status) override;
  void Release() override;

  bool TakeAnswer() { return !answered_.exchange(true, std::memory_order_acq_rel); }

  // Room for the messages of a usual call without another allocation.
  static constexpr size_t kFirstBlockBytes = 2048;

  mutable CallLife life_;
  mutable size_t reserved_ = 0;  // of what it holds, for the answer
  Time expiry_;
  std::atomic<int> references_ = 1;
  std::atomic<bool> answered_ = false;

  alignas(8) char first_block_[kFirstBlockBytes];
  google::protobuf::Arena arena_;
};

}  // namespace strata::server
