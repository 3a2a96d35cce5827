#include "schemas/queue/enrollment_sink.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schemas/base/doors.h"
#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"
#include "schemas/base/utf8.h"
#include "schemas/document/bson_builder.h"

namespace strata::queue {
namespace {

using document::BsonReader;
using enrollment::Result;

// What is asked of the enrollments by one message.
struct Asked {
  DocumentName student;
  enrollment::Message message;
  versioning::ChangeInfo change;
};

absl::Status Unfit(std::string_view problem) {
  return Error(ErrorReason::kInvalidContent, problem).With("path", "/");
}

// What a message failed of, in the form of a client's reason. It may quote any part of the message,
// and be as long.
std::string AsReason(std::string text) {
  if (!IsUtf8(text)) {
    std::replace_if(
        text.begin(), text.end(), [](char c) { return (c & 0x80) != 0; }, '?');
  }
  std::replace(text.begin(), text.end(), '\0', '?');
  return std::string(CutUtf8(text, kReasonBytesMax));
}

std::optional<std::string> TextOf(BsonReader& reader) {
  BsonReader as_text = reader;
  const std::string text(as_text.String());
  if (as_text.corrupt()) return std::nullopt;
  return text;
}

std::optional<int64_t> NumberOf(BsonReader& reader) {
  BsonReader as_number = reader;
  const int64_t number = as_number.Int64();
  if (as_number.corrupt()) return std::nullopt;
  return number;
}

// Whom the message says that it is for; where it says nothing, who pushed it. ACT_FOR_DENIED.
absl::StatusOr<std::string> OnBehalfOf(const Message& message, std::optional<std::string> named,
                                       const EnrollmentSink& sink, const StandingGrants* grants) {
  if (!named) return message.pusher;
  if (*named != message.pusher && grants != nullptr) {
    RETURN_IF_ERROR(grants->MayActFor(message.pusher, *named, sink.collection));
  }
  return *std::move(named);
}

// INVALID_CONTENT, ACT_FOR_DENIED, and what Enrollments refuses.
absl::StatusOr<Asked> Parse(const MessageView& view, const EnrollmentSink& sink,
                            const StandingGrants* grants) {
  Asked asked;
  std::optional<std::string> on_behalf_of;
  asked.student.collection = sink.collection;
  asked.message.set = sink.set;
  asked.change.actor = "queue/" + view.queue;
  std::optional<int64_t> sequence_number;
  bool has_operation = false;
  BsonReader reader(view.message.payload.bytes());
  while (reader.Next()) {
    const std::string name(reader.name());
    const std::optional<std::string> text = TextOf(reader);
    const std::optional<int64_t> number = NumberOf(reader);
    if (name == "operation") {
      has_operation = text == "insert" || text == "delete";
      if (!has_operation) return Unfit("operation has to be \"insert\" or \"delete\"");
      asked.message.operation =
          text == "insert" ? enrollment::Operation::kEnroll : enrollment::Operation::kUnenroll;
    } else if (name == "student_id") {
      if (!text && !number) return Unfit("student_id has to be a string or a whole number");
      asked.student.id = text ? *text : std::to_string(*number);
    } else if (name == "class") {
      if (!text) return Unfit("class has to be a string");
      asked.message.class_name = *text;
    } else if (name == "sequence_number") {
      if (!number) return Unfit("sequence_number has to be a whole number");
      sequence_number = number;
    } else if (name == "set") {
      if (!text) return Unfit("set has to be a string");
      if (*text != sink.set) return Unfit("set is the queue's to say: " + sink.set);
    } else if (name == "reason") {
      if (!text) return Unfit("reason has to be a string");
      asked.change.reason = *text;
    } else if (name == "actor" || name == "on_behalf_of") {
      // The queue is who acts; for whom, the message says.
      if (!text) return Unfit(name + " has to be a string");
      on_behalf_of = *text;
    } else {
      return Unfit("has the unknown member " + name);
    }
  }
  if (reader.corrupt()) return Unfit("is no document");
  if (!has_operation) return Unfit("lacks operation");
  if (!sequence_number) return Unfit("lacks sequence_number");
  asked.message.sequence_number = *sequence_number;
  ASSIGN_OR_RETURN(asked.change.on_behalf_of,
                   OnBehalfOf(view.message, std::move(on_behalf_of), sink, grants));
  RETURN_IF_ERROR(enrollment::ValidateMessage(asked.student.id, asked.message));
  RETURN_IF_ERROR(versioning::ValidateChange(asked.change));
  return asked;
}

// Trying again changes nothing.
bool IsFinal(const absl::Status& status) {
  switch (ReasonOf(status).value_or(ErrorReason::kInternal)) {
    case ErrorReason::kInvalidContent:
    case ErrorReason::kActForDenied:
    case ErrorReason::kInvalidName:
    case ErrorReason::kInvalidField:
    case ErrorReason::kEnrollmentShape:
    case ErrorReason::kDocumentDeleted:
    case ErrorReason::kDocumentTooLarge:
    case ErrorReason::kLayoutLimit:
      return true;
    default:
      return false;
  }
}

// Somebody else has the message, or it is done.
bool IsOver(const absl::Status& status) {
  switch (ReasonOf(status).value_or(ErrorReason::kInternal)) {
    case ErrorReason::kReservationLost:
    case ErrorReason::kMessageNotFound:
    case ErrorReason::kAlreadyAcknowledged:
      return true;
    default:
      return false;
  }
}

// The producers' faults, that a message dies of.
std::optional<std::string> FaultOf(Result result) {
  if (result == Result::kConflict) return "CONFLICT: another message has the same number";
  if (result == Result::kBelowFloor) return "BELOW_FLOOR: tombstones were purged past its number";
  return std::nullopt;
}

// A write that is not to take place together with the acknowledgement.
constexpr ErrorReason kFault = ErrorReason::kFilterNotMatched;

}  // namespace

class EnrollmentSinks::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(Queues& queues, versioning::Documents& documents, enrollment::Enrollments& enrollments,
       const store::Capabilities& capabilities, const document::Limits& limits, Executor& executor,
       const StandingGrants* grants)
      : queues_(queues),
        documents_(documents),
        enrollments_(enrollments),
        atomic_(capabilities.atomic_batches),
        limits_(limits),
        executor_(executor),
        grants_(grants) {}

