// Transactions in two phases under every interleaving that a seed draws: several processes over one
// engine, on one thread, whose commits and reads a test lets go one by one, or never.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schemas/store/forwarding_store.h"
#include "schemas/transaction/two_phase.h"
#include "schemas/versioning/documents.h"
#include "tests/support/manual_clock.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/single_record_store.h"

namespace strata::transaction::testing {

// Keeps work until it is asked for it.
class WorkQueue final : public Executor {
 public:
  using Executor::Schedule;
  void Schedule(std::chrono::microseconds, std::function<void()> work) override {
    work_.push_back(std::move(work));
  }
  bool empty() const { return work_.empty(); }
  void RunOne() {
    const std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    work();
  }

 private:
  std::deque<std::function<void()>> work_;
};

// Keeps commits until it is asked for them.
class Gate final : public store::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  void Commit(store::WriteBatch batch, store::CommitCallback done) override {
    if (change_batch) batch = change_batch(std::move(batch));
    held_.emplace_back(std::move(batch), std::move(done));
  }
  bool empty() const { return held_.empty(); }
  void LetGo() {
    auto [batch, done] = std::move(held_.front());
    held_.pop_front();
    inner().Commit(std::move(batch), std::move(done));
  }

  // For faults that are planted.
  std::function<store::WriteBatch(store::WriteBatch)> change_batch;

 private:
  std::deque<std::pair<store::WriteBatch, store::CommitCallback>> held_;
};

struct ProcessOptions {
  std::string_view strategy = "deltas";
  bool single = false;  // single-record writes, no snapshots
  uint64_t seed = 1;
  StepFunction next_step = NextStep;
};

// One process over the engine. `between` is called where others may come in between.
class ScheduledProcess {
 public:
  ScheduledProcess(store::Store& engine, const Clock& clock, const ProcessOptions& options,
                   std::function<void()> between)
      : entropy_(options.seed) {
    store::Store* below = &engine;
    if (options.single) {
      single_ = std::make_unique<test_support::SingleRecordStore>(engine);
      if (between) {
        single_->set_hooks(
            {.before_get = [between](store::Keyspace, std::string_view) { between(); },
             .before_scan = nullptr,
             .before_write =
                 [between](const store::Write&, size_t) {
                   between();
                   return true;
                 }});
      }
      below = single_.get();
    }
    gate_ = std::make_unique<Gate>(*below);
    versioning::DocumentsOptions documents;
    documents.write.default_strategy = versioning::FindStrategy(options.strategy);
    documents_ = std::make_unique<versioning::Documents>(*gate_, clock, entropy_, work_, documents);
    two_phase_ = std::make_shared<TwoPhase>(*gate_, *documents_, clock, work_, work_,
                                            HoldAfter::kNever, options.next_step);
    documents_->SettleWith(
        [two_phase = two_phase_](const std::string& id, std::function<void(absl::Status)> done) {
          two_phase->Settle(id, std::move(done));
        });
  }

  versioning::Documents& documents() { return *documents_; }
  TwoPhase& two_phase() { return *two_phase_; }
  Gate& store() { return *gate_; }

  bool can_step() const { return !work_.empty() || !gate_->empty(); }
  // One commit, or one piece of work.
  void Step() {
    if (!gate_->empty()) return gate_->LetGo();
    work_.RunOne();
  }
  void Finish() {
    while (can_step()) Step();
  }

 private:
  test_support::SeededEntropy entropy_;
  std::unique_ptr<test_support::SingleRecordStore> single_;
  WorkQueue work_;
  std::unique_ptr<Gate> gate_;
  std::unique_ptr<versioning::Documents> documents_;
  std::shared_ptr<TwoPhase> two_phase_;
};

// Runs processes in an order that a seed draws. Some stand still for ever, anywhere.
class Scheduler {
 public:
  explicit Scheduler(uint64_t seed) : random_(seed) {}

  struct Agent {
    std::unique_ptr<ScheduledProcess> process;
    std::function<void(ScheduledProcess&)> start;
    bool started = false;
    bool running = false;  // on the stack
    bool frozen = false;
  };

  void Add(store::Store& engine, const Clock& clock, ProcessOptions options,
           std::function<void(ScheduledProcess&)> start) {
    options.seed = random_();
    agents_.push_back(std::make_unique<Agent>());
    Agent& agent = *agents_.back();
    agent.start = std::move(start);
    agent.process =
        std::make_unique<ScheduledProcess>(engine, clock, options, [this] { ComeBetween(); });
  }

  ScheduledProcess& process(size_t i) { return *agents_[i]->process; }

  void Run(int percent_frozen) {
    while (Agent* const agent = Draw()) {
      StepOf(*agent);
      if (percent_frozen > 0 && Chance(percent_frozen)) agent->frozen = true;
    }
  }

 private:
  bool Chance(int percent) { return static_cast<int>(random_() % 100) < percent; }

  Agent* Draw() {
    std::vector<Agent*> ready;
    for (const auto& agent : agents_) {
      const bool can = !agent->started || agent->process->can_step();
      if (can && !agent->running && !agent->frozen) ready.push_back(agent.get());
    }
    return ready.empty() ? nullptr : ready[random_() % ready.size()];
  }

  void StepOf(Agent& agent) {
    agent.running = true;
    if (std::exchange(agent.started, true)) {
      agent.process->Step();
    } else {
      agent.start(*agent.process);
    }
    agent.running = false;
  }

  // Between any two reads or writes of a process.
  void ComeBetween() {
    while (Chance(30)) {
      Agent* const agent = Draw();
      if (agent == nullptr) return;
      StepOf(*agent);
    }
  }

  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Agent>> agents_;
};

}  // namespace strata::transaction::testing
