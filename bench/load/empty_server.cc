// The ceiling: a server that answers every call with nothing, built as the fastest way that is
// known: one completion queue with one thread, a registered method, messages as raw bytes, some
// calls registered ahead, answers in a row sent together.
//
// It serves on a free port until it is killed, and says on standard output where.
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/support/async_unary_call.h>

#include <cstdio>
#include <memory>

#include "absl/synchronization/mutex.h"
#include "service/server/send_coalescer.h"

namespace strata::bench {
namespace {

constexpr int kCallsAhead = 16;

class EmptyService final : public grpc::Service {
 public:
  EmptyService() {
    using grpc::internal::RpcMethod;
    using grpc::internal::RpcServiceMethod;
    AddMethod(new RpcServiceMethod("/bench.Empty/Call", RpcMethod::NORMAL_RPC, nullptr));
    MarkMethodRaw(0);
  }
  void Request(grpc::ServerContext& context, grpc::ByteBuffer& request,
               grpc::ServerAsyncResponseWriter<grpc::ByteBuffer>& responder,
               grpc::ServerCompletionQueue& queue, void* tag) {
    RequestAsyncUnary(0, &context, &request, &responder, &queue, &queue, tag);
  }
};

// One call, from its registration to its end: one event at a time, since nobody asks for more.
class EmptyCall {
 public:
  EmptyCall(EmptyService& service, grpc::ServerCompletionQueue& queue)
      : service_(service), queue_(queue), responder_(&context_) {
    service_.Request(context_, request_, responder_, queue_, this);
  }

  void Proceed(bool ok) {
    if (!ok || answered_) {
      delete this;
      return;
    }
    new EmptyCall(service_, queue_);
    answered_ = true;
    static const grpc::ByteBuffer empty = [] {
      const grpc::Slice slice;
      return grpc::ByteBuffer(&slice, 1);
    }();
    responder_.Finish(empty, grpc::Status::OK, this);
  }

 private:
  EmptyService& service_;
  grpc::ServerCompletionQueue& queue_;
  grpc::ServerContext context_;
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> responder_;
  grpc::ByteBuffer request_;
  bool answered_ = false;
};

int Serve() {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  grpc::ServerBuilder builder;
  EmptyService service;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::ServerCompletionQueue> queue = builder.AddCompletionQueue();
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) return 1;
  for (int i = 0; i < kCallsAhead; ++i) new EmptyCall(service, *queue);
  std::printf("127.0.0.1:%d\n", port);
  std::fflush(stdout);
  const gpr_timespec now = gpr_time_0(GPR_CLOCK_MONOTONIC);
  const gpr_timespec never = gpr_inf_future(GPR_CLOCK_MONOTONIC);
  server::SendCoalescer sends;
  for (;;) {
    void* tag = nullptr;
    bool ok = false;
    switch (queue->AsyncNext(&tag, &ok, sends.Holds() ? now : never)) {
      case grpc::CompletionQueue::SHUTDOWN:
        return 0;
      case grpc::CompletionQueue::GOT_EVENT: {
        const server::SendCoalescer::Scope answering(sends);
        static_cast<EmptyCall*>(tag)->Proceed(ok);
        sends.FlushIfDue();
        break;
      }
      case grpc::CompletionQueue::TIMEOUT:
        sends.Flush();
        break;
    }
  }
}

}  // namespace
}  // namespace strata::bench

int main() { return strata::bench::Serve(); }
