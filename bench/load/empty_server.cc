// The ceiling: a server that answers every call with nothing, built as the fastest known way: one
// completion queue with one thread, messages as raw bytes, some calls registered ahead.
//
// It serves on a free port until it is killed, and says on standard output where.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <memory>

namespace strata::bench {
namespace {

constexpr int kCallsAhead = 16;

// One call, from its registration to its end: one event at a time, since nobody asks for more.
class EmptyCall {
 public:
  EmptyCall(grpc::AsyncGenericService& service, grpc::ServerCompletionQueue& queue)
      : service_(service), queue_(queue), stream_(&context_) {
    service_.RequestCall(&context_, &stream_, &queue_, &queue_, this);
  }

  void Proceed(bool ok) {
    if (!ok || state_ == State::kFinishing) {
      delete this;
    } else if (state_ == State::kArriving) {
      new EmptyCall(service_, queue_);
      state_ = State::kReading;
      stream_.Read(&message_, this);
    } else {
      state_ = State::kFinishing;
      static const grpc::ByteBuffer empty = [] {
        const grpc::Slice slice;
        return grpc::ByteBuffer(&slice, 1);
      }();
      stream_.WriteAndFinish(empty, grpc::WriteOptions(), grpc::Status::OK, this);
    }
  }

 private:
  enum class State { kArriving, kReading, kFinishing };

  grpc::AsyncGenericService& service_;
  grpc::ServerCompletionQueue& queue_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_;
  grpc::ByteBuffer message_;
  State state_ = State::kArriving;
};

int Serve() {
  grpc::ServerBuilder builder;
  grpc::AsyncGenericService service;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterAsyncGenericService(&service);
  const std::unique_ptr<grpc::ServerCompletionQueue> queue = builder.AddCompletionQueue();
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) return 1;
  for (int i = 0; i < kCallsAhead; ++i) new EmptyCall(service, *queue);
  std::printf("127.0.0.1:%d\n", port);
  std::fflush(stdout);
  void* tag = nullptr;
  for (bool ok = false; queue->Next(&tag, &ok);) static_cast<EmptyCall*>(tag)->Proceed(ok);
  return 0;
}

}  // namespace
}  // namespace strata::bench

int main() { return strata::bench::Serve(); }