  void Close() {
    std::map<std::string, Served> served;
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      served.swap(served_);
    }
    for (auto& [name, one] : served) {
      if (one.receiver) one.receiver->Leave(true);
    }
    served.clear();
    doors_.Close();
  }

  void Start(std::chrono::microseconds interval) {
    executor_.Schedule([weak = weak_from_this(), interval] {
      const std::shared_ptr<Impl> self = weak.lock();
      if (self == nullptr) return;
      self->Look();
      self->executor_.Schedule(interval, [weak, interval] {
        if (const std::shared_ptr<Impl> again = weak.lock()) again->Start(interval);
      });
    });
  }

  void Look();

 private:
  class Sink;
  struct Served {
    EnrollmentSink settings;
    std::shared_ptr<Sink> sink;
    std::unique_ptr<Receiver> receiver;
  };

  void Serve(const std::string& queue, const EnrollmentSink& settings);
  void Forget(const std::string& queue, const Sink* sink);
  void Process(const std::shared_ptr<Sink>& sink, const MessageView& view);
  void ApplyAndAcknowledge(const std::shared_ptr<Sink>& sink, Asked asked, std::string token);
  void ApplyFirst(const std::shared_ptr<Sink>& sink, Asked asked, std::string token);
  void End(const std::string& token, const absl::Status& status);
  void Die(const std::string& token, std::string reason);

  Queues& queues_;
  versioning::Documents& documents_;
  enrollment::Enrollments& enrollments_;
  const bool atomic_;
  const document::Limits limits_;
  Executor& executor_;
  const StandingGrants* const grants_;
  Doors doors_;

  std::mutex mutex_;  // guards what follows
  bool closed_ = false;
  std::map<std::string, Served> served_;
};

