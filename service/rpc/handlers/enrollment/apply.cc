#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "schemas/base/status_macros.h"
#include "service/rpc/enrollment_messages.h"

namespace strata::rpc::enrollment_service {
namespace {

// Enough to keep the committer busy with full groups.
constexpr int64_t kUnansweredMax = 512;
// A message has names and who-and-why only; so the messages of a stream take 16 MiB at most.
constexpr size_t kMessageBytesMax = size_t{32} << 10;

// The answers of one stream, sent in the order of its messages whichever is there first. Outlives
// the stream, as messages may still be under way when it is over.
class Answers {
 public:
  explicit Answers(Stream& stream) : stream_(&stream) {}

  // The place of the next message.
  int64_t Begin() {
    const std::lock_guard lock(mutex_);
    slots_.emplace_back();
    return first_ + static_cast<int64_t>(slots_.size()) - 1;
  }

  void Give(int64_t place, const absl::StatusOr<enrollment::Applied>& applied) {
    const std::lock_guard lock(mutex_);
    wire::ApplyResponse& answer = slots_[static_cast<size_t>(place - first_)].emplace();
    if (applied.ok()) {
      FillApplied(*applied, answer);
    } else {
      FillApplyError(applied.status(), *answer.mutable_error());
    }
    for (; !slots_.empty() && slots_.front(); slots_.pop_front(), ++first_) {
      if (stream_ != nullptr) stream_->Send(*slots_.front());
    }
    FinishIfAnswered();
  }

  // There are no more messages.
  void End() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    FinishIfAnswered();
  }

  void Close() {
    const std::lock_guard lock(mutex_);
    stream_ = nullptr;
  }

 private:
  void FinishIfAnswered() {
    if (ended_ && slots_.empty() && stream_ != nullptr) stream_->Finish(absl::OkStatus());
  }

  std::mutex mutex_;
  Stream* stream_;
  std::deque<std::optional<wire::ApplyResponse>> slots_;
  int64_t first_ = 0;  // the place of the first slot
  bool ended_ = false;
};

absl::StatusOr<enrollment::Operation> ToOperation(wire::EnrollmentOperation operation) {
  switch (operation) {
    case wire::ENROLLMENT_OPERATION_ENROLL:
      return enrollment::Operation::kEnroll;
    case wire::ENROLLMENT_OPERATION_UNENROLL:
      return enrollment::Operation::kUnenroll;
    default:
      return FieldError("operation", "is neither enroll nor unenroll");
  }
}

class Apply final : public HandlerOf<wire::ApplyRequest> {
 public:
  Apply(const Services& services, Stream& stream)
      : services_(services), stream_(stream), answers_(std::make_shared<Answers>(stream)) {}

  int64_t unanswered_max() const override { return kUnansweredMax; }
  size_t message_bytes_max() const override { return kMessageBytesMax; }

  void OnRequest(const wire::ApplyRequest& request) override {
    const int64_t place = answers_->Begin();
    absl::StatusOr<enrollment::ApplyRequest> apply = Understand(request);
    if (!apply.ok()) return answers_->Give(place, apply.status());
    services_.enrollments.Apply(
        *std::move(apply),
        [answers = answers_, place](const absl::StatusOr<enrollment::Applied>& applied) {
          answers->Give(place, applied);
        });
  }

  bool OnRefused(const absl::Status& refusal) override {
    answers_->Give(answers_->Begin(), refusal);
    return true;
  }

  void OnLastMessage() override { answers_->End(); }
  void OnClosed() override { answers_->Close(); }

 private:
  absl::StatusOr<enrollment::ApplyRequest> Understand(const wire::ApplyRequest& request) const {
    ASSIGN_OR_RETURN(const enrollment::Operation operation, ToOperation(request.operation()));
    ASSIGN_OR_RETURN(enrollment::ApplyRequest apply,
                     ToApply(request, operation, services_, stream_.info()));
    apply.deadline = std::chrono::steady_clock::now() + services_.deadline;
    return apply;
  }

  const Services& services_;
  const Stream& stream_;
  const std::shared_ptr<Answers> answers_;
};

}  // namespace

std::unique_ptr<HandlerOf<wire::ApplyRequest>> OpenApply(const Services& services, Stream& stream) {
  return std::make_unique<Apply>(services, stream);
}

}  // namespace strata::rpc::enrollment_service
