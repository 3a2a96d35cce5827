// Writers of documents that a transaction in two phases is changing, on stores without snapshots:
// what they read first may be settled when they read on.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/documents/units.h"
#include "tests/support/hooked_store.h"
#include "tests/transaction/transactions_world.h"

namespace strata::transaction::testing {
namespace {

using test_support::HookedStore;
using versioning::testing::Answer;

class SettledMeanwhile : public TransactionsTest {};
INSTANTIATE_TEST_SUITE_P(Engines, SettledMeanwhile, ::testing::Values(kSingleGround), GroundName);

// It would say the same as the version that was cancelled, and is no repetition of it.
TEST_P(SettledMeanwhile, AWriteIsNotDecidedOnWhatWasCancelled) {
  Create({"a", "b"});
  LeaveAfter(HoldAfter::kFirstSlot, InTwoPhases({Write("a", 2), Write("b", 2)}, "id"));
  TransactingProcess other = Start();
  HookedStore store(world->store());
  test_support::SeededEntropy entropy(5);
  test_support::ThreadExecutor executor;
  versioning::Documents documents(store, world.clock(), entropy, executor, {});
  Transactions transactions(store, documents, world.clock(), entropy, executor, {});
  bool cancelled = false;
  test_support::StoreHooks hooks;
  hooks.before_get = [&](store::Keyspace keyspace, std::string_view) {
    if (keyspace != store::Keyspace::kTransactions || std::exchange(cancelled, true)) return;
    EXPECT_TRUE(other.Cancel("id").ok());
  };
  store.set_hooks(hooks);
  Answer answer;
  documents.Update(versioning::testing::Request("a"), Number(2), false, answer.Callback());
  const auto& written = answer.Wait();
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_TRUE(cancelled);
  EXPECT_TRUE(written->changed);
  EXPECT_EQ(written->version.header.version, 4);
  EXPECT_EQ(NumberIn("a"), 2);
  executor.Stop();
}

}  // namespace
}  // namespace strata::transaction::testing
