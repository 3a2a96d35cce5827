// The requests of calls to a queue, as operations of its dispatcher. Internal to this folder.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schemas/base/status_macros.h"
#include "schemas/queue/dispatcher.h"

namespace strata::queue {

// A message to be pushed, before its queue's clock is read.
struct PreparedPush {
  NewMessage message;  // without due and expire_time
  std::optional<std::chrono::microseconds> delay;
  std::optional<UnixMicros> deliver_time;
  std::optional<UnixMicros> expire_time;
};
// The message as it is pushed now.
NewMessage AtTime(const PreparedPush& push, const Place& place);

class PushOperation final : public Operation {
 public:
  PushOperation(std::vector<PreparedPush> messages, Deadline deadline, bool atomic,
                PushCallback done);

  size_t steps() const override { return messages_.size(); }
  size_t bytes() const override { return bytes_; }
  Deadline deadline() const override { return deadline_; }
  absl::Status Check(Draft& draft, const Place& place) override;
  absl::Status Plan(size_t step, Draft& draft, const Place& place) override;
  void Fail(size_t step, const absl::Status& status) override;
  void Count(QueueCounts& counts) const override;
  void End() override;

 private:
  const std::vector<PreparedPush> messages_;
  const Deadline deadline_;
  const bool atomic_;
  const PushCallback done_;
  size_t bytes_ = 0;
  std::vector<absl::StatusOr<PushResult>> results_;
};

// A step for each of some tokens of one queue.
class TokenOperation final : public Operation {
 public:
  using Step =
      std::function<absl::StatusOr<TokenResult>(Draft& draft, const Place& place, const Token&)>;
  using Done = std::function<void(std::vector<absl::StatusOr<bool>> replayed)>;

  // Without a deadline: what a stream asks for, whose answer is never late. `counted`: which of the
  // counts they are.
  TokenOperation(std::vector<Token> tokens, int64_t timeline, std::optional<Deadline> deadline,
                 Step step, int64_t QueueCounts::*counted, Done done);

  size_t steps() const override { return tokens_.size(); }
  Deadline deadline() const override { return deadline_.value_or(kNoDeadline); }
  bool background() const override { return !deadline_; }
  // An acknowledgement counts it as done if the message is not kept.
  bool makes_room(const QueueRecord& queue) const override {
    return counted_ == &QueueCounts::acknowledged && queue.settings.history_retention.count() == 0;
  }
  std::optional<MessageId> Concerns(size_t step) const override { return tokens_[step].message; }
  absl::Status Plan(size_t step, Draft& draft, const Place& place) override;
  void Fail(size_t step, const absl::Status& status) override;
  void Count(QueueCounts& counts) const override;
  void End() override { done_(std::move(results_)); }

 private:
  const std::vector<Token> tokens_;
  const int64_t timeline_;
  const std::optional<Deadline> deadline_;
  const Step step_;
  int64_t QueueCounts::*const counted_;
  const Done done_;
  std::vector<absl::StatusOr<bool>> results_;
};

// A step for each of some messages of one queue, each of which takes place or does not.
class SweepOperation final : public Operation {
 public:
  using Step = std::function<absl::StatusOr<bool>(Draft& draft, const Place& place, size_t index,
                                                  const MessageId& id)>;
  // How many took place, and whether others failed; the first failure, if none took place.
  struct Result {
    int64_t messages = 0;
    bool some_failed = false;
  };
  using Done = std::function<void(absl::StatusOr<Result>)>;

  SweepOperation(std::vector<MessageId> ids, Deadline deadline, bool makes_room, Step step,
                 Done done);

  size_t steps() const override { return ids_.size(); }
  Deadline deadline() const override { return deadline_; }
  bool makes_room(const QueueRecord& /*queue*/) const override { return makes_room_; }
  std::optional<MessageId> Concerns(size_t step) const override { return ids_[step]; }
  absl::Status Plan(size_t step, Draft& draft, const Place& place) override;
  void Fail(size_t step, const absl::Status& status) override;
  void End() override;

 private:
  const std::vector<MessageId> ids_;
  const Deadline deadline_;
  const bool makes_room_;
  const Step step_;
  const Done done_;
  std::vector<absl::StatusOr<bool>> results_;
};

// Messages die whose last tries have run out. One that is left out dies when it would be handed
// out.
class BuryOperation final : public Operation {
 public:
  explicit BuryOperation(std::vector<MessageId> ids) : ids_(std::move(ids)), died_(ids_.size()) {}

  size_t steps() const override { return ids_.size(); }
  bool background() const override { return true; }
  std::optional<MessageId> Concerns(size_t step) const override { return ids_[step]; }
  absl::Status Plan(size_t step, Draft& draft, const Place& place) override {
    ASSIGN_OR_RETURN(const bool died, PlanBurial(draft, place, ids_[step]));
    died_[step] = died;
    return absl::OkStatus();
  }
  void Fail(size_t step, const absl::Status& /*status*/) override { died_[step] = false; }
  void Count(QueueCounts& counts) const override {
    counts.died += std::count(died_.begin(), died_.end(), true);
  }
  void End() override {}

 private:
  const std::vector<MessageId> ids_;
  std::vector<bool> died_;
};

// Deletes index entries whose message will never arrive. Callers wait only for its end.
class CleanOperation final : public Operation {
 public:
  CleanOperation(std::vector<Hint> hints, std::function<void()> done)
      : hints_(std::move(hints)), done_(std::move(done)) {}

  size_t steps() const override { return hints_.size(); }
  bool background() const override { return true; }
  bool makes_room(const QueueRecord& /*queue*/) const override { return true; }
  std::optional<MessageId> Concerns(size_t step) const override { return hints_[step].id; }
  absl::Status Plan(size_t step, Draft& draft, const Place& place) override {
    return PlanCleaning(draft, place, hints_[step]);
  }
  // The hint is met again later.
  void Fail(size_t /*step*/, const absl::Status& /*status*/) override {}
  void End() override { done_(); }

 private:
  const std::vector<Hint> hints_;
  const std::function<void()> done_;
};

}  // namespace strata::queue
