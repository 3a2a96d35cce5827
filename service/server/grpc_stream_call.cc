// Streams of the gRPC port.
#include <grpcpp/alarm.h>

#include <chrono>
#include <optional>

#include "service/server/event_queue.h"
#include "service/server/status_mapping.h"
#include "service/server/stream_call.h"

namespace strata::server {
namespace {

// For it to be found that a caller is gone.
constexpr std::chrono::milliseconds kGoneMoment{20};

// Owns itself until its last event has come.
class GrpcStreamCall final : public StreamCall {
 public:
  GrpcStreamCall(EventQueue& queue, const Endpoint& endpoint)
      : StreamCall(queue.state(), endpoint), queue_(queue) {
    queue_.CallBegins();
    context_.AsyncNotifyWhenDone(&done_event_);
    endpoint.service->RequestStream(endpoint.index, context_, stream_, queue_.queue(),
                                    start_event_);
  }

 private:
  void OnStart(bool ok) {
    if (!ok) return EndTransport();  // the server stops; the done event never comes
    RegisterStreamCall(queue_, endpoint());
    Arrive(queue_.Describe(context_));
    Begin();
  }

  void Read(grpc::ByteBuffer& message) override { stream_.Read(&message, &read_event_); }
  void Write(const grpc::ByteBuffer& message) override { stream_.Write(message, &written_event_); }
  void WriteEnd(const absl::Status& status) override {
    stream_.Finish(ToGrpc(status), &finished_event_);
  }
  void Cancel() override { context_.TryCancel(); }
  void AskForLastRead() override {
    const auto due = std::chrono::system_clock::now() + kGoneMoment;
    last_read_alarm_.emplace().Set(&queue_.queue(), due, &last_read_event_);
  }
  // With the line's lock held; the loop tells the handler.
  void Wake() override {
    room_alarm_.emplace().Set(&queue_.queue(), std::chrono::system_clock::now(), &room_event_);
  }
  // What calls share outlives this one and its queue.
  void EndTransport() override {
    EventQueue& queue = queue_;
    const std::shared_ptr<LoopState> state = queue.state();
    delete this;
    queue.CallEnds();
  }

  EventQueue& queue_;
  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> stream_{&context_};
  EventOf<GrpcStreamCall, &GrpcStreamCall::OnStart> start_event_{*this};
  EventOf<StreamCall, &StreamCall::OnRead> read_event_{*this};
  EventOf<StreamCall, &StreamCall::OnWritten> written_event_{*this};
  EventOf<StreamCall, &StreamCall::OnFinished> finished_event_{*this};
  EventOf<StreamCall, &StreamCall::OnDone> done_event_{*this};
  EventOf<StreamCall, &StreamCall::OnLastRead> last_read_event_{*this};
  EventOf<StreamCall, &StreamCall::OnRoom> room_event_{*this};
  std::optional<grpc::Alarm> last_read_alarm_;
  std::optional<grpc::Alarm> room_alarm_;
};

}  // namespace

void RegisterStreamCall(EventQueue& queue, const Endpoint& endpoint) {
  new GrpcStreamCall(queue, endpoint);  // owns itself
}

}  // namespace strata::server
