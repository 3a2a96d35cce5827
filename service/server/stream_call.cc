#include "service/server/stream_call.h"

#include <utility>

#include "schemas/base/error.h"
#include "service/observability/access_log.h"
#include "service/server/status_mapping.h"

namespace strata::server {
namespace {

grpc::ByteBuffer Serialize(const google::protobuf::MessageLite& message) {
  const size_t size = message.ByteSizeLong();
  grpc_slice bytes = grpc_slice_malloc(size);
  message.SerializeWithCachedSizesToArray(GRPC_SLICE_START_PTR(bytes));
  const grpc::Slice slice(bytes, grpc::Slice::STEAL_REF);
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace

void RegisterStreamCall(EventQueue& queue, const Endpoint& endpoint) {
  new StreamCall(queue, endpoint);  // owns itself
}

StreamCall::StreamCall(EventQueue& queue, const Endpoint& endpoint)
    : queue_(queue), endpoint_(endpoint) {
  queue_.CallBegins();
  context_.AsyncNotifyWhenDone(&done_event_);
  endpoint_.service->RequestStream(endpoint_.index, context_, stream_, queue_.queue(),
                                   start_event_);
}

void StreamCall::OnStart(bool ok) {
  EventQueue& queue = queue_;
  if (!ok) {  // the server stops; the done event never comes
    delete this;
    return queue.CallEnds();
  }
  RegisterStreamCall(queue_, endpoint_);
  arrival_ = std::chrono::steady_clock::now();
  queue_.AddStream(*this);
  handler_ = endpoint_.method.open(*this);
  if (queue_.state()->draining && !endpoint_.method.operational) {
    return Finish(Error(ErrorReason::kDraining, "server is draining"));
  }
  const std::lock_guard lock(mutex_);
  ReadNext();
}

void StreamCall::Send(const google::protobuf::MessageLite& message) {
  const std::lock_guard lock(mutex_);
  if (end_ || done_) return;
  outbox_.push_back(Serialize(message));
  WriteNext();
}

void StreamCall::Finish(const absl::Status& status) {
  const std::lock_guard lock(mutex_);
  if (end_ || done_) return;
  end_ = status;
  WriteNext();
}

void StreamCall::ReadNext() {
  if (reading_ || read_all_ || end_ || done_) return;
  if (unanswered_ >= handler_->unanswered_max()) return;
  reading_ = true;
  stream_.Read(&message_, &read_event_);
}

void StreamCall::WriteNext() {
  if (writing_ || finishing_ || done_) return;
  if (!outbox_.empty()) {
    writing_ = true;
    stream_.Write(outbox_.front(), &written_event_);
  } else if (end_) {
    finishing_ = true;
    Log(*end_);
    stream_.Finish(ToGrpc(*end_), &finished_event_);
  }
}

void StreamCall::OnRead(bool ok) {
  {
    const std::lock_guard lock(mutex_);
    reading_ = false;
    if (ok) {
      ++unanswered_;
    } else {
      read_all_ = true;
    }
  }
  // Without the lock, as the handler sends.
  grpc::Slice bytes;
  if (!ok) {
    handler_->OnLastMessage();
  } else if (message_.DumpToSingleSlice(&bytes).ok()) {
    handler_->OnMessage({reinterpret_cast<const char*>(bytes.begin()), bytes.size()});
  }
  {
    const std::lock_guard lock(mutex_);
    ReadNext();
  }
  EndIfOver();
}

void StreamCall::OnWritten(bool ok) {
  bool sent = false;
  {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    --unanswered_;
    outbox_.pop_front();
    if (!ok) outbox_.clear();
    WriteNext();
    ReadNext();
    sent = ok && outbox_.empty() && !end_ && !done_;
  }
  if (sent) handler_->OnSent();  // without the lock, as it sends
  EndIfOver();
}

void StreamCall::OnFinished(bool /*ok*/) {
  {
    const std::lock_guard lock(mutex_);
    finished_ = true;
  }
  EndIfOver();
}

void StreamCall::OnDone(bool /*ok*/) {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
    if (!finishing_) Log(Error(ErrorReason::kCancelled, "the caller gave up"));
  }
  EndIfOver();
}

bool StreamCall::Over() const {
  return done_ && !reading_ && !writing_ && (finished_ || !finishing_);
}

void StreamCall::EndIfOver() {
  {
    const std::lock_guard lock(mutex_);
    if (!Over()) return;
  }
  queue_.RemoveStream(*this);
  handler_->OnClosed();  // behind this, nobody else knows the stream
  EventQueue& queue = queue_;
  delete this;
  queue.CallEnds();
}

void StreamCall::Log(const absl::Status& status) const {
  const auto duration = std::chrono::steady_clock::now() - arrival_;
  observability::LogCall({endpoint_.log_name, status,
                          std::chrono::duration_cast<std::chrono::microseconds>(duration), 0, 0});
}

}  // namespace strata::server
