// One completion queue with its thread, and what all calls of a server share. Private to the event
// loop.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/async_unary_call.h>

#include <atomic>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "schemas/base/clock.h"
#include "service/server/admission.h"
#include "service/server/method.h"
#include "service/server/server_loop.h"
#include "service/server/turns.h"

namespace strata::server {

class SendCoalescer;
class UnaryCall;
class StreamCall;

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

// A method and where gRPC finds it.
struct Endpoint {
  Method method;
  std::string path;
  std::string log_name;  // the path without its first slash
  RawService* service = nullptr;
  int index = 0;
};

// What all calls of one server share. Calls keep it alive.
struct LoopState {
  LoopState(const LoopOptions& loop_options, const LoopParts& loop_parts)
      : options(loop_options),
        parts(loop_parts),
        turns(std::make_shared<Turns>(parts.executor, parts.executor_threads)),
        admission(loop_options.request_bytes_max, loop_options.bytes_in_flight_max, parts.access),
        callers(parts.access),
        introduction_key(Entropy::System().Bytes(kIntroductionKeyBytes)) {}

  static constexpr size_t kIntroductionKeyBytes = 32;

  const LoopOptions options;
  const LoopParts parts;
  const std::shared_ptr<Turns> turns;
  std::vector<std::unique_ptr<Endpoint>> endpoints;
  Admission admission;
  Callers callers;
  const std::string introduction_key;  // of the ports that the process has besides

  // What handles the method unless it waits for its caller's turn; null: the loop's own threads.
  Executor* HandledOn(const Method& method) const {
    return method.operational ? nullptr : parts.readers;
  }

  // Tells the observers.
  void Report(const observability::CallEnd& end) const {
    for (observability::CallObserver* const observer : parts.observers) observer->OnEnd(end);
  }

  // Calls that a handler works on or whose answer is being sent, streams aside.
  void UnaryBegins() { unary_in_progress.fetch_add(1); }
  void UnaryEnds();
  // Until no unary call is in progress, at most so long.
  void AwaitUnaryCalls(std::chrono::milliseconds at_most);

  std::atomic<int64_t> unary_in_progress = 0;
  std::mutex mutex;
  std::condition_variable changed;
};

class EventQueue {
 public:
  EventQueue(std::shared_ptr<LoopState> state, grpc::AsyncGenericService& unknown_methods,
             std::unique_ptr<grpc::ServerCompletionQueue> queue);

  // Registers calls ahead and starts the thread; once the server has started.
  void Start();
  // Ends the calls that wait for their answer, soon.
  void EndUnaryCalls();
  void EndStreams(const absl::Status& status);
  // Waits for all calls to be over and ends the thread; once the server is shut down.
  void Stop();

  // What the caller's side tells, and whether its credentials are good. Only on the queue's thread.
  Recognized Describe(const Endpoint& endpoint, const grpc::ServerContext& context, CallInfo& info);

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

  void AddStream(StreamCall& stream);
  void RemoveStream(StreamCall& stream);
  // When a stream that came at `arrival` is to end. Only on the queue's thread.
  Call::Time OldAt(Call::Time arrival);

 private:
  void Run();
  void ServeAll();
  grpc::CompletionQueue::NextStatus Serve(Call::Time deadline, SendCoalescer& sends);
  void OnEndUnaryCalls(bool ok);
  Call::Time NextSweep() const;
  void Sweep();
  void LookAtStreams(Call::Time now);

  const std::shared_ptr<LoopState> state_;
  grpc::AsyncGenericService& unknown_methods_;
  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::atomic<int64_t> calls_ = 0;
  UnaryCalls waiting_;
  UnaryCalls late_;
  CallersSeen callers_seen_{state_->callers};
  EventOf<EventQueue, &EventQueue::OnEndUnaryCalls> end_unary_event_{*this};
  grpc::Alarm end_unary_alarm_;

  std::mutex streams_mutex_;
  std::list<StreamCall*> streams_;
  std::atomic<int64_t> streams_open_ = 0;
  Call::Time next_look_{};  // at the streams; only on the queue's thread
  std::minstd_rand spread_{std::random_device{}()};

  std::thread thread_;
};

// Registers one more call of the endpoint with the queue.
void RegisterUnaryCall(EventQueue& queue, const Endpoint& endpoint);
void RegisterStreamCall(EventQueue& queue, const Endpoint& endpoint);
void RegisterUnknownCall(EventQueue& queue);

}  // namespace strata::server
