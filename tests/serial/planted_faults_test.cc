// Faults that units must not have, planted under or above the real write path: the checker names
// the two calls that contradict each other. Without the fault the same schedule passes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "schemas/store/forwarding_store.h"
#include "tests/documents/world.h"
#include "tests/serial/history.h"
#include "tests/support/hooked_store.h"
#include "tests/support/status_matchers.h"

namespace strata::serial {
namespace {

using test_support::HookedStore;
using test_support::IsOk;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using versioning::testing::Number;
using versioning::testing::Process;
using versioning::testing::World;

// A store whose guards of what is only read are lost on the way.
class WithoutChecks final : public store::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  void Commit(store::WriteBatch batch, store::CommitCallback done) override {
    store::WriteBatch kept;
    for (const store::Write& write : batch.writes()) Copy(write, kept);
    for (const store::LedgerEntry& entry : batch.ledger()) kept.AppendToLedger(entry);
    ForwardingStore::Commit(std::move(kept), std::move(done));
  }

 private:
  static void Copy(const store::Write& write, store::WriteBatch& kept) {
    if (write.kind == store::WriteKind::kCheck) return;
    store::Write& copy = kept.Put(write.keyspace, write.key, write.value);
    copy = write;
  }
};

// A store that says what it is going to do before it has done it, and then loses its power.
class AnswersTooEarly final : public store::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  void Commit(store::WriteBatch /*batch*/, store::CommitCallback done) override {
    done({.status = absl::OkStatus(), .committed = true, .position = inner().LastPosition() + 1});
  }
};

// A store of which a reader sees each record as it is when it is asked for.
class WithoutSnapshots final : public store::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  std::unique_ptr<store::Reader> Snapshot() const override {
    return std::make_unique<store::ForwardingReader>(static_cast<const store::Reader&>(inner()));
  }
};

struct Asked {
  std::string name;
  std::vector<std::pair<std::string, int64_t>> writes;  // id, number
  std::vector<std::pair<std::string, int64_t>> reads;   // id, version
};

// Calls of documents in one collection, over stores that are sound or not, and what was answered.
class PlantedFaultsTest : public ::testing::Test {
 protected:
  PlantedFaultsTest() : options_({.engine = "memory"}), world_(options_) {
    for (const char* id : {"a", "b"}) {
      Commit(world_.process(), {std::string("creates ") + id, {{id, 0}}, {}});
    }
  }

  std::unique_ptr<Process> Over(store::Store& store) {
    return std::make_unique<Process>(store, options_, world_.clock());
  }

  // Whether it was done. `forgets_reads`: the server that is asked does not look at them.
  bool Commit(Process& process, const Asked& asked, bool forgets_reads = false) {
    versioning::UnitRequest request;
    request.transaction_id = asked.name;
    Call call{.name = asked.name, .begun = ++now_};
    for (const auto& [id, version] : asked.reads) {
      if (!forgets_reads) request.reads.push_back({{"things", id}, version});
      call.observations.push_back({id, version, {}});
    }
    for (const auto& [id, number] : asked.writes) request.changes.push_back(ChangeOf(id, number));
    std::promise<absl::StatusOr<versioning::UnitResult>> answered;
    process.documents().Commit(std::move(request),
                               [&](absl::StatusOr<versioning::UnitResult> result) {
                                 answered.set_value(std::move(result));
                               });
    const absl::StatusOr<versioning::UnitResult> result = answered.get_future().get();
    if (!result.ok()) return false;
    call.ended = ++now_;
    call.position = result->position;
    for (size_t i = 0; i < asked.writes.size(); ++i) {
      const auto& [id, number] = asked.writes[i];
      call.effects.push_back({.document = id,
                              .number = number,
                              .precondition = {},
                              .version = result->changes[i].version.header.version,
                              .answered = number});
    }
    calls_.push_back(std::move(call));
    return true;
  }

  static versioning::Change ChangeOf(const std::string& id, int64_t number) {
    versioning::Change change;
    change.request.name = {"things", id};
    change.mutate =
        [number](const versioning::CurrentState& current) -> absl::StatusOr<versioning::Mutation> {
      return versioning::Mutation{.kind = current.live() ? versioning::VersionKind::kUpdated
                                                         : versioning::VersionKind::kCreated,
                                  .content = Number(number)};
    };
    return change;
  }

