// Processes whose writes a test lets go one by one, or never.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schemas/base/error.h"
#include "schemas/queue/queues.h"
#include "schemas/store/forwarding_store.h"
#include "schemas/store/single_record_store.h"
#include "tests/queue/faulty_store.h"
#include "tests/queue/witness.h"
#include "tests/support/executors.h"
#include "tests/support/manual_clock.h"
#include "tests/support/seeded_entropy.h"

namespace strata::queue::testing {

// Keeps commits until they are let go, and then, if so asked, their answers. Below a
// SingleRecordStore each is one write, so others come between any two of them.
class HeldWrites final : public store::ForwardingStore {
 public:
  HeldWrites(store::Store& engine, Witness& witness, int process)
      : ForwardingStore(engine), witness_(witness), process_(process) {}

  void Commit(store::WriteBatch batch, store::CommitCallback done) override {
    if (dead_) return done(Refused());
    held_.push_back({std::move(batch), std::move(done), std::nullopt});
  }

  size_t held() const { return held_.size(); }
  // `answered`: its answer comes with it, else when it is let go once more.
  void LetGo(size_t index, bool answered) {
    Held held = std::move(held_[index]);
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
    if (!held.result) held.result = witness_.Commit(process_, std::move(held.batch));
    if (answered) return held.done(*held.result);
    held_.push_back(std::move(held));
  }
  // Nothing is written any more.
  void Die() {
    dead_ = true;
    while (!held_.empty()) {
      const Held held = std::move(held_.back());
      held_.pop_back();
      held.done(Refused());
    }
  }

 private:
  struct Held {
    store::WriteBatch batch;
    store::CommitCallback done;
    std::optional<store::CommitResult> result;  // it is written, and this was not told yet
  };

  static store::CommitResult Refused() {
    store::CommitResult refused;
    refused.status = Error(ErrorReason::kStoreUnavailable, "the process is dead");
    return refused;
  }

  Witness& witness_;
  const int process_;
  std::vector<Held> held_;
  bool dead_ = false;
};

// One process over the engine.
class ScheduledQueues {
 public:
  ScheduledQueues(store::Store& engine, Witness& witness, test_support::ManualClock& clock,
                  int process, bool single, Fault fault, uint64_t seed)
      : number_(process), held_(engine, witness, process), entropy_(seed), executor_(clock) {
    store::Store* below = &held_;
    if (single) {
      single_ = std::make_unique<store::SingleRecordStore>(*below);
      below = single_.get();
    }
    if (fault != Fault::kNone) {
      faulty_ = std::make_unique<FaultyStore>(*below, fault);
      below = faulty_.get();
    }
    queues_ = std::make_unique<Queues>(*below, clock, entropy_, executor_);
  }
  ~ScheduledQueues() {
    // What was not answered is not answered any more.
    queues_.reset();
    held_.Die();
  }

  int number() const { return number_; }
  Queues* operator->() { return queues_.get(); }
  HeldWrites& writes() { return held_; }
  void RunDue() { executor_.RunDue(); }
  // Until nothing is left to do at this moment.
  void Finish() {
    do {
      while (held_.held() > 0) held_.LetGo(0, true);
    } while (executor_.RunDue() > 0 || held_.held() > 0);
  }

 private:
  const int number_;
  HeldWrites held_;
  std::unique_ptr<store::SingleRecordStore> single_;
  std::unique_ptr<FaultyStore> faulty_;
  test_support::SeededEntropy entropy_;
  test_support::ManualExecutor executor_;
  std::unique_ptr<Queues> queues_;
};

}  // namespace strata::queue::testing
