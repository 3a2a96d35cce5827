#include "service/server/stream_call.h"

#include <utility>

#include "schemas/base/error.h"

namespace strata::server {
namespace {

// What a stream costs besides its messages, gRPC's part included.
constexpr size_t kStreamBytes = size_t{16} << 10;

// A message of more bytes is not kept for the next one to be decoded into.
constexpr size_t kToldBytesMax = size_t{8} << 10;

grpc::ByteBuffer Serialize(const google::protobuf::MessageLite& message) {
  const size_t size = message.ByteSizeLong();
  grpc_slice bytes = grpc_slice_malloc(size);
  message.SerializeWithCachedSizesToArray(GRPC_SLICE_START_PTR(bytes));
  const grpc::Slice slice(bytes, grpc::Slice::STEAL_REF);
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace

StreamCall::StreamCall(std::shared_ptr<LoopState> state, const Endpoint& endpoint)
    : life_(std::move(state), endpoint, info_),
      takes_turns_(endpoint.method.kind == Method::Kind::kScan),
      handled_on_(life_.state().HandledOn(endpoint.method)) {}

void StreamCall::Arrive(Arrival arrival) {
  life_.Begin(std::move(arrival));
  old_at_ = state().OldAt(life_.arrival());
}

void StreamCall::Begin() {
  // First, so that a drain that begins now either is seen by admission or ends this stream.
  state().Add(*this);
  const absl::Status admitted = [this] {
    const Lock lock(mutex_);  // a drain may end the stream meanwhile
    return life_.Admit(kStreamBytes, 0);
  }();
  if (!admitted.ok()) return Finish(admitted);
  handler_ = endpoint().method.open(*this);
  unanswered_max_ = handler_->unanswered_max();
  answers_each_ = handler_->answers_each();
  const Lock lock(mutex_);
  ReadNext();
}

void StreamCall::Send(const google::protobuf::MessageLite& message) {
  const Lock lock(mutex_);
  if (end_ || done_) return;
  outbox_.push_back(Serialize(message));
  life_.Charge(outbox_.back().Length());
  life_.held().SetTo(life_.held().bytes() + outbox_.back().Length());
  WriteNext();
}

size_t StreamCall::waiting() const {
  const Lock lock(mutex_);
  return outbox_.size();
}

bool StreamCall::TakeRoom(size_t bytes) {
  const Lock lock(mutex_);
  if (end_ || done_) return false;
  if (bytes <= room_ || FindRoom(bytes)) return true;
  RoomLine& line = state().admission.room_line();
  asks_room_ = true;
  line.Enter(*this, *info_.caller, bytes - room_);
  // Once more: what was given back before it was in the line has woken others only.
  if (!FindRoom(bytes)) return false;
  asks_room_ = false;
  line.Leave(*this, *info_.caller);
  return true;
}

bool StreamCall::FindRoom(size_t bytes) {
  if (!life_.held().Take(bytes - room_).ok()) return false;
  room_ = bytes;
  return true;
}

void StreamCall::KeepRoom(size_t bytes) {
  const Lock lock(mutex_);
  life_.held().SetTo(life_.held().bytes() - room_ + bytes);
  room_ = bytes;
}

void StreamCall::OnRoom(bool /*ok*/) {
  Lock lock(mutex_);
  state().admission.room_line().Woken(*this);
  if (!std::exchange(asks_room_, false) || end_ || done_) return EndIfOver(std::move(lock));
  Tell(std::move(lock), [this] { handler_->OnRoom(); });
}

void StreamCall::Finish(const absl::Status& status) {
  const Lock lock(mutex_);
  if (end_ || done_) return;
  end_ = status;
  WriteNext();
}

void StreamCall::Drain() { Finish(Draining()); }

// A stream whose caller does not take a message in is stuck.
void StreamCall::Look(std::chrono::steady_clock::time_point now) {
  if (now >= old_at_) {
    Finish(Error(ErrorReason::kDraining, "the stream reached its maximum age; reconnect"));
  }
  const Lock lock(mutex_);
  const bool leaving = writing_ || (finishing_ && !finished_);
  if (leaving && !done_ && now - writing_since_ >= state().options.stream_message_max) Cancel();
}

void StreamCall::ReadNext() {
  if (reading_ || read_all_ || end_ || done_) return;
  if (unanswered_ >= unanswered_max_) return;
  if (!answers_each_ && static_cast<int64_t>(outbox_.size()) >= unanswered_max_) return;
  reading_ = true;
  Read(message_);
}

void StreamCall::WriteNext() {
  if (writing_ || finishing_ || done_) return;
  if (!outbox_.empty()) {
    writing_ = true;
    writing_since_ = std::chrono::steady_clock::now();
    Write(outbox_.front());
  } else if (end_) {
    finishing_ = true;
    writing_since_ = std::chrono::steady_clock::now();
    life_.LeaveQuota();  // its caller may begin another before it is told that this one has ended
    life_.Report(*end_);
    WriteEnd(*end_);
  }
}

void StreamCall::OnRead(bool ok) {
  Lock lock(mutex_);
  reading_ = false;
  if (!ok) {
    read_all_ = true;
    if (handler_->tells_last_from_gone()) return TellLastLater();
    return Tell(std::move(lock), [this] { handler_->OnLastMessage(); });
  }
  ++unanswered_;
  const size_t size = message_.Length();
  absl::Status admitted = life_.AdmitMessage(size, handler_->message_bytes_max());
  unanswered_sizes_.push_back(admitted.ok() ? size : 0);
  if (!admitted.ok()) {
    message_.Clear();
    return Tell(std::move(lock), [this, admitted = std::move(admitted)] { TellRefusal(admitted); });
  }
  grpc::Slice bytes;
  if (!message_.DumpToSingleSlice(&bytes).ok()) return EndIfOver(std::move(lock));
  Tell(std::move(lock), [this, bytes = std::move(bytes)] { TellMessage(bytes); });
}

// What is read last looks alike whether the caller says so or is gone; that it is gone comes with
// another event, at about the same time.
void StreamCall::TellLastLater() {
  telling_last_ = true;
  AskForLastRead();
}

void StreamCall::OnLastRead(bool /*ok*/) {
  Lock lock(mutex_);
  telling_last_ = false;
  if (done_) return EndIfOver(std::move(lock));
  Tell(std::move(lock), [this] { handler_->OnLastMessage(); });
}

void StreamCall::TellMessage(const grpc::Slice& bytes) {
  if (const absl::Status understood = Understand(bytes); !understood.ok()) {
    TellRefusal(understood);
  } else {
    handler_->OnMessage(*told_);
    CountTold();
  }
  if (bytes.size() > kToldBytesMax) told_.reset();
}

void StreamCall::TellRefusal(const absl::Status& refusal) {
  if (!handler_->OnRefused(refusal)) Finish(refusal);
  CountTold();
}

void StreamCall::CountTold() {
  if (answers_each_) return;
  const Lock lock(mutex_);
  life_.held().SetTo(life_.held().bytes() - TakeAnswered());
}

size_t StreamCall::TakeAnswered() {
  --unanswered_;
  if (unanswered_sizes_.empty()) return 0;
  const size_t bytes = unanswered_sizes_.front();
  unanswered_sizes_.pop_front();
  return bytes;
}

absl::Status StreamCall::Understand(const grpc::Slice& bytes) {
  if (told_ == nullptr) told_.reset(endpoint().method.make_request(/*arena=*/nullptr));
  if (!told_->ParseFromArray(bytes.begin(), static_cast<int>(bytes.size()))) {
    return NotARequest(endpoint().method);
  }
  return life_.Authorize(*told_);
}

void StreamCall::OnWritten(bool ok) {
  Lock lock(mutex_);
  writing_ = false;
  size_t left = outbox_.front().Length();
  outbox_.pop_front();
  if (answers_each_) left += TakeAnswered();
  life_.held().SetTo(life_.held().bytes() - left);
  if (!ok) outbox_.clear();
  WriteNext();
  ReadNext();
  const bool all_sent = ok && outbox_.empty() && !end_ && !done_;
  if (!all_sent) return EndIfOver(std::move(lock));
  Tell(std::move(lock), [this] { handler_->OnSent(); });
}

void StreamCall::OnFinished(bool /*ok*/) {
  Lock lock(mutex_);
  finished_ = true;
  EndIfOver(std::move(lock));
}

void StreamCall::OnDone(bool /*ok*/) {
  Lock lock(mutex_);
  done_ = true;
  if (!finishing_) life_.Report(Error(ErrorReason::kCancelled, "the caller gave up"));
  EndIfOver(std::move(lock));
}

template <typename Work>
void StreamCall::Tell(Lock lock, Work work) {
  if (!takes_turns_ && handled_on_ == nullptr) {
    lock.unlock();  // as the handler sends
    work();
    lock.lock();
    ReadNext();
    return EndIfOver(std::move(lock));
  }
  if (end_ || done_) return EndIfOver(std::move(lock));
  untold_.push_back(std::move(work));
  if (std::exchange(telling_, true)) return;
  lock.unlock();
  ScheduleTelling();
}

void StreamCall::ScheduleTelling() {
  const absl::Status taken = ScheduleNext();
  if (taken.ok()) return;
  Finish(taken);
  TellNext();
}

absl::Status StreamCall::ScheduleNext() {
  if (takes_turns_) return state().turns->Schedule(info_.caller, [this] { TellNext(); });
  handled_on_->Schedule([this] { TellNext(); });
  return absl::OkStatus();
}

// One thing at a time, so that others on the executor have their turn; nothing any more once the
// stream ends.
void StreamCall::TellNext() {
  Lock lock(mutex_);
  if (!end_ && !done_) {
    const std::function<void()> work = std::move(untold_.front());
    untold_.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
  ReadNext();
  if (end_ || done_) untold_.clear();
  if (!untold_.empty()) {
    lock.unlock();
    return ScheduleTelling();
  }
  telling_ = false;
  EndIfOver(std::move(lock));
}

bool StreamCall::Over() {
  const bool over =
      done_ && !reading_ && !writing_ && !telling_ && !telling_last_ && (finished_ || !finishing_);
  return over && state().admission.room_line().Leave(*this, *info_.caller);
}

// Only one event finds the stream over: those that could be the last change its state and look
// under one lock.
void StreamCall::EndIfOver(Lock lock) {
  if (!Over()) return;
  lock.unlock();
  state().Remove(*this);
  if (handler_ != nullptr) handler_->OnClosed();  // after this, nobody else knows the stream
  EndTransport();
}

}  // namespace strata::server
