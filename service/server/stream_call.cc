#include "service/server/stream_call.h"

#include <utility>

#include "schemas/base/error.h"
#include "service/server/status_mapping.h"

namespace strata::server {
namespace {

// What a stream costs besides its messages, gRPC's part included.
constexpr size_t kStreamBytes = size_t{16} << 10;

// For it to be found that a caller is gone.
constexpr std::chrono::milliseconds kGoneMoment{20};

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

void RegisterStreamCall(EventQueue& queue, const Endpoint& endpoint) {
  new StreamCall(queue, endpoint);  // owns itself
}

StreamCall::StreamCall(EventQueue& queue, const Endpoint& endpoint)
    : queue_(queue),
      endpoint_(endpoint),
      takes_turns_(endpoint.method.kind == Method::Kind::kScan),
      handled_on_(queue.state()->HandledOn(endpoint.method)),
      in_flight_(queue.state()->admission) {
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
  old_at_ = queue_.OldAt(arrival_);
  const LoopState& state = *queue_.state();
  const Recognized recognized = queue_.Describe(endpoint_, context_, info_);
  // First, so that a drain that begins now either is seen by admission or ends this stream.
  queue_.AddStream(*this);
  absl::Status admitted = state.admission.Admit(endpoint_.method, recognized, info_.reads_only);
  if (admitted.ok()) {
    const Lock lock(mutex_);  // a drain may end the stream meanwhile
    admitted = quota_.Begin(info_.caller, endpoint_.method, 0);
  }
  in_flight_.BelongTo(info_.caller, endpoint_.method);
  if (admitted.ok()) admitted = in_flight_.Take(kStreamBytes);
  if (!admitted.ok()) return Finish(admitted);
  handler_ = endpoint_.method.open(*this);
  unanswered_max_ = handler_->unanswered_max();
  answers_each_ = handler_->answers_each();
  const Lock lock(mutex_);
  ReadNext();
}

void StreamCall::Send(const google::protobuf::MessageLite& message) {
  const Lock lock(mutex_);
  if (end_ || done_) return;
  outbox_.push_back(Serialize(message));
  response_bytes_ += outbox_.back().Length();
  quota_.Charge(outbox_.back().Length());
  in_flight_.SetTo(in_flight_.bytes() + outbox_.back().Length());
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
  RoomLine& line = queue_.state()->admission.room_line();
  asks_room_ = true;
  line.Enter(*this, *info_.caller, bytes - room_);
  // Once more: what was given back before it was in the line has woken others only.
  if (!FindRoom(bytes)) return false;
  asks_room_ = false;
  line.Leave(*this, *info_.caller);
  return true;
}

bool StreamCall::FindRoom(size_t bytes) {
  if (!in_flight_.Take(bytes - room_).ok()) return false;
  room_ = bytes;
  return true;
}

void StreamCall::KeepRoom(size_t bytes) {
  const Lock lock(mutex_);
  in_flight_.SetTo(in_flight_.bytes() - room_ + bytes);
  room_ = bytes;
}

// On any thread, with the line's lock held; the loop tells the handler.
void StreamCall::Wake() {
  room_alarm_.emplace().Set(&queue_.queue(), std::chrono::system_clock::now(), &room_event_);
}

void StreamCall::OnRoom(bool /*ok*/) {
  Lock lock(mutex_);
  queue_.state()->admission.room_line().Woken(*this);
  if (!std::exchange(asks_room_, false) || end_ || done_) return EndIfOver(std::move(lock));
  Tell(std::move(lock), [this] { handler_->OnRoom(); });
}

void StreamCall::Finish(const absl::Status& status) {
  const Lock lock(mutex_);
  if (end_ || done_) return;
  end_ = status;
  WriteNext();
}

void StreamCall::GiveUpIfStuck(std::chrono::steady_clock::time_point now) {
  const Lock lock(mutex_);
  const bool leaving = writing_ || (finishing_ && !finished_);
  if (leaving && !done_ && now - writing_since_ >= queue_.state()->options.stream_message_max) {
    context_.TryCancel();
  }
}

void StreamCall::FinishIfOld(std::chrono::steady_clock::time_point now) {
  if (now < old_at_) return;
  Finish(Error(ErrorReason::kDraining, "the stream reached its maximum age; reconnect"));
}

void StreamCall::ReadNext() {
  if (reading_ || read_all_ || end_ || done_) return;
  if (unanswered_ >= unanswered_max_) return;
  if (!answers_each_ && static_cast<int64_t>(outbox_.size()) >= unanswered_max_) return;
  reading_ = true;
  stream_.Read(&message_, &read_event_);
}

void StreamCall::WriteNext() {
  if (writing_ || finishing_ || done_) return;
  if (!outbox_.empty()) {
    writing_ = true;
    writing_since_ = std::chrono::steady_clock::now();
    stream_.Write(outbox_.front(), &written_event_);
  } else if (end_) {
    finishing_ = true;
    writing_since_ = std::chrono::steady_clock::now();
    quota_.End();  // its caller may begin another before it is told that this one has ended
    Report(*end_);
    stream_.Finish(ToGrpc(*end_), &finished_event_);
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
  request_bytes_ += size;
  absl::Status admitted =
      queue_.state()->admission.AdmitMessage(size, handler_->message_bytes_max());
  if (admitted.ok()) admitted = quota_.Take(size);
  if (admitted.ok()) admitted = in_flight_.Take(size);
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
  const auto due = std::chrono::system_clock::now() + kGoneMoment;
  last_read_alarm_.emplace().Set(&queue_.queue(), due, &last_read_event_);
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
  in_flight_.SetTo(in_flight_.bytes() - TakeAnswered());
}

size_t StreamCall::TakeAnswered() {
  --unanswered_;
  if (unanswered_sizes_.empty()) return 0;
  const size_t bytes = unanswered_sizes_.front();
  unanswered_sizes_.pop_front();
  return bytes;
}

absl::Status StreamCall::Understand(const grpc::Slice& bytes) {
  if (told_ == nullptr) told_.reset(endpoint_.method.make_request(/*arena=*/nullptr));
  if (!told_->ParseFromArray(bytes.begin(), static_cast<int>(bytes.size()))) {
    return NotARequest(endpoint_.method);
  }
  return queue_.state()->admission.Authorize(endpoint_.method, info_, *told_);
}

void StreamCall::OnWritten(bool ok) {
  Lock lock(mutex_);
  writing_ = false;
  size_t left = outbox_.front().Length();
  outbox_.pop_front();
  if (answers_each_) left += TakeAnswered();
  in_flight_.SetTo(in_flight_.bytes() - left);
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
  if (!finishing_) Report(Error(ErrorReason::kCancelled, "the caller gave up"));
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
  if (takes_turns_) return queue_.state()->turns->Schedule(info_.caller, [this] { TellNext(); });
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
  return over && queue_.state()->admission.room_line().Leave(*this, *info_.caller);
}

// Only one event finds the stream over: those that could be the last change its state and look
// under one lock.
void StreamCall::EndIfOver(Lock lock) {
  if (!Over()) return;
  lock.unlock();
  const std::shared_ptr<LoopState> state = queue_.state();
  queue_.RemoveStream(*this);
  if (handler_ != nullptr) handler_->OnClosed();  // after this, nobody else knows the stream
  EventQueue& queue = queue_;
  delete this;
  queue.CallEnds();
}

void StreamCall::Report(const absl::Status& status) const {
  queue_.state()->Report({info_.method, status, arrival_, std::chrono::steady_clock::now(),
                          request_bytes_, response_bytes_});
}

}  // namespace strata::server
