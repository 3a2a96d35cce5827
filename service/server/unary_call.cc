#include "service/server/unary_call.h"

#include <grpcpp/support/proto_buffer_reader.h>

#include <algorithm>
#include <utility>

#include "schemas/base/error.h"
#include "service/server/status_mapping.h"

namespace strata::server {
namespace {

// Larger requests are decoded and handled on the executor: a document of a megabyte takes
// milliseconds, in which the loop answers hundreds of others.
constexpr size_t kLoopRequestBytesMax = size_t{64} << 10;

// What a call costs besides its messages, gRPC's part included.
constexpr size_t kCallBytes = size_t{8} << 10;

google::protobuf::ArenaOptions ArenaIn(char* block, size_t size) {
  google::protobuf::ArenaOptions options;
  options.initial_block = block;
  options.initial_block_size = size;
  return options;
}

}  // namespace

void RegisterUnaryCall(EventQueue& queue, const Endpoint& endpoint) {
  new UnaryCall(queue, endpoint);  // owns itself
}

UnaryCall::UnaryCall(EventQueue& queue, const Endpoint& endpoint)
    : queue_(queue),
      state_(queue.state()),
      endpoint_(endpoint),
      in_flight_(state_->admission),
      arena_(ArenaIn(first_block_, sizeof(first_block_))) {
  queue_.CallBegins();
  context_.emplace();
  responder_.emplace(&*context_);
  if (WantsDoneEvent()) {
    context_->AsyncNotifyWhenDone(&done_event_);
  } else {
    done_ = true;
  }
  endpoint_.service->RequestUnary(endpoint_.index, *context_, request_bytes_, *responder_,
                                  queue_.queue(), start_event_);
}

UnaryCall::~UnaryCall() = default;

// To hear that the caller gave up costs an event. It is worth it only where that ends long work, or
// a long wait.
bool UnaryCall::WantsDoneEvent() const {
  return endpoint_.method.kind == Method::Kind::kScan || endpoint_.method.waits ||
         state_->HandledOn(endpoint_.method) != nullptr;
}

void UnaryCall::OnStart(bool ok) {
  if (!ok) {  // the server stops; the done event never comes
    responder_.reset();
    context_.reset();
    queue_.CallEnds();
    return Unref();
  }
  RegisterUnaryCall(queue_, endpoint_);
  Begin();
}

void UnaryCall::Begin() {
  arrival_ = std::chrono::steady_clock::now();
  expiry_ = arrival_ + state_->options.unary_deadline;
  const Recognized recognized = queue_.Describe(endpoint_, *context_, info_);
  info_.deadline = std::min(info_.deadline, expiry_);
  in_flight_.BelongTo(info_.caller, endpoint_.method);
  request_size_ = request_bytes_.Length();
  state_->UnaryBegins();
  waiting_ = queue_.AddWaiting(*this);

  references_.store(2, std::memory_order_relaxed);  // gRPC's events, the handles
  CallHandle handle(*this);
  if (absl::Status status = Admit(recognized); !status.ok()) return Answer(status);
  HandleElsewhere(std::move(handle));
}

// Or here, where that does not take long.
void UnaryCall::HandleElsewhere(CallHandle&& handle) {
  const bool takes_long =
      endpoint_.method.kind == Method::Kind::kScan || request_size_ > kLoopRequestBytesMax;
  Executor* const readers = state_->HandledOn(endpoint_.method);
  if (!takes_long && readers == nullptr) return Handle(std::move(handle));
  // `handle` stays, so that a call which is refused is not taken for one without an answer.
  auto work = [own = handle, this, takes_long]() mutable {
    at_length_ = takes_long;
    if (!closed()) Handle(std::move(own));
  };
  if (!takes_long) return readers->Schedule(std::move(work));
  const absl::Status taken = Defer(std::move(work));
  if (!taken.ok()) Answer(taken);
}

// A read in the line needs no room for its answer yet; those at work are few, so it gets it without
// being asked again. (A write's is small, and others of its document may have come with it.)
absl::Status UnaryCall::Defer(std::function<void()> work) const {
  if (endpoint_.method.kind == Method::Kind::kWrite || reserved_ == 0) {
    return state_->turns->Schedule(info_.caller, std::move(work));
  }
  const size_t room = std::exchange(reserved_, 0);
  in_flight_.SetTo(in_flight_.bytes() - room);
  return state_->turns->Schedule(info_.caller, [this, room, work = std::move(work)] {
    in_flight_.SetTo(in_flight_.bytes() + room);
    reserved_ = room;
    work();
  });
}

absl::Status UnaryCall::Admit(const Recognized& recognized) {
  absl::Status admitted = state_->admission.AdmitMessage(request_size_);
  if (admitted.ok())
    admitted = state_->admission.Admit(endpoint_.method, recognized, info_.reads_only);
  if (admitted.ok()) admitted = quota_.Begin(info_.caller, endpoint_.method, request_size_);
  if (admitted.ok()) admitted = in_flight_.Take(kCallBytes + request_size_);
  if (!admitted.ok()) request_bytes_.Clear();
  return admitted;
}

absl::Status UnaryCall::Reserve(size_t bytes) const {
  if (bytes <= reserved_) return absl::OkStatus();
  absl::Status taken = in_flight_.Take(bytes - reserved_);
  if (taken.ok()) reserved_ = bytes;
  return taken;
}

void UnaryCall::Handle(CallHandle handle) {
  reserved_ = endpoint_.method.answer_bytes;
  if (absl::Status taken = in_flight_.Take(reserved_); !taken.ok()) return Answer(taken);
  request_ = endpoint_.method.make_request(&arena_);
  response_ = endpoint_.method.make_response(&arena_);
  if (!Parse()) {
    return Answer(NotARequest(endpoint_.method));
  }
  if (absl::Status refused = state_->admission.Authorize(endpoint_.method, info_, *request_);
      !refused.ok()) {
    return Answer(refused);
  }
  // What was decoded may be many times what came.
  const size_t decoded = arena_.SpaceAllocated();
  if (decoded > kFirstBlockBytes) in_flight_.SetTo(in_flight_.bytes() + decoded);
  endpoint_.method.handle(std::move(handle));
}

bool UnaryCall::Parse() {
  grpc::Slice slice;
  bool parsed = false;
  if (request_bytes_.TrySingleSlice(&slice).ok()) {
    parsed = request_->ParseFromArray(slice.begin(), static_cast<int>(slice.size()));
  } else {
    grpc::ProtoBufferReader reader(&request_bytes_);
    parsed = request_->ParseFromZeroCopyStream(&reader) && reader.status().ok();
  }
  request_bytes_.Clear();
  return parsed;
}

// After Finish only its completion event may touch the call. The call leaves its caller's quota
// before Finish: a caller with the answer may call again at once, before that event is handled.
void UnaryCall::Answer(const absl::Status& status) {
  if (!TakeAnswer()) return;
  if (status.ok()) {
    const grpc::ByteBuffer response = SerializeResponse();
    quota_.End();
    Report(status);
    responder_->Finish(response, grpc::Status::OK, &sent_event_);
  } else {
    quota_.End();
    Report(status);
    responder_->FinishWithError(ToGrpc(status), &sent_event_);
  }
}

grpc::ByteBuffer UnaryCall::SerializeResponse() {
  response_size_ = response_->ByteSizeLong();
  grpc_slice bytes = grpc_slice_malloc(response_size_);
  response_->SerializeWithCachedSizesToArray(GRPC_SLICE_START_PTR(bytes));
  quota_.Charge(response_size_);
  const grpc::Slice slice(bytes, grpc::Slice::STEAL_REF);
  return grpc::ByteBuffer(&slice, 1);
}

void UnaryCall::Report(const absl::Status& status) const {
  state_->Report({info_.method, status, arrival_, std::chrono::steady_clock::now(), request_size_,
                  response_size_});
}

// Only the bytes of the answer are left; of what was not admitted, nothing that would take room
// from others.
void UnaryCall::Release() {
  if (!answered_.load(std::memory_order_acquire)) {
    Answer(Error(ErrorReason::kInternal, "a handler gave no answer"));
  }
  arena_.Reset();
  if (in_flight_.bytes() > 0) in_flight_.SetTo(kCallBytes + response_size_);
  Unref();
}

// The answer first: whoever finds the call closed may answer, too, with what it has by then.
void UnaryCall::End(const absl::Status& status) {
  queue_.MoveToLate(*waiting_);
  late_ = true;
  Answer(status);
  closed_ = true;
}

void UnaryCall::Expire() {
  End(Error(
      ErrorReason::kDeadlineExceeded,
      "the server's deadline of " +
          std::to_string(
              std::chrono::duration_cast<std::chrono::milliseconds>(expiry_ - arrival_).count()) +
          " ms passed"));
}

void UnaryCall::Drain() {
  if (endpoint_.method.kind == Method::Kind::kWrite || endpoint_.method.writes) {
    return End(Error(ErrorReason::kOutcomeUnknown,
                     "the server ends; the write may or may not be stored; repeat it, "
                     "with the same request_id if it has one"));
  }
  End(Draining());
}

// Its caller takes nothing in.
void UnaryCall::GiveUp() {
  StopWaiting();
  context_->TryCancel();
}

void UnaryCall::OnSent(bool /*ok*/) {
  sent_ = true;
  EndIfOver();
}

void UnaryCall::OnDone(bool /*ok*/) {
  done_ = true;
  if (context_->IsCancelled()) {
    if (TakeAnswer()) {  // so that nothing is sent any more
      sent_ = true;
      Report(Error(ErrorReason::kCancelled, "the caller gave up"));
    }
    closed_ = true;
  }
  EndIfOver();
}

// gRPC's part ends here, on the queue's thread, whoever still holds the call.
void UnaryCall::EndIfOver() {
  StopWaiting();
  if (!sent_ || !done_) return;
  closed_ = true;
  responder_.reset();
  context_.reset();
  quota_.End();
  state_->UnaryEnds();
  queue_.CallEnds();
  Unref();
}

void UnaryCall::StopWaiting() {
  if (!waiting_) return;
  queue_.RemoveWaiting(*waiting_, late_);
  waiting_.reset();
}

void UnaryCall::Unref() {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

}  // namespace strata::server
