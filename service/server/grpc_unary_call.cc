// Unary calls of the gRPC port.
#include <optional>

#include "service/server/event_queue.h"
#include "service/server/status_mapping.h"
#include "service/server/unary_call.h"

namespace strata::server {
namespace {

// Registered ahead of its arrival; ends when its events from gRPC have come.
class GrpcUnaryCall final : public UnaryCall {
 public:
  GrpcUnaryCall(EventQueue& queue, const Endpoint& endpoint)
      : UnaryCall(queue.state(), endpoint), queue_(queue) {
    queue_.CallBegins();
    context_.emplace();
    responder_.emplace(&*context_);
    done_ = !WantsDoneEvent();
    if (!done_) context_->AsyncNotifyWhenDone(&done_event_);
    endpoint.service->RequestUnary(endpoint.index, *context_, request_bytes_, *responder_,
                                   queue_.queue(), start_event_);
  }

 private:
  void OnStart(bool ok) {
    if (!ok) return EndTransport();  // the server stops; the done event never comes
    RegisterUnaryCall(queue_, endpoint());
    Arrive(queue_.Describe(*context_));
    waiting_ = queue_.AddWaiting(*this);
    Handle();
  }
  void OnSent(bool /*ok*/) {
    sent_ = true;
    EndIfOver();
  }
  void OnDone(bool /*ok*/) {
    done_ = true;
    if (context_->IsCancelled() && Abandon()) sent_ = true;
    EndIfOver();
  }

  // To hear that the caller gave up costs an event. It is worth it only where that ends long work,
  // or a long wait.
  bool WantsDoneEvent() const {
    const Method& method = endpoint().method;
    return method.kind == Method::Kind::kScan || method.waits ||
           state().HandledOn(method) != nullptr;
  }

  // After Finish only its completion event may touch the call.
  void Send(const absl::Status& status, const grpc::ByteBuffer& response) override {
    if (status.ok()) {
      responder_->Finish(response, grpc::Status::OK, &sent_event_);
    } else {
      responder_->FinishWithError(ToGrpc(status), &sent_event_);
    }
  }
  void End(const absl::Status& status) override {
    queue_.MoveToLate(*waiting_);
    late_ = true;
    UnaryCall::End(status);
  }
  void Cancel() override {
    StopWaiting();
    context_->TryCancel();
  }

  void StopWaiting() {
    if (!waiting_) return;
    queue_.RemoveWaiting(*waiting_, late_);
    waiting_.reset();
  }
  // gRPC's part ends here, on the queue's thread, whoever still holds the call.
  void EndIfOver() {
    StopWaiting();
    if (!sent_ || !done_) return;
    Leave();
    EndTransport();
  }
  void EndTransport() {
    responder_.reset();
    context_.reset();
    queue_.CallEnds();
    Unref();
  }

  EventQueue& queue_;
  std::optional<grpc::ServerContext> context_;
  std::optional<grpc::ServerAsyncResponseWriter<grpc::ByteBuffer>> responder_;

  // Only on the queue's thread.
  bool sent_ = false;  // or never to be
  bool done_ = false;  // or nobody asked to hear of it
  std::optional<EventQueue::UnaryCalls::iterator> waiting_;
  bool late_ = false;  // waits with those whose deadline has passed

  EventOf<GrpcUnaryCall, &GrpcUnaryCall::OnStart> start_event_{*this};
  EventOf<GrpcUnaryCall, &GrpcUnaryCall::OnSent> sent_event_{*this};
  EventOf<GrpcUnaryCall, &GrpcUnaryCall::OnDone> done_event_{*this};
};

}  // namespace

void RegisterUnaryCall(EventQueue& queue, const Endpoint& endpoint) {
  new GrpcUnaryCall(queue, endpoint);  // owns itself
}

}  // namespace strata::server
