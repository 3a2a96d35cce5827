// Transactions over a store that loses outcomes and goes on: repeated under its request id, each is
// done once and whole, however late its first attempt takes effect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/support/late_store.h"
#include "tests/support/status_matchers.h"
#include "tests/support/volume.h"
#include "tests/transaction/transactions_world.h"

namespace strata::transaction::testing {
namespace {

using test_support::IsOk;

class LateOutcomesOfTransactions : public TransactionsTest {
 protected:
  std::unique_ptr<Process> ProcessOver(store::Store& store) {
    const WorldOptions options{.engine = "memory", .mode = GetParam()};
    return std::make_unique<Process>(store, options, world.clock());
  }
};
STRATA_ALL_GROUNDS(LateOutcomesOfTransactions);

TEST_P(LateOutcomesOfTransactions, MoveEverythingOnce) {
  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  std::mt19937_64 random(seed);
  const std::vector<std::string> ids{"a", "b", "c", "d"};
  Create(ids);
  std::map<std::string, int64_t> numbers;
  for (const std::string& id : ids) numbers[id] = 1;

  test_support::LateStore late(world.engine(), seed, 0.15);
  std::vector<std::string> done;
  TransactingProcess one(ProcessOver(late), world.clock());
  TransactingProcess other(ProcessOver(late), world.clock());
  for (int i = 0; i < test_support::Sampled(80, 40); ++i) {
    const std::string& from = ids[random() % ids.size()];
    const std::string& to = ids[random() % ids.size()];
    if (from == to) continue;
    const bool in_one_commit = GetParam() == Mode::kAtomic && random() % 2 == 0;
    CommitRequest request;
    request.writes = {Add(from, -1), Add(to, 1)};
    request.mode = in_one_commit ? TransactionMode::kOneCommit : TransactionMode::kTwoPhase;
    request.request_id = "move-" + std::to_string(i);
    request.max_attempts = 100;
    absl::StatusOr<Committed> committed;
    int tries = 0;
    bool cancels = false;  // somebody tried to
    do {
      ASSERT_LT(++tries, 500) << committed.status();
      committed = (random() % 2 == 0 ? one : other).Commit(request);
      const std::optional<ErrorReason> reason = ReasonOf(committed.status());
      if (cancels && reason == ErrorReason::kTransactionCancelled) break;
      ASSERT_TRUE(committed.ok() || reason == ErrorReason::kOutcomeUnknown ||
                  reason == ErrorReason::kRetriesExhausted)
          << committed.status();
      world.clock().Advance(std::chrono::milliseconds(50));
      if (!committed.ok() && !in_one_commit && random() % 4 == 0) {
        cancels = true;
        (void)other.Cancel(request.request_id);
      }
    } while (!committed.ok());
    if (!committed.ok()) continue;
    if (!in_one_commit) done.push_back(committed->transaction_id);
    --numbers[from];
    ++numbers[to];
  }
  EXPECT_GT(late.unknown(), 0u);
  late.StopLosing();
  late.Settle();
  // What was answered as done stays so, whatever took effect late.
  for (const std::string& id : done) {
    const absl::StatusOr<Transaction> undone = one.Cancel(id);
    EXPECT_TRUE(ReasonOf(undone.status()) == ErrorReason::kTransactionApplied ||
                ReasonOf(undone.status()) == ErrorReason::kTransactionNotFound)
        << id << ": " << undone.status();
  }
  for (const std::string& id : ids) {
    // A write finds out what is still undecided, and has it decided.
    ASSERT_THAT(
        one->Update(versioning::testing::Request(id), versioning::testing::Increment("/n", 0)),
        IsOk());
    const auto history = one->History({"things", id});
    ASSERT_THAT(history, IsOk());
    EXPECT_EQ(*history->front().content, Number(numbers[id])) << id;
  }
}

}  // namespace
}  // namespace strata::transaction::testing
