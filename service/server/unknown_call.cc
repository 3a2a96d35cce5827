// Calls of methods that do not exist, answered with details, which gRPC's own answer lacks.
#include <grpcpp/generic/async_generic_service.h>

#include "schemas/base/error.h"
#include "service/server/event_queue.h"
#include "service/server/status_mapping.h"

namespace strata::server {
namespace {

// Owns itself until its answer is sent.
class UnknownCall {
 public:
  explicit UnknownCall(EventQueue& queue) : queue_(queue) {
    queue_.CallBegins();
    queue_.unknown_methods().RequestCall(&context_, &stream_, &queue_.queue(), &queue_.queue(),
                                         &start_event_);
  }

 private:
  void OnStart(bool ok) {
    if (!ok) return OnSent(false);
    RegisterUnknownCall(queue_);
    const absl::Status status = Error(ErrorReason::kUnknownMethod, "no method " + context_.method())
                                    .With("method", context_.method());
    const auto now = std::chrono::steady_clock::now();
    queue_.state()->Report({"unknown", status, now, now});
    stream_.Finish(ToGrpc(status), &sent_event_);
  }

  void OnSent(bool /*ok*/) {
    EventQueue& queue = queue_;
    delete this;
    queue.CallEnds();
  }

  EventQueue& queue_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  EventOf<UnknownCall, &UnknownCall::OnStart> start_event_{*this};
  EventOf<UnknownCall, &UnknownCall::OnSent> sent_event_{*this};
};

}  // namespace

void RegisterUnknownCall(EventQueue& queue) {
  new UnknownCall(queue);  // owns itself
}

}  // namespace strata::server
