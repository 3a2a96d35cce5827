#include "service/http/own_calls.h"

#include <utility>

namespace strata::http {
namespace {

// Between two looks at whether the caller is still there.
constexpr std::chrono::milliseconds kLookInterval{500};

grpc::ByteBuffer ToBuffer(std::string_view bytes) {
  const grpc::Slice slice(bytes.data(), bytes.size());
  return grpc::ByteBuffer(&slice, 1);
}

std::string ToText(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string text;
  if (!buffer.Valid() || !buffer.Dump(&slices).ok()) return text;
  text.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices) {
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return text;
}

}  // namespace

OwnCalls::OwnCalls(const std::shared_ptr<grpc::Channel>& channel, std::string introduction_key,
                   IsGone is_gone)
    : stub_(channel),
      introduction_key_(std::move(introduction_key)),
      is_gone_(std::move(is_gone)) {}

OwnCalls::~OwnCalls() {
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) continue;
}

void OwnCalls::Prepare(const CallMetadata& metadata, grpc::ClientContext& context) const {
  server::Introduce(metadata.introduction, introduction_key_, context);
  for (const std::string& value : metadata.authorization) {
    context.AddMetadata("authorization", value);
  }
  if (!metadata.traceparent.empty()) context.AddMetadata("traceparent", metadata.traceparent);
  if (metadata.timeout) context.set_deadline(std::chrono::system_clock::now() + *metadata.timeout);
}

// One operation is under way at a time, so that whatever comes is its end.
bool OwnCalls::Await(grpc::ClientContext& context) {
  void* tag = nullptr;
  bool ok = false;
  bool given_up = false;
  for (;;) {
    switch (queue_.AsyncNext(&tag, &ok, std::chrono::system_clock::now() + kLookInterval)) {
      case grpc::CompletionQueue::GOT_EVENT:
        return ok;
      case grpc::CompletionQueue::SHUTDOWN:
        return false;
      case grpc::CompletionQueue::TIMEOUT:
        if (!given_up && is_gone_()) {
          context.TryCancel();
          given_up = true;
        }
        break;
    }
  }
}

grpc::Status OwnCalls::Unary(const std::string& path, const CallMetadata& metadata,
                             std::string_view request, std::string& response) {
  grpc::ClientContext context;
  Prepare(metadata, context);
  grpc::Status status;
  grpc::ByteBuffer answer;
  const auto call = stub_.PrepareUnaryCall(&context, path, ToBuffer(request), &queue_);
  call->StartCall();
  call->Finish(&answer, &status, this);
  Await(context);
  if (status.ok()) response = ToText(answer);
  return status;
}

grpc::Status OwnCalls::ServerStream(const std::string& path, const CallMetadata& metadata,
                                    std::string_view request, const Take& take) {
  grpc::ClientContext context;
  Prepare(metadata, context);
  grpc::Status status;
  const auto call = stub_.PrepareCall(&context, path, &queue_);
  call->StartCall(this);
  if (Await(context)) {
    call->WriteLast(ToBuffer(request), grpc::WriteOptions(), this);
    Await(context);
  }
  for (bool taken = true;;) {
    grpc::ByteBuffer message;
    call->Read(&message, this);
    if (!Await(context)) break;
    if (taken && !take(ToText(message))) {
      taken = false;
      context.TryCancel();
    }
  }
  call->Finish(&status, this);
  Await(context);
  return status;
}

}  // namespace strata::http
