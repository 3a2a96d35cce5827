// One completion queue, polled by the calling thread, drives all streams, as the import does its
// calls; only reading the file has a thread of its own, which announces itself by an alarm.
#include "clients/cli/applier.h"

#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/support/async_stream.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "clients/cli/apply_error.h"
#include "clients/cpp/repetition.h"

namespace strata::cli {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// How many messages, and bytes of their lines, are held at a time: enough for all windows, unless
// one student has most of the messages.
constexpr size_t kHeldMessages = 8192;
constexpr size_t kHeldBytes = size_t{64} << 20;

struct Lane;

enum class Step { kLines, kOpened, kWritten, kRead, kFinished };

// What a tag of the completion queue points to.
struct Event {
  Lane* lane = nullptr;
  Step step = Step::kLines;
};

struct Pending {
  Message message;
  bool is_sent = false;  // Ever.
  Clock::time_point first_sent;
};

// One call of Apply, from its start to its status.
struct Stream {
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<v1::ApplyRequest, v1::ApplyResponse>> call;
  v1::ApplyResponse answer;
  grpc::Status status;
  bool open = false;
  bool writing = false;   // A message or the end of them is on its way.
  bool ended = false;     // No more messages go over it.
  bool retiring = false;  // Another one has to take its place.
  bool silent = false;    // Cancelled, because no answer came.
  bool finished = false;
  Clock::time_point heard;  // Since when nothing was heard of what is owed.
};

// A share of the students, and the stream of the moment.
struct Lane {
  Event opened{this, Step::kOpened};
  Event written{this, Step::kWritten};
  Event read{this, Step::kRead};
  Event finished{this, Step::kFinished};

  std::deque<Pending> waiting;  // In the order of their lines.
  std::deque<Pending> sent;     // Without answer; the next answer is the first one's.
  std::vector<Pending> again;   // Answered, but not definitely.
  std::unique_ptr<Stream> stream;

  // The trouble since the last definite answer.
  int attempts = 0;
  Clock::time_point trouble_since;
  Clock::time_point not_before;
  client::Refusal trouble;

  bool idle() const { return stream == nullptr && waiting.empty(); }
};

// Whether a stream that ended so may be replaced. More than for a call: what breaks a connection
// has many codes, and no message is harmed by a repetition.
bool MayBeReplaced(const client::Refusal& refusal) {
  switch (refusal.code) {
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::UNKNOWN:
    case grpc::StatusCode::INTERNAL:
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return true;
    default:
      return refusal.IsRetryable();
  }
}

client::Refusal LocalRefusal(grpc::StatusCode code, const std::string& message) {
  client::Refusal refusal;
  refusal.code = code;
  refusal.message = message;
  return refusal;
}

client::Refusal BelowFloor() {
  client::Refusal refusal =
      LocalRefusal(grpc::StatusCode::FAILED_PRECONDITION,
                   "the number is not above what was purged, and the class is no longer known");
  refusal.reason = "BELOW_FLOOR";
  return refusal;
}

class Applier {
 public:
  Applier(Session& session, const ApplySettings& settings, LineReader& lines, ApplyCounts& counts,
          const ApplyListener& listener)
      : session_(session),
        settings_(settings),
        counts_(counts),
        listener_(listener),
        repetition_(settings.retry_ms),
        lanes_(static_cast<size_t>(settings.streams)),
        source_(std::make_unique<MessageSource>(lines, settings.defaults, [this] {
          alarm_.Set(&queue_, std::chrono::system_clock::now(), &lines_event_);
        })) {}

