#include "service/server/unary_call.h"

#include <grpcpp/support/proto_buffer_reader.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "schemas/base/error.h"

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

UnaryCall::UnaryCall(std::shared_ptr<LoopState> state, const Endpoint& endpoint)
    : life_(std::move(state), endpoint, info_), arena_(ArenaIn(first_block_, kFirstBlockBytes)) {}

UnaryCall::~UnaryCall() = default;

void UnaryCall::Arrive(Arrival arrival) {
  life_.Begin(std::move(arrival));
  expiry_ = life_.arrival() + state().options.unary_deadline;
  info_.deadline = std::min(info_.deadline, expiry_);
  state().UnaryBegins();
}

void UnaryCall::Handle() {
  references_.store(2, std::memory_order_relaxed);  // the port, the handles
  CallHandle handle(*this);
  const absl::Status admitted = life_.Admit(kCallBytes, request_bytes_.Length());
  if (admitted.ok()) return HandleElsewhere(std::move(handle));
  request_bytes_.Clear();
  Answer(admitted);
}

// Or here, where that does not take long.
void UnaryCall::HandleElsewhere(CallHandle&& handle) {
  const Method& method = endpoint().method;
  const bool takes_long =
      method.kind == Method::Kind::kScan || life_.request_bytes() > kLoopRequestBytesMax;
  Executor* const readers = state().HandledOn(method);
  if (!takes_long && readers == nullptr) return HandleHere(std::move(handle));
  // `handle` stays, so that a call which is refused is not taken for one without an answer.
  auto work = [own = handle, this, takes_long]() mutable {
    at_length_ = takes_long;
    if (!closed()) HandleHere(std::move(own));
  };
  if (!takes_long) return readers->Schedule(std::move(work));
  const absl::Status taken = Defer(std::move(work));
  if (!taken.ok()) Answer(taken);
}

// A read in the line needs no room for its answer yet; those at work are few, so it gets it without
// being asked again. (A write's is small, and others of its document may have come with it.)
absl::Status UnaryCall::Defer(std::function<void()> work) const {
  if (endpoint().method.kind == Method::Kind::kWrite || reserved_ == 0) {
    return state().turns->Schedule(info_.caller, std::move(work));
  }
  InFlight& held = life_.held();
  const size_t room = std::exchange(reserved_, 0);
  held.SetTo(held.bytes() - room);
  return state().turns->Schedule(info_.caller, [this, &held, room, work = std::move(work)] {
    held.SetTo(held.bytes() + room);
    reserved_ = room;
    work();
  });
}

absl::Status UnaryCall::Reserve(size_t bytes) const {
  if (bytes <= reserved_) return absl::OkStatus();
  absl::Status taken = life_.held().Take(bytes - reserved_);
  if (taken.ok()) reserved_ = bytes;
  return taken;
}

void UnaryCall::HandleHere(CallHandle handle) {
  const Method& method = endpoint().method;
  reserved_ = method.answer_bytes;
  if (absl::Status taken = life_.held().Take(reserved_); !taken.ok()) return Answer(taken);
  request_ = method.make_request(&arena_);
  response_ = method.make_response(&arena_);
  if (!Parse()) return Answer(NotARequest(method));
  if (absl::Status refused = life_.Authorize(*request_); !refused.ok()) return Answer(refused);
  // What was decoded may be many times what came.
  const size_t decoded = arena_.SpaceAllocated();
  if (decoded > kFirstBlockBytes) life_.held().SetTo(life_.held().bytes() + decoded);
  method.handle(std::move(handle));
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

// The call leaves its caller's quota before the answer does: a caller with the answer may call
// again at once, before the port knows that it has left.
void UnaryCall::Answer(const absl::Status& status) {
  if (!TakeAnswer()) return;
  const grpc::ByteBuffer response = status.ok() ? SerializeResponse() : grpc::ByteBuffer();
  life_.LeaveQuota();
  life_.Report(status);
  Send(status, response);
}

grpc::ByteBuffer UnaryCall::SerializeResponse() {
  const size_t size = response_->ByteSizeLong();
  grpc_slice bytes = grpc_slice_malloc(size);
  response_->SerializeWithCachedSizesToArray(GRPC_SLICE_START_PTR(bytes));
  life_.Charge(size);
  const grpc::Slice slice(bytes, grpc::Slice::STEAL_REF);
  return grpc::ByteBuffer(&slice, 1);
}

// Only the bytes of the answer are left; of what was not admitted, nothing that would take room
// from others.
void UnaryCall::Release() {
  if (!answered_.load(std::memory_order_acquire)) {
    Answer(Error(ErrorReason::kInternal, "a handler gave no answer"));
  }
  arena_.Reset();
  InFlight& held = life_.held();
  if (held.bytes() > 0) held.SetTo(kCallBytes + life_.response_bytes());
  Unref();
}

// The answer first: whoever finds the call closed may answer, too, with what it has by then.
void UnaryCall::End(const absl::Status& status) {
  Answer(status);
  closed_ = true;
}

void UnaryCall::Expire() {
  const auto deadline =
      std::chrono::duration_cast<std::chrono::milliseconds>(expiry_ - life_.arrival());
  End(Error(ErrorReason::kDeadlineExceeded,
            "the server's deadline of " + std::to_string(deadline.count()) + " ms passed"));
}

void UnaryCall::Drain() {
  if (endpoint().method.writes) {
    return End(Error(ErrorReason::kOutcomeUnknown,
                     "the server ends; the write may or may not be stored; repeat it, "
                     "with the same request_id if it has one"));
  }
  End(Draining());
}

bool UnaryCall::Abandon() {
  const bool abandons = TakeAnswer();
  if (abandons) life_.Report(Error(ErrorReason::kCancelled, "the caller gave up"));
  closed_ = true;
  return abandons;
}

void UnaryCall::Leave() {
  closed_ = true;
  life_.LeaveQuota();
  state().UnaryEnds();
}

void UnaryCall::Unref() {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

}  // namespace strata::server
