// One completion queue with its thread. Private to the event loop.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/async_unary_call.h>

#include <atomic>
#include <list>
#include <memory>
#include <thread>

#include "service/server/call_life.h"
#include "service/server/loop_state.h"

namespace strata::server {

class SendCoalescer;
class UnaryCall;

// What gRPC hands back when an operation is over: a tag.
class Event {
 public:
  // On the queue's thread; false: the operation failed, or the server stops.
  virtual void Proceed(bool ok) = 0;

 protected:
  ~Event() = default;
};

// An event that is a member of its call.
template <typename Owner, void (Owner::*proceed)(bool ok)>
class EventOf final : public Event {
 public:
  explicit EventOf(Owner& owner) : owner_(owner) {}
  void Proceed(bool ok) override { (owner_.*proceed)(ok); }

 private:
  Owner& owner_;
};

// A service made from a table at run time, whose messages gRPC passes on as bytes.
class RawService final : public grpc::Service {
 public:
  // The method's place in the service, in the order of the calls. `path` must outlive the service.
  int Add(const char* path, bool stream);

  void RequestUnary(int index, grpc::ServerContext& context, grpc::ByteBuffer& request,
                    grpc::ServerAsyncResponseWriter<grpc::ByteBuffer>& responder,
                    grpc::ServerCompletionQueue& queue, Event& event) {
    RequestAsyncUnary(index, &context, &request, &responder, &queue, &queue, &event);
  }
  void RequestStream(int index, grpc::ServerContext& context,
                     grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>& stream,
                     grpc::ServerCompletionQueue& queue, Event& event) {
    RequestAsyncBidiStreaming(index, &context, &stream, &queue, &queue, &event);
  }

 private:
  int methods_ = 0;
};

class EventQueue {
 public:
  EventQueue(std::shared_ptr<LoopState> state, grpc::AsyncGenericService& unknown_methods,
             std::unique_ptr<grpc::ServerCompletionQueue> queue);

  // Registers calls ahead and starts the thread; once the server has started.
  void Start();
  // Ends the calls that wait for their answer, soon.
  void EndUnaryCalls();
  // Waits for all calls to be over and ends the thread; once the server is shut down.
  void Stop();

  // What the caller's side says. Only on the queue's thread.
  Arrival Describe(const grpc::ServerContext& context);

  const std::shared_ptr<LoopState>& state() const { return state_; }
  grpc::ServerCompletionQueue& queue() { return *queue_; }
  grpc::AsyncGenericService& unknown_methods() { return unknown_methods_; }

  // A call is registered ahead, or over. While one is there, its events may still come. Whoever
  // ends one on another thread than the queue's keeps the state meanwhile.
  void CallBegins() { ++calls_; }
  void CallEnds();

  // The calls whose answer has not left yet, oldest first; apart from them those that are late,
  // because the server's deadline has passed. Only on the queue's thread.
  using UnaryCalls = std::list<UnaryCall*>;
  UnaryCalls::iterator AddWaiting(UnaryCall& call) {
    return waiting_.insert(waiting_.end(), &call);
  }
  void MoveToLate(UnaryCalls::iterator place) { late_.splice(late_.end(), waiting_, place); }
  void RemoveWaiting(UnaryCalls::iterator place, bool late) {
    (late ? late_ : waiting_).erase(place);
  }

 private:
  void Run();
  void ServeAll();
  grpc::CompletionQueue::NextStatus Serve(Call::Time deadline, SendCoalescer& sends);
  void OnEndUnaryCalls(bool ok);
  Call::Time NextSweep() const;
  void Sweep();

  const std::shared_ptr<LoopState> state_;
  grpc::AsyncGenericService& unknown_methods_;
  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::atomic<int64_t> calls_ = 0;
  UnaryCalls waiting_;
  UnaryCalls late_;
  CallersSeen callers_seen_{state_->callers};
  EventOf<EventQueue, &EventQueue::OnEndUnaryCalls> end_unary_event_{*this};
  grpc::Alarm end_unary_alarm_;

  Call::Time next_look_{};  // at live calls; only on the queue's thread
  std::thread thread_;
};

// Registers one more call of the endpoint with the queue.
void RegisterUnaryCall(EventQueue& queue, const Endpoint& endpoint);
void RegisterStreamCall(EventQueue& queue, const Endpoint& endpoint);
void RegisterUnknownCall(EventQueue& queue);

}  // namespace strata::server