  ~Applier() {
    source_.reset();  // First: it sets the alarm.
    alarm_.Cancel();
    for (Lane& lane : lanes_) {
      if (lane.stream != nullptr) lane.stream->context.TryCancel();
    }
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  std::optional<ApplyFailure> Run();

 private:
  void TakeLines();
  void Deal(Message message);
  void Advance(Lane& lane);
  void Open(Lane& lane);
  void WriteNext(Lane& lane);
  void WatchSilence(Lane& lane);
  void AwaitSome();
  void OnEvent(const Event& event, bool ok);
  void OnAnswer(Lane& lane);
  void Repeat(Lane& lane, Pending pending, client::Refusal refusal);
  void Count(const Pending& pending, v1::EnrollmentResult result);
  void Settle(Lane& lane, const Pending& pending);
  void Release(const Pending& pending);
  void OnFinished(Lane& lane);
  void PutBack(Lane& lane);
  void Reject(const Pending& pending, const client::Refusal& refusal, int64_t& count);
  void RejectTheRest();
  void Fail(int64_t line, client::Refusal refusal);

  Session& session_;
  const ApplySettings& settings_;
  ApplyCounts& counts_;
  const ApplyListener& listener_;
  client::Repetition repetition_;

  grpc::CompletionQueue queue_;
  grpc::Alarm alarm_;
  Event lines_event_;
  bool lines_there_ = false;
  bool at_end_ = false;
  std::deque<Lane> lanes_;
  size_t held_messages_ = 0;
  size_t held_bytes_ = 0;
  Clock::time_point settled_;               // When a message last got a definite answer.
  std::optional<ApplyFailure> unreadable_;  // The file, after what was taken.
  std::optional<ApplyFailure> failure_;     // Stops everything.
  std::unique_ptr<MessageSource> source_;   // The last member: its thread uses the others.
};

std::optional<ApplyFailure> Applier::Run() {
  while (!failure_.has_value()) {
    if (listener_.stop()) {
      Fail(counts_.messages + 1, LocalRefusal(grpc::StatusCode::CANCELLED, "interrupted"));
      break;
    }
    TakeLines();
    for (Lane& lane : lanes_) Advance(lane);
    listener_.progress();
    const bool idle =
        std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.idle(); });
    if (at_end_ && idle) return unreadable_;
    AwaitSome();
  }
  RejectTheRest();
  return failure_;
}

void Applier::TakeLines() {
  if (!lines_there_ || held_messages_ >= kHeldMessages || held_bytes_ >= kHeldBytes) return;
  lines_there_ = false;
  MessageSource::Batch batch = source_->Take();
  for (Message& message : batch.messages) Deal(std::move(message));
  counts_.bytes_read = std::max(counts_.bytes_read, batch.bytes_read);
  at_end_ = batch.at_end;
  if (batch.failure.ok()) return;
  unreadable_ =
      ApplyFailure{.line = batch.failed_line, .refusal = client::RefusalOf(batch.failure)};
}

void Applier::Deal(Message message) {
  ++counts_.messages;
  if (!message.parsed.ok()) {
    ++counts_.malformed;
    listener_.rejected(message, client::RefusalOf(message.parsed), false);
    return;
  }
  ++held_messages_;
  held_bytes_ += message.text.size();
  const size_t share = std::hash<std::string>()(message.request.student_id()) % lanes_.size();
  lanes_[share].waiting.push_back(
      {.message = std::move(message), .is_sent = false, .first_sent = {}});
}

// Does what is to be done next for the lane, if that does not have to wait.
void Applier::Advance(Lane& lane) {
  if (lane.stream == nullptr) {
    if (!lane.waiting.empty() && lane.not_before <= Clock::now()) Open(lane);
    return;
  }
  WatchSilence(lane);
  Stream& stream = *lane.stream;
  if (!stream.open || stream.writing || stream.ended) return;
  if (stream.retiring || (at_end_ && lane.waiting.empty())) {
    stream.ended = stream.writing = true;
    stream.heard = Clock::now();
    stream.call->WritesDone(&lane.written);
  } else if (!lane.waiting.empty() && lane.sent.size() < static_cast<size_t>(settings_.in_flight)) {
    WriteNext(lane);
  }
}

// Without a deadline: a stream lasts as long as there are messages.
void Applier::Open(Lane& lane) {
  lane.stream = std::make_unique<Stream>();
  Stream& stream = *lane.stream;
  stream.heard = Clock::now();
  stream.call = session_.connection().enrollments->PrepareAsyncApply(&stream.context, &queue_);
  stream.call->StartCall(&lane.opened);
}