  // Both documents, as of one moment if the store has any, and the position before it began.
  void ReadBoth(Process& process) {
    Call call{.name = "read", .begun = ++now_, .position = process.store().LastPosition()};
    versioning::BatchGetCursor cursor = process.documents().BatchGet("things", {"a", "b"});
    while (cursor.Next()) {
      ASSERT_NE(cursor.version(), nullptr);
      call.observations.push_back({cursor.id(), cursor.version()->header.version, {}});
    }
    ASSERT_THAT(cursor.status(), IsOk());
    call.ended = ++now_;
    calls_.push_back(std::move(call));
  }

  const versioning::testing::WorldOptions options_;
  World world_;
  std::vector<Call> calls_;
  int64_t now_ = 0;
};

// Two that each read what the other writes: one must not happen.
TEST_F(PlantedFaultsTest, AUnitWhoseReadsAreNotConfirmed) {
  for (const bool planted : {false, true}) {
    const std::string name = planted ? "planted " : "sound ";
    WithoutChecks faulty(world_.engine());
    HookedStore hooked(planted ? static_cast<store::Store&>(faulty) : world_.engine());
    const int64_t version = planted ? 2 : 1;
    bool stepped_in = false;
    test_support::StoreHooks hooks;
    hooks.before_commit = [&](const store::WriteBatch&) {
      if (std::exchange(stepped_in, true)) return;
      EXPECT_TRUE(
          Commit(world_.process(), {name + "second", {{"a", planted ? 9 : 7}}, {{"b", 1}}}));
    };
    hooked.set_hooks(std::move(hooks));
    const std::unique_ptr<Process> process = Over(hooked);
    EXPECT_EQ(Commit(*process, {name + "first", {{"b", 8}}, {{"a", version}}}), planted);
    if (!planted) {
      EXPECT_THAT(ToText(Check(calls_)), IsEmpty());
    }
  }
  EXPECT_EQ(ToText(Check(calls_)),
            "planted first and planted second: saw a version 2, and at its place there is version "
            "3\n");
}

TEST_F(PlantedFaultsTest, AUnitWhoseReadsAreNotLookedAt) {
  EXPECT_TRUE(Commit(world_.process(), {"newer", {{"a", 7}}, {}}));
  EXPECT_FALSE(Commit(world_.process(), {"late", {{"b", 8}}, {{"a", 1}}}));
  EXPECT_THAT(ToText(Check(calls_)), IsEmpty());
  EXPECT_TRUE(Commit(world_.process(), {"late", {{"b", 8}}, {{"a", 1}}}, /*forgets_reads=*/true));
  EXPECT_EQ(ToText(Check(calls_)),
            "late and newer: saw a version 1, and at its place there is version 2\n");
}

TEST_F(PlantedFaultsTest, AReadOfTwoMoments) {
  for (const bool planted : {false, true}) {
    WithoutSnapshots faulty(world_.engine());
    HookedStore hooked(planted ? static_cast<store::Store&>(faulty) : world_.engine());
    const std::unique_ptr<Process> process = Over(hooked);
    // The collection is known before the step between the two documents.
    ASSERT_NO_FATAL_FAILURE(ReadBoth(*process));
    const int64_t number = planted ? 6 : 5;
    int gets = 0;
    test_support::StoreHooks hooks;
    hooks.before_get = [&](store::Keyspace keyspace, std::string_view) {
      if (keyspace != store::Keyspace::kHeads || ++gets != 2) return;
      EXPECT_TRUE(Commit(world_.process(),
                         {planted ? "planted" : "sound", {{"a", number}, {"b", number}}, {}}));
    };
    hooked.set_hooks(std::move(hooks));
    ASSERT_NO_FATAL_FAILURE(ReadBoth(*process));
    EXPECT_GE(gets, 2);
    if (!planted) {
      EXPECT_THAT(ToText(Check(calls_)), IsEmpty());
    }
  }
  EXPECT_EQ(ToText(Check(calls_)),
            "read and planted: saw b version 3, and at its place there is version 2\n");
}

TEST_F(PlantedFaultsTest, AnAnswerBeforeItIsDurable) {
  AnswersTooEarly faulty(world_.engine());
  {
    const std::unique_ptr<Process> process = Over(faulty);
    EXPECT_TRUE(Commit(*process, {"forgotten", {{"a", 7}}, {}}));
  }
  EXPECT_TRUE(Commit(world_.process(), {"after the crash", {{"a", 8}}, {}}));
  const std::vector<Contradiction> found = Check(calls_);
  ASSERT_FALSE(found.empty());
  for (const Contradiction& one : found) {
    EXPECT_THAT((std::vector<std::string>{one.first, one.second}),
                UnorderedElementsAre("forgotten", "after the crash"));
  }
}

}  // namespace
}  // namespace strata::serial