class EnrollmentSinks::Impl::Sink final : public ReceiverSink,
                                          public std::enable_shared_from_this<Sink> {
 public:
  Sink(std::weak_ptr<Impl> impl, std::string queue, EnrollmentSink settings)
      : impl_(std::move(impl)), queue_(std::move(queue)), settings_(std::move(settings)) {}

  const EnrollmentSink& settings() const { return settings_; }
  bool ended() const { return ended_; }

  bool closed() const override { return false; }
  void Deliver(std::vector<MessageView> messages) override {
    const std::shared_ptr<Impl> impl = impl_.lock();
    if (impl == nullptr) return;
    // The queue's own thread is not to wait for what messages do.
    impl->executor_.Schedule(
        [weak = impl_, self = shared_from_this(), messages = std::move(messages)] {
          const std::shared_ptr<Impl> living = weak.lock();
          if (living == nullptr) return;
          const Doors::Visit visit(living->doors_);
          if (!visit.let_in()) return;
          for (const MessageView& view : messages) living->Process(self, view);
        });
  }
  void Answer(std::vector<std::string> /*tokens*/,
              std::vector<absl::StatusOr<bool>> /*replayed*/) override {}
  // It is served again when it is found again.
  void End(absl::Status /*status*/) override {
    ended_ = true;
    const std::shared_ptr<Impl> impl = impl_.lock();
    if (impl == nullptr) return;
    impl->executor_.Schedule([weak = impl_, self = shared_from_this()] {
      if (const std::shared_ptr<Impl> living = weak.lock()) {
        living->Forget(self->queue_, self.get());
      }
    });
  }

 private:
  const std::weak_ptr<Impl> impl_;
  const std::string queue_;
  const EnrollmentSink settings_;
  std::atomic<bool> ended_ = false;
};

void EnrollmentSinks::Impl::Look() {
  const Doors::Visit visit(doors_);
  if (!visit.let_in()) return;
  constexpr size_t kPage = 500;
  std::string after;
  std::map<std::string, EnrollmentSink> wanted;
  for (;;) {
    const absl::StatusOr<std::vector<Queue>> page = queues_.List(after, kPage);
    if (!page.ok()) return;  // the next look finds them
    for (const Queue& queue : *page) {
      const std::optional<EnrollmentSink>& sink = queue.settings.enrollments;
      if (!sink) continue;
      if (grants_ != nullptr &&
          !grants_->MayWriteCollection(queue.settings.owner, sink->collection)) {
        continue;
      }
      wanted.emplace(queue.name, *sink);
    }
    if (page->size() < kPage) break;
    after = page->back().name;
  }
  std::vector<std::unique_ptr<Receiver>> leaving;
  std::vector<std::string> missing;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    for (auto one = served_.begin(); one != served_.end();) {
      const auto still = wanted.find(one->first);
      // One that ended before it was known as served is not forgotten otherwise.
      const bool ended = one->second.sink->ended();
      if (still != wanted.end() && still->second == one->second.settings && !ended) {
        wanted.erase(still);
        ++one;
        continue;
      }
      leaving.push_back(std::move(one->second.receiver));
      one = served_.erase(one);
    }
  }
  for (const std::unique_ptr<Receiver>& receiver : leaving) {
    if (receiver) receiver->Leave(true);
  }
  for (const auto& [name, settings] : wanted) Serve(name, settings);
}

void EnrollmentSinks::Impl::Serve(const std::string& queue, const EnrollmentSink& settings) {
  auto sink = std::make_shared<Sink>(weak_from_this(), queue, settings);
  absl::StatusOr<std::unique_ptr<Receiver>> receiver =
      queues_.Receive({queue, settings.max_in_flight, std::nullopt}, sink);
  if (!receiver.ok()) return;
  std::unique_ptr<Receiver> refused;
  const std::lock_guard lock(mutex_);
  if (closed_) {
    refused = *std::move(receiver);
    return;
  }
  served_[queue] = {settings, std::move(sink), *std::move(receiver)};
}

void EnrollmentSinks::Impl::Forget(const std::string& queue, const Sink* sink) {
  std::unique_ptr<Receiver> receiver;
  const std::lock_guard lock(mutex_);
  const auto one = served_.find(queue);
  if (one == served_.end() || one->second.sink.get() != sink) return;
  receiver = std::move(one->second.receiver);
  served_.erase(one);
}