void Applier::WriteNext(Lane& lane) {
  Stream& stream = *lane.stream;
  const Clock::time_point now = Clock::now();
  if (lane.sent.empty()) stream.heard = now;
  lane.sent.push_back(std::move(lane.waiting.front()));
  lane.waiting.pop_front();
  Pending& pending = lane.sent.back();
  if (pending.is_sent) ++counts_.repeated;
  if (!pending.is_sent) pending.first_sent = now;
  pending.is_sent = true;
  grpc::WriteOptions options;
  // The next write takes this one along.
  const bool more = lane.sent.size() < static_cast<size_t>(settings_.in_flight);
  if (more && !lane.waiting.empty()) options.set_buffer_hint();
  stream.writing = true;
  stream.call->Write(pending.message.request, options, &lane.written);
}

// A server that neither answers nor breaks off is given up after the time that a call may take.
void Applier::WatchSilence(Lane& lane) {
  Stream& stream = *lane.stream;
  const bool expects = !stream.open || stream.ended || !lane.sent.empty();
  if (!expects || stream.silent) return;
  if (Clock::now() - stream.heard <= milliseconds(session_.timeout_ms())) return;
  stream.silent = true;
  stream.context.TryCancel();
}

// Waits until something happened or a stream is due, then takes all that happened.
void Applier::AwaitSome() {
  const Clock::time_point now = Clock::now();
  Clock::time_point wake = now + milliseconds(std::min<int64_t>(200, session_.timeout_ms()));
  for (const Lane& lane : lanes_) {
    const bool delayed = lane.stream == nullptr && !lane.waiting.empty();
    if (delayed) wake = std::clamp(lane.not_before, now, wake);
  }
  auto deadline = std::chrono::system_clock::now() +
                  std::chrono::duration_cast<std::chrono::microseconds>(wake - now);
  void* tag = nullptr;
  bool ok = false;
  while (queue_.AsyncNext(&tag, &ok, deadline) == grpc::CompletionQueue::GOT_EVENT) {
    OnEvent(*static_cast<const Event*>(tag), ok);
    deadline = std::chrono::system_clock::time_point();  // Long past: what is there already.
  }
}

void Applier::OnEvent(const Event& event, bool ok) {
  if (event.step == Step::kLines) {
    lines_there_ = true;
    return;
  }
  Lane& lane = *event.lane;
  Stream& stream = *lane.stream;
  switch (event.step) {
    case Step::kOpened:
      stream.open = ok;
      break;
    case Step::kWritten:
      stream.writing = false;
      stream.ended = stream.ended || !ok;  // What broke it, its status says.
      break;
    case Step::kRead:
      if (ok) OnAnswer(lane);
      break;
    default:
      stream.finished = true;
  }
  if (event.step == Step::kOpened || event.step == Step::kRead) {
    if (ok) {
      stream.call->Read(&stream.answer, &lane.read);
    } else {
      stream.ended = true;
      stream.call->Finish(&stream.status, &lane.finished);
    }
  }
  if (stream.finished && !stream.writing) OnFinished(lane);
}

void Applier::OnAnswer(Lane& lane) {
  Stream& stream = *lane.stream;
  if (lane.sent.empty()) {
    return Fail(counts_.messages, LocalRefusal(grpc::StatusCode::INTERNAL,
                                               "the server answers more messages than were sent"));
  }
  Pending pending = std::move(lane.sent.front());
  lane.sent.pop_front();
  stream.heard = Clock::now();
  if (stream.answer.has_error()) {
    client::Refusal refusal = RefusalOfError(stream.answer.error());
    if (MayBeRepeated(refusal)) return Repeat(lane, std::move(pending), std::move(refusal));
    Reject(pending, refusal, counts_.refused);
    return Settle(lane, pending);
  }
  Count(pending, stream.answer.result());
  Settle(lane, pending);
}

void Applier::Count(const Pending& pending, v1::EnrollmentResult result) {
  switch (result) {
    case v1::ENROLLMENT_RESULT_APPLIED:
      ++counts_.applied;
      break;
    case v1::ENROLLMENT_RESULT_SUPERSEDED:
      ++counts_.superseded;
      break;
    case v1::ENROLLMENT_RESULT_DUPLICATE:
      ++counts_.duplicate;
      break;
    case v1::ENROLLMENT_RESULT_CONFLICT:
      ++counts_.conflict;
      break;
    case v1::ENROLLMENT_RESULT_BELOW_FLOOR:
      Reject(pending, BelowFloor(), counts_.below_floor);
      break;
    default:
      Reject(pending, LocalRefusal(grpc::StatusCode::INTERNAL, "an answer without a result"),
             counts_.refused);
  }
}

