// A round of a dispatcher: what it takes up together. Private to the dispatcher.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "schemas/base/status_macros.h"
#include "schemas/queue/dispatcher.h"

namespace strata::queue {

// Of one round; an operation with more steps is one of its own.
inline constexpr size_t kRoundStepsMax = 256;
inline constexpr size_t kRoundBytesMax = size_t{4} << 20;

// Steps that commit together: all of a round, or one.
struct Dispatcher::Group {
  struct StepRef {
    OperationPtr operation;
    size_t step = 0;
  };
  std::vector<StepRef> steps;
  int attempts = 0;
  QueueRecordPtr queue;
  QueueRecordPtr dead_letter_queue;
  bool dead_letters_return = false;
  std::unique_ptr<Draft> draft;
  Draft::Planned planned;
  Changes changes;                  // what becomes of its queues with what was planned
  bool makes_room = false;          // all of its steps do
  Deadline deadline = kNoDeadline;  // the first of its steps'
  bool announcing = false;          // what is being committed is what is to be before the batch
  bool announced = false;           // that is there, and the batch is next
  bool failed = false;
  std::atomic<bool> turn = false;  // of who goes on after a commit: set by the first of two to pass
  bool ended = false;              // as the commit's callback left it
};

struct Dispatcher::Round {
  std::vector<OperationPtr> operations;
  std::vector<ConsumerPtr> consumers;  // who may be handed something, in their order
  std::vector<std::shared_ptr<HandOutOperation>> hand_outs;
  std::vector<GroupPtr> groups;
  std::atomic<size_t> open = 0;  // groups that have not ended, and whoever begins them
  UnixMicros now = 0;
};

// What one consumer is handed in a round.
class Dispatcher::HandOutOperation final : public Operation {
 public:
  HandOutOperation(const Dispatcher& dispatcher, ConsumerPtr consumer)
      : dispatcher_(dispatcher), consumer_(std::move(consumer)) {}

  struct Step {
    Hint hint;
    bool suspect = false;
    bool overdue = false;
    Meeting meeting = Meeting::kStale;
    Message message;
    absl::Status status;
  };

  size_t AddStep(const Window::Entry& entry) {
    steps_.push_back(
        {entry.hint, entry.suspect, entry.overdue, Meeting::kStale, {}, absl::OkStatus()});
    return steps_.size() - 1;
  }
  const ConsumerPtr& consumer() const { return consumer_; }
  const std::vector<Step>& all() const { return steps_; }
  bool handed(size_t step) const { return steps_[step].meeting == Meeting::kHandedOut; }

  size_t steps() const override { return steps_.size(); }
  // What nobody is handed is never acknowledged.
  bool makes_room(const QueueRecord& queue) const override {
    return !consumer_->pop() || queue.settings.history_retention.count() == 0;
  }
  Deadline deadline() const override { return consumer_->deadline(); }
  // A stream has what it is handed until the reservation runs out.
  bool background() const override { return consumer_->holds(); }
  std::optional<MessageId> Concerns(size_t step) const override { return steps_[step].hint.id; }
  absl::Status Plan(size_t index, Draft& draft, const Place& place) override {
    Step& step = steps_[index];
    step.status = absl::OkStatus();
    step.meeting = Meeting::kStale;
    const HandOut how{consumer_->timeout().value_or(place.queue.settings.reservation_timeout),
                      consumer_->pop(), step.overdue};
    ASSIGN_OR_RETURN(HandedOut handed,
                     PlanHandOut(draft, place, step.hint, how, !dispatcher_.atomic()));
    step.meeting = handed.meeting;
    step.message = std::move(handed.message);
    return absl::OkStatus();
  }
  void Fail(size_t index, const absl::Status& status) override {
    steps_[index].meeting = Meeting::kStale;
    steps_[index].status = status;
  }
  void Count(QueueCounts& counts) const override {
    for (const Step& step : steps_) {
      if (step.meeting == Meeting::kDead) ++counts.died;
      if (step.meeting != Meeting::kHandedOut) continue;
      ++counts.handed_out;
      if (consumer_->pop()) ++counts.acknowledged;
    }
  }
  void End() override {}

  // What the consumer gets.
  Consumer::Handed TakeHanded() {
    Consumer::Handed handed;
    handed.expected = static_cast<int32_t>(steps_.size());
    for (Step& step : steps_) {
      if (step.meeting != Meeting::kHandedOut) continue;
      MessageView view;
      view.queue = dispatcher_.name_;
      view.id = step.hint.id;
      view.state = consumer_->pop() ? State::kFinished : State::kReserved;
      if (!consumer_->pop()) {
        view.token = Token{dispatcher_.name_, step.hint.id, step.message.delivery,
                           dispatcher_.environment_->timeline}
                         .ToText();
      }
      view.message = std::move(step.message);
      handed.messages.push_back(std::move(view));
      handed.suspects.push_back(step.suspect);
    }
    return handed;
  }
  // Why it gets nothing; OK: nothing failed.
  absl::Status failure() const {
    for (const Step& step : steps_) {
      if (!step.status.ok()) return step.status;
    }
    return absl::OkStatus();
  }

 private:
  const Dispatcher& dispatcher_;
  const ConsumerPtr consumer_;
  std::vector<Step> steps_;
};

}  // namespace strata::queue