void EnrollmentSinks::Impl::Process(const std::shared_ptr<Sink>& sink, const MessageView& view) {
  absl::StatusOr<Asked> asked = Parse(view, sink->settings(), grants_);
  if (!asked.ok()) return End(view.token, asked.status());
  if (atomic_) {
    ApplyAndAcknowledge(sink, *std::move(asked), view.token);
  } else {
    ApplyFirst(sink, *std::move(asked), view.token);
  }
}

void EnrollmentSinks::Impl::ApplyAndAcknowledge(const std::shared_ptr<Sink>& sink, Asked asked,
                                                std::string token) {
  absl::StatusOr<std::unique_ptr<UnitSteps>> planned = queues_.PlanUnit({token}, {});
  if (!planned.ok()) return End(token, planned.status());
  const std::shared_ptr<UnitSteps> steps = *std::move(planned);
  versioning::WriteRequest request;
  request.name = asked.student;
  request.change = asked.change;
  request.joined = {steps->plan()};
  const auto apply = enrollment::MessageMutator(asked.student, asked.message, limits_, nullptr);
  const auto unless_fault =
      [apply](const versioning::CurrentState& current) -> absl::StatusOr<versioning::Mutation> {
    ASSIGN_OR_RETURN(versioning::Mutation mutation, apply(current));
    if (FaultOf(static_cast<Result>(mutation.note))) return Error(kFault, "a producer's fault");
    return mutation;
  };
  documents_.Modify(
      std::move(request), unless_fault,
      [self = shared_from_this(), sink, steps, asked = std::move(asked),
       token = std::move(token)](absl::StatusOr<versioning::WriteResult> result) mutable {
        const Doors::Visit visit(self->doors_);
        if (!visit.let_in()) return;
        if (result.ok()) return steps->Committed(result->position);
        if (ReasonOf(result.status()) == kFault) {
          return self->ApplyFirst(sink, std::move(asked), std::move(token));
        }
        self->End(token, result.status());
      });
}

void EnrollmentSinks::Impl::ApplyFirst(const std::shared_ptr<Sink>& /*sink*/, Asked asked,
                                       std::string token) {
  enrollment::ApplyRequest request;
  request.student = std::move(asked.student);
  request.message = std::move(asked.message);
  request.change = std::move(asked.change);
  enrollments_.Apply(std::move(request), [self = shared_from_this(), token = std::move(token)](
                                             absl::StatusOr<enrollment::Applied> applied) {
    const Doors::Visit visit(self->doors_);
    if (!visit.let_in()) return;
    if (!applied.ok()) return self->End(token, applied.status());
    if (auto fault = FaultOf(applied->result)) {
      return self->Die(token, *std::move(fault));
    }
    self->queues_.Acknowledge({token}, kNoDeadline, [](const auto&) {});
  });
}

// What was not applied: it dies of what no repetition changes; else it comes again.
void EnrollmentSinks::Impl::End(const std::string& token, const absl::Status& status) {
  if (IsOver(status)) return;
  const std::string reason =
      std::string(ReasonName(ReasonOf(status).value_or(ErrorReason::kInternal))) + ": " +
      std::string(ToStd(status.message()));
  if (IsFinal(status)) return Die(token, reason);
  RollbackRequest rollback;
  rollback.tokens = {token};
  rollback.reason = AsReason(reason);
  queues_.Rollback(std::move(rollback), [](const auto&) {}).IgnoreError();
}

void EnrollmentSinks::Impl::Die(const std::string& token, std::string reason) {
  RollbackRequest rollback;
  rollback.tokens = {token};
  rollback.dead = true;
  rollback.reason = AsReason(std::move(reason));
  queues_.Rollback(std::move(rollback), [](const auto&) {}).IgnoreError();
}

EnrollmentSinks::EnrollmentSinks(Queues& queues, versioning::Documents& documents,
                                 enrollment::Enrollments& enrollments,
                                 const store::Capabilities& capabilities,
                                 const document::Limits& limits, Executor& executor,
                                 const StandingGrants* grants)
    : impl_(std::make_shared<Impl>(queues, documents, enrollments, capabilities, limits, executor,
                                   grants)) {}

EnrollmentSinks::~EnrollmentSinks() { impl_->Close(); }

void EnrollmentSinks::Start(std::chrono::microseconds interval) { impl_->Start(interval); }

void EnrollmentSinks::Look() { impl_->Look(); }

}  // namespace strata::queue
