// Transactions over the facade of documents, by as many processes as a test wants.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schemas/transaction/transactions.h"
#include "tests/documents/world.h"
#include "tests/support/executors.h"
#include "tests/support/seeded_entropy.h"

namespace strata::transaction::testing {

using versioning::testing::Mode;
using versioning::testing::Number;
using versioning::testing::Process;
using versioning::testing::World;
using versioning::testing::WorldOptions;

// One process that knows of transactions.
class TransactingProcess {
 public:
  TransactingProcess(std::unique_ptr<Process> process, const Clock& clock,
                     TransactionsOptions options = {})
      : process_(std::move(process)),
        transactions_(process_->store(), process_->documents(), clock, entropy_, executor_,
                      options) {}
  ~TransactingProcess() { executor_.Stop(); }

  Process* operator->() { return process_.get(); }
  Transactions& transactions() { return transactions_; }

  absl::StatusOr<Committed> Commit(CommitRequest request) {
    std::promise<absl::StatusOr<Committed>> answer;
    transactions_.Commit(std::move(request), [&](absl::StatusOr<Committed> committed) {
      answer.set_value(std::move(committed));
    });
    return answer.get_future().get();
  }
  absl::StatusOr<Transaction> Cancel(const std::string& id, versioning::ChangeInfo change = {}) {
    std::promise<absl::StatusOr<Transaction>> answer;
    transactions_.Cancel(
        id, std::move(change), std::chrono::steady_clock::time_point::max(),
        [&](absl::StatusOr<Transaction> cancelled) { answer.set_value(std::move(cancelled)); });
    return answer.get_future().get();
  }
  absl::StatusOr<Transaction> Resume(const std::string& id) {
    std::promise<absl::StatusOr<Transaction>> answer;
    transactions_.Resume(
        id, [&](absl::StatusOr<Transaction> resumed) { answer.set_value(std::move(resumed)); });
    return answer.get_future().get();
  }
  std::optional<TransactionStatus> StatusOf(const std::string& id) {
    const absl::StatusOr<Transaction> found = transactions_.Get(id);
    if (!found.ok()) return std::nullopt;
    return found->record.status;
  }

 private:
  const std::unique_ptr<Process> process_;
  test_support::SeededEntropy entropy_{7};
  test_support::ThreadExecutor executor_;
  Transactions transactions_;
};

// Where a test runs; as a mode, how.
struct Ground {
  std::string_view engine;
  Mode mode = Mode::kAtomic;

  operator Mode() const { return mode; }
};
inline void PrintTo(const Ground& ground, std::ostream* out) {
  *out << ground.engine << " " << versioning::testing::ModeName(ground.mode);
}
inline std::string GroundName(const ::testing::TestParamInfo<Ground>& info) {
  return std::string(info.param.engine);
}
inline constexpr Ground kAtomicGrounds[] = {{"memory"}, {"live"}};
inline constexpr Ground kSingleGround{"restarting", Mode::kSingle};
inline constexpr Ground kAllGrounds[] = {kAtomicGrounds[0], kAtomicGrounds[1], kSingleGround};

// An engine, and processes over it.
class TransactionsTest : public ::testing::TestWithParam<Ground> {
 protected:
  explicit TransactionsTest(std::string_view strategy = "deltas")
      : world({.engine = GetParam().engine, .mode = GetParam(), .strategy = strategy}) {}

  TransactingProcess Start(TransactionsOptions options = {}) {
    return TransactingProcess(world.Another(), world.clock(), options);
  }
  TransactingProcess StartHolding(HoldAfter after) {
    TransactionsOptions options;
    options.hold_after = after;
    return Start(options);
  }

  // {"n": 1} in each.
  void Create(std::vector<std::string> ids) {
    for (const std::string& id : ids) {
      ASSERT_TRUE(world->Create(versioning::testing::Request(id), Number(1)).ok());
    }
  }

  static Operation Write(const std::string& id, int64_t number) {
    Operation operation;
    operation.name = {"things", id};
    operation.what = Update{Number(number), false};
    return operation;
  }
  static Operation Add(const std::string& id, int32_t by) {
    Operation operation;
    operation.name = {"things", id};
    operation.what = Update{versioning::testing::Increment("/n", by), false};
    return operation;
  }
  static CommitRequest InTwoPhases(std::vector<Operation> writes, std::string id = "") {
    CommitRequest request;
    request.writes = std::move(writes);
    request.mode = TransactionMode::kTwoPhase;
    request.request_id = std::move(id);
    return request;
  }

  // Begins it in a process that stops after that.
  void LeaveAfter(HoldAfter after, CommitRequest request) {
    TransactingProcess held = StartHolding(after);
    const absl::StatusOr<Committed> committed = held.Commit(std::move(request));
    // The answer is given once it is applied.
    const std::optional<ErrorReason> expected =
        after == HoldAfter::kApplied ? std::nullopt : std::optional(ErrorReason::kOutcomeUnknown);
    ASSERT_EQ(ReasonOf(committed.status()), expected) << committed.status();
  }

  absl::StatusOr<versioning::StoredVersion> Get(const std::string& id, versioning::At at = {}) {
    return world->documents().Get({"things", id}, at);
  }
  int64_t NumberIn(const std::string& id) {
    const auto found = Get(id);
    if (!found.ok()) return -1;
    document::BsonReader reader(found->content->bytes());
    while (reader.Next()) {
      if (reader.name() == "n") return reader.Int64();
    }
    return -1;
  }

  static versioning::ChangeInfo By(std::string actor, std::string reason) {
    versioning::ChangeInfo change;
    change.actor = std::move(actor);
    change.reason = std::move(reason);
    return change;
  }
  static versioning::At Version(int64_t version) { return {version, std::nullopt}; }
  static versioning::At Time(UnixMicros time) { return {std::nullopt, time}; }

  // All that is stored.
  std::vector<std::pair<std::string, std::string>> Stored() {
    std::vector<std::pair<std::string, std::string>> records;
    const auto reader = world.engine().Snapshot();
    for (const store::Keyspace keyspace : store::kAllKeyspaces) {
      for (auto cursor = reader->Scan(keyspace, {}); cursor->Valid(); cursor->Next()) {
        records.emplace_back(cursor->key(), cursor->value());
      }
    }
    return records;
  }

  World world;
};

#define STRATA_ALL_GROUNDS(suite) \
  INSTANTIATE_TEST_SUITE_P(Engines, suite, ::testing::ValuesIn(kAllGrounds), GroundName)

}  // namespace strata::transaction::testing
