#include "bench/growth/burst.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

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

// The part of all requests that is the same; messages may be put one behind the other.
grpc::Slice Replacement(size_t bytes) {
  v1::UpdateRequest request;
  request.mutable_replace()->set_bson(TenFields(1, 1, bytes));
  return grpc::Slice(request.SerializeAsString());
}

}  // namespace

std::vector<BurstAnswer> RunBurst(const BurstSettings& settings) {
  const auto deadline = std::chrono::system_clock::now() + kDeadline;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs;
  for (int i = 0; i < settings.connections; ++i) {
    const auto channel = Connect(settings.address);
    channel->WaitForConnected(deadline);
    stubs.push_back(std::make_unique<grpc::GenericStub>(channel));
  }
  const grpc::Slice replacement = Replacement(settings.document_bytes);
  grpc::CompletionQueue queue;
  std::vector<Call> calls(static_cast<size_t>(settings.calls));
  for (size_t i = 0; i < calls.size(); ++i) {
    v1::UpdateRequest request;
    request.set_collection(settings.collection);
    request.set_id(std::to_string(i));
    request.set_allow_missing(true);
    request.set_omit_content(true);
    const grpc::Slice slices[] = {grpc::Slice(request.SerializeAsString()), replacement};
    const grpc::ByteBuffer message(slices, std::size(slices));
    Call& call = calls[i];
    call.context.set_deadline(deadline);
    call.reader = stubs[i % stubs.size()]->PrepareUnaryCall(
        &call.context, "/strata.v1.DocumentService/Update", message, &queue);
    call.reader->StartCall();
    call.reader->Finish(&call.response, &call.status, &call);
  }
  void* tag = nullptr;
  bool ok = false;
  for (size_t i = 0; i < calls.size(); ++i) queue.Next(&tag, &ok);
  queue.Shutdown();
  std::vector<BurstAnswer> answers;
  for (const Call& call : calls) {
    answers.push_back({call.status.error_code(), call.status.error_message()});
  }
  return answers;
}

}  // namespace strata::bench
