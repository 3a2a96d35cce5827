// Transactions in one process whose commits, reads and time the test lets go.
#pragma once

#include <chrono>
#include <optional>
#include <utility>

#include "tests/support/hooked_store.h"
#include "tests/support/manual_clock.h"
#include "tests/transaction/schedule.h"
#include "tests/transaction/transactions_world.h"

namespace strata::transaction::testing {

class SteppedTest : public TransactionsTest {
 protected:
  SteppedTest() : hooked(world.engine()), gate(hooked) { StartProcess(); }
  // What is under way still calls those that are gone.
  ~SteppedTest() override { StopProcess(); }

  void StartProcess() {
    documents.emplace(gate, world.clock(), entropy, executor, versioning::DocumentsOptions{});
    TransactionsOptions options;
    options.evaluations = &evaluations;
    transactions.emplace(gate, *documents, world.clock(), entropy, executor, options);
  }
  void StopProcess() {
    transactions.reset();
    documents.reset();
  }

  void Commit(CommitRequest request) {
    answer.reset();
    transactions->Commit(std::move(request), [this](absl::StatusOr<Committed> committed) {
      answer = std::move(committed);
    });
  }
  void CommitWithin(std::chrono::microseconds time, CommitRequest request) {
    request.deadline = world.clock().SteadyNow() + time;
    Commit(std::move(request));
  }
  CommitRequest Transfer(std::string id = "id") {
    return InTwoPhases({Add("a", 1), Add("b", 1)}, std::move(id));
  }

  // Runs what is due, until that waits for a commit, or for later.
  void RunDue() {
    while (executor.RunDue() + evaluations.RunDue() > 0) {
    }
  }
  // So many commits, as far as they come without time passing.
  void LetGo(int commits) {
    RunDue();
    for (; commits > 0 && !gate.empty(); --commits) {
      gate.LetGo();
      RunDue();
    }
  }
  // All of it, through every pause.
  void Finish() {
    for (int pauses = 0; pauses < 100; ++pauses) {
      LetGo(1'000);
      world.clock().Advance(std::chrono::milliseconds(1));
    }
  }

  std::optional<ErrorReason> reason() const {
    return answer ? ReasonOf(answer->status()) : std::nullopt;
  }

  test_support::HookedStore hooked;
  Gate gate;
  test_support::SeededEntropy entropy{5};
  test_support::ManualExecutor executor{world.clock()};
  test_support::ManualExecutor evaluations{world.clock()};
  std::optional<versioning::Documents> documents;
  std::optional<Transactions> transactions;
  std::optional<absl::StatusOr<Committed>> answer;
};

#define STRATA_STEPPED(suite) \
  INSTANTIATE_TEST_SUITE_P(Engines, suite, ::testing::ValuesIn(kAtomicGrounds), GroundName)

}  // namespace strata::transaction::testing
