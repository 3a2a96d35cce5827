#include "bench/growth/burst.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "bench/load/closed_loop.h"
#include "bench/support/ten_fields.h"
#include "strata/v1/document_service.pb.h"

namespace strata::bench {
namespace {

constexpr std::chrono::seconds kDeadline{60};

struct Call {
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>> reader;
  grpc::ByteBuffer response;
  grpc::Status status;
};

// The part of all requests that is the same; messages may be put one after the other.
grpc::Slice Replacement(size_t bytes) {
  v1::UpdateRequest request;
  request.mutable_replace()->set_bson(TenFields(1, 1, bytes));
  return grpc::Slice(request.SerializeAsString());
}

class Burst {
 public:
  explicit Burst(const BurstSettings& settings)
      : settings_(settings),
        replacement_(Replacement(settings.document_bytes)),
        calls_(static_cast<size_t>(settings.calls)) {
    for (int i = 0; i < settings.connections; ++i) {
      const auto channel = Connect(settings.address);
      channel->WaitForConnected(deadline_);
      stubs_.push_back(std::make_unique<grpc::GenericStub>(channel));
    }
  }

  std::vector<BurstAnswer> Run() {
    while (next_ < std::min(settings_.at_once, settings_.calls)) SendNext();
    void* tag = nullptr;
    bool ok = false;
    for (size_t i = 0; i < calls_.size(); ++i) {
      queue_.Next(&tag, &ok);
      if (next_ < settings_.calls) SendNext();
    }
    queue_.Shutdown();
    std::vector<BurstAnswer> answers;
    for (const Call& call : calls_) {
      answers.push_back({call.status.error_code(), call.status.error_message(),
                         !call.status.error_details().empty()});
    }
    return answers;
  }

 private:
  void SendNext() {
    const auto number = static_cast<size_t>(next_++);
    v1::UpdateRequest request;
    request.set_collection(settings_.collection);
    request.set_id(std::to_string(number));
    request.set_allow_missing(true);
    request.set_omit_content(true);
    const grpc::Slice slices[] = {grpc::Slice(request.SerializeAsString()), replacement_};
    const grpc::ByteBuffer message(slices, std::size(slices));
    Call& call = calls_[number];
    call.context.set_deadline(deadline_);
    call.reader = stubs_[number % stubs_.size()]->PrepareUnaryCall(
        &call.context, "/strata.v1.DocumentService/Update", message, &queue_);
    call.reader->StartCall();
    call.reader->Finish(&call.response, &call.status, &call);
  }

  const BurstSettings settings_;
  const std::chrono::system_clock::time_point deadline_ =
      std::chrono::system_clock::now() + kDeadline;
  const grpc::Slice replacement_;
  grpc::CompletionQueue queue_;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
  std::vector<Call> calls_;
  int64_t next_ = 0;
};

}  // namespace

std::vector<BurstAnswer> RunBurst(const BurstSettings& settings) { return Burst(settings).Run(); }

}  // namespace strata::bench