// A server that is going away answers so until its streams are gone: a new stream finds another.
void Applier::Repeat(Lane& lane, Pending pending, client::Refusal refusal) {
  lane.stream->retiring = true;
  const bool late = Clock::now() - pending.first_sent > milliseconds(settings_.retry_ms);
  if (late && settled_ >= pending.first_sent) {
    Reject(pending, refusal, counts_.refused);
    return Release(pending);
  }
  if (late) Fail(pending.message.line, refusal);
  lane.trouble = std::move(refusal);
  lane.again.push_back(std::move(pending));
}

void Applier::Settle(Lane& lane, const Pending& pending) {
  lane.attempts = 0;
  settled_ = Clock::now();
  Release(pending);
}

void Applier::Release(const Pending& pending) {
  --held_messages_;
  held_bytes_ -= pending.message.text.size();
}

// The stream is gone. What is left of it waits for the next one, which waits if this one broke.
void Applier::OnFinished(Lane& lane) {
  const std::unique_ptr<Stream> stream = std::move(lane.stream);
  const bool asked = !lane.again.empty() || stream->retiring;
  const bool unanswered = !lane.sent.empty();
  PutBack(lane);
  if (lane.waiting.empty() || (stream->status.ok() && !asked && !unanswered)) return;
  if (stream->silent) {
    lane.trouble = LocalRefusal(grpc::StatusCode::DEADLINE_EXCEEDED, "no answer in time");
  } else if (!stream->status.ok()) {
    lane.trouble = client::RefusalOf(stream->status);
    if (!MayBeReplaced(lane.trouble)) return Fail(lane.waiting.front().message.line, lane.trouble);
  } else if (unanswered) {
    lane.trouble = LocalRefusal(grpc::StatusCode::UNAVAILABLE,
                                "the server ended the stream before it answered all messages");
  }
  if (lane.attempts++ == 0) lane.trouble_since = Clock::now();
  const auto next = repetition_.Next(lane.trouble, lane.attempts, lane.trouble_since);
  // With answers, each message has its own time.
  if (!next.has_value() && !asked) return Fail(lane.waiting.front().message.line, lane.trouble);
  lane.not_before = next.value_or(Clock::now() + milliseconds(100));
}

// Lines are dealt in their order, so all that was sent comes before all that waits.
void Applier::PutBack(Lane& lane) {
  std::vector<Pending> back = std::move(lane.again);
  lane.again.clear();
  std::move(lane.sent.begin(), lane.sent.end(), std::back_inserter(back));
  lane.sent.clear();
  std::sort(back.begin(), back.end(),
            [](const Pending& a, const Pending& b) { return a.message.line < b.message.line; });
  lane.waiting.insert(lane.waiting.begin(), std::make_move_iterator(back.begin()),
                      std::make_move_iterator(back.end()));
}

void Applier::Reject(const Pending& pending, const client::Refusal& refusal, int64_t& count) {
  ++count;
  listener_.rejected(pending.message, refusal, false);
}

// All that was read is accounted for, also what nobody will answer any more.
void Applier::RejectTheRest() {
  for (Lane& lane : lanes_) {
    PutBack(lane);
    for (const Pending& pending : lane.waiting) {
      ++counts_.refused;
      listener_.rejected(pending.message, failure_->refusal, true);
      failure_->line = std::min(failure_->line, pending.message.line);
    }
  }
}

void Applier::Fail(int64_t line, client::Refusal refusal) {
  if (failure_.has_value()) return;
  failure_ = ApplyFailure{.line = line, .refusal = std::move(refusal)};
}

}  // namespace

std::optional<ApplyFailure> Apply(Session& session, const ApplySettings& settings,
                                  LineReader& lines, ApplyCounts& counts,
                                  const ApplyListener& listener) {
  return Applier(session, settings, lines, counts, listener).Run();
}

}  // namespace strata::cli
