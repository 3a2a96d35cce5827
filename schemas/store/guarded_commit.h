// The one loop around a guarded commit: plan on what is stored, commit, and begin anew when a guard
// failed.
//
// Three have rounds of their own, in which several calls share one commit or one call has several:
// the write path (versioning/write_path.h), dispatchers (queue/dispatcher.h), transactions in two
// phases (transaction/two_phase.h).
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "schemas/base/doors.h"
#include "schemas/base/error.h"
#include "schemas/base/executor.h"
#include "schemas/store/store.h"

namespace strata::store {

// How often a call commits before RETRIES_EXHAUSTED, where nothing else is said. Each lost race
// means that another has written what the call is about.
inline constexpr int kAttemptsMax = 16;

// RETRIES_EXHAUSTED, with the number of attempts. `subject` is what others wrote first: "lease
// jobs".
absl::Status RetriesExhausted(std::string_view subject, int attempts);

// Where a commit runs.
struct CommitGround {
  Store& store;
  Executor& executor;
  // Neither of them is used once it is closed. It belongs to what plan and answer work with, which
  // so lives until the answer.
  std::shared_ptr<Doors> gate;
};

// What a call tries to write before others do.
struct Race {
  std::string subject;  // as in RetriesExhausted
  // Of each batch. None: no call waits for it (WriteBatch::set_deadline).
  std::optional<std::chrono::steady_clock::time_point> deadline;
  int attempts_max = kAttemptsMax;
};

// One call of CommitGuarded. Kept by the commit, or by the executor's work, that goes on with it.
template <typename Plan, typename Done>
class GuardedCommit : public std::enable_shared_from_this<GuardedCommit<Plan, Done>> {
 public:
  GuardedCommit(CommitGround ground, Race race, Plan plan, Done done)
      : ground_(std::move(ground)),
        blocking_reads_(ground_.store.capabilities().blocking_reads),
        race_(std::move(race)),
        plan_(std::move(plan)),
        done_(std::move(done)) {}

  void Try() {
    WriteBatch batch;
    planned_.emplace(plan_(batch));
    if (!planned_->ok() || batch.writes().empty()) return Answer({});
    batch.set_deadline(race_.deadline);
    ++attempts_;
    ground_.store.Commit(std::move(batch), [self = this->shared_from_this()](CommitResult result) {
      self->End(std::move(result));
    });
  }

 private:
  using Planned = std::invoke_result_t<Plan&, WriteBatch&>;

  void End(CommitResult result) {
    const auto self = this->shared_from_this();
    if (result.status.ok() && !result.committed) {
      if (attempts_ < race_.attempts_max) {
        return Later([self] { self->Try(); }, [self] { self->Answer({.status = Draining()}); });
      }
      result.status = RetriesExhausted(race_.subject, attempts_);
    }
    const auto answer = [self, result] { self->Answer(result); };
    blocking_reads_ ? Later(answer, answer) : answer();
  }

  void Answer(const CommitResult& result) {
    Planned planned = result.status.ok() ? *std::move(planned_) : Planned(result.status);
    if constexpr (std::is_invocable_v<Done&, Planned, CommitPosition>) {
      done_(std::move(planned), result.position);
    } else {
      done_(std::move(planned));
    }
  }

  template <typename Work, typename Otherwise>
  void Later(Work work, Otherwise otherwise) {
    ScheduleInside(ground_.gate, ground_.executor, std::chrono::microseconds(0), std::move(work),
                   std::move(otherwise));
  }

  const CommitGround ground_;
  const bool blocking_reads_;
  const Race race_;
  Plan plan_;
  Done done_;
  std::optional<Planned> planned_;  // by the last plan
  int attempts_ = 0;
};

// Plans and commits until a commit succeeds.
//
// `plan(batch)` reads what is stored, adds the guarded writes, and returns a Status, or a StatusOr
// of what is true once they are committed. The first call comes on this thread. After a lost race
// it is called again, on the executor: the engine's thread must not wait for reads, and others get
// their turn. A plan that fails, or adds no writes, ends the call; nothing is committed.
//
// `done(planned)` or `done(planned, position)` is called once, on any thread, also when the gate is
// closed. It gets what the last plan returned and the commit's position (0: the engine has none),
// or the error of the commit, RETRIES_EXHAUSTED, or DRAINING when the gate closed before a lost
// race was repeated. OUTCOME_UNKNOWN ends the call: the batch may be stored. Where reads block, a
// commit's answer comes on the executor, so that `done` may read.
template <typename Plan, typename Done>
void CommitGuarded(CommitGround ground, Race race, Plan plan, Done done) {
  std::make_shared<GuardedCommit<Plan, Done>>(std::move(ground), std::move(race), std::move(plan),
                                              std::move(done))
      ->Try();
}

}  // namespace strata::store
