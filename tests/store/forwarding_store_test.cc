// What a decorator gets by deriving from ForwardingStore.
#include "schemas/store/forwarding_store.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schemas/store/cooperative.h"
#include "service/engines/engines.h"
#include "service/engines/rocksdb/rocksdb_store.h"
#include "tests/support/await_commit.h"
#include "tests/support/hooked_store.h"
#include "tests/support/ledger_entries.h"
#include "tests/support/remote_store.h"
#include "tests/support/single_record_store.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_directory.h"

namespace strata::store {
namespace {

using test_support::AwaitCommit;
using test_support::IsOk;
using testing::ElementsAre;

std::unique_ptr<Store> MemoryStore() { return *engines::OpenEngine("memory", {}); }

WriteBatch PutOf(std::string key, std::string value) {
  WriteBatch batch;
  batch.Put(Keyspace::kHeads, std::move(key), std::move(value));
  batch.AppendToLedger(test_support::EntryThatSays("entry"));
  return batch;
}

std::string ValueAt(const Reader& reader, std::string_view key) {
  const auto record = reader.Get(Keyspace::kHeads, key);
  EXPECT_THAT(record, IsOk());
  return record.ok() && *record ? std::string((*record)->value) : "(none)";
}

TEST(ForwardingStore, ChangesNothing) {
  for (const bool owns : {false, true}) {
    std::unique_ptr<Store> owned = MemoryStore();
    Store& inner = *owned;
    ForwardingStore forwarding = owns ? ForwardingStore(std::move(owned)) : ForwardingStore(inner);
    EXPECT_TRUE(forwarding.capabilities().commit_positions);
    EXPECT_THAT(forwarding.Ready(), IsOk());
    const CommitPosition position = AwaitCommit(forwarding, PutOf("a", "1")).position;
    const std::unique_ptr<Reader> snapshot = forwarding.Snapshot();
    AwaitCommit(forwarding, PutOf("b", "1"));
    EXPECT_EQ(forwarding.LastPosition(), position + 1);
    EXPECT_EQ(inner.LastPosition(), position + 1);
    EXPECT_EQ(forwarding.Estimate(Keyspace::kHeads, {}).records, 2);
    EXPECT_EQ(forwarding.cooperative(), nullptr);

    const ForwardingReader reader(*snapshot);
    EXPECT_EQ(ValueAt(reader, "a") + ValueAt(reader, "b"), "1(none)");
    const RecordKey keys[] = {{Keyspace::kHeads, "b"}, {Keyspace::kHeads, "a"}};
    EXPECT_TRUE(forwarding.GetMany(keys)[0]->has_value());
    EXPECT_FALSE(reader.GetMany(keys)[0]->has_value());
    EXPECT_TRUE(reader.GetMany(keys)[1]->has_value());

    std::vector<std::string> walked;
    ForwardingCursor cursor(reader.Scan(Keyspace::kHeads, {}));
    for (; cursor.Valid(); cursor.Next()) {
      walked.emplace_back(cursor.key());
      EXPECT_EQ(cursor.value(), "1");
      EXPECT_EQ(cursor.stamp(), position);
      EXPECT_EQ(cursor.position(), position);
    }
    EXPECT_THAT(walked, ElementsAre("a"));
    cursor.Seek("");
    EXPECT_TRUE(cursor.Valid());
    EXPECT_THAT(cursor.status(), IsOk());
  }
}

// Changes a commit and its answer, and says nothing of threads that join.
class Relabelled final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  void Commit(WriteBatch batch, CommitCallback done) override {
    WriteBatch relabelled;
    for (const Write& write : batch.writes()) relabelled.Put(write.keyspace, "new", write.value);
    inner().Commit(std::move(relabelled), [done = std::move(done)](CommitResult result) {
      result.applied = 77;
      done(std::move(result));
    });
  }
};

TEST(ForwardingStore, WhoCommitsCooperativelyGoesRoundNoDecorator) {
  const test_support::TemporaryDirectory directory;
  engines::rocks::RocksDbOptions options;
  options.directory = directory.Join("data");
  options.cooperative_wait_max = std::chrono::hours(1);
  auto opened = engines::rocks::RocksDbStore::Open(options);
  ASSERT_THAT(opened, IsOk());
  Relabelled store(*std::move(opened));
  CooperativeCommitter* const committer = store.cooperative();
  ASSERT_NE(committer, nullptr);
  committer->Join();
  std::optional<CommitResult> result;
  store.Commit(PutOf("old", "1"), [&](CommitResult answer) { result = std::move(answer); });
  EXPECT_FALSE(result) << "nobody else was told";
  ASSERT_TRUE(committer->WorkWaits());
  committer->CommitOneGroup();
  committer->Leave();
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->committed);
  EXPECT_EQ(result->applied, 77u);
  EXPECT_EQ(ValueAt(store, "new") + ValueAt(store, "old"), "1(none)");

  // Where a commit waits for the store inside, or is another thread's, nobody may join.
  EXPECT_EQ(test_support::SingleRecordStore(store).cooperative(), nullptr);
  EXPECT_EQ(test_support::RemoteStore(std::make_unique<ForwardingStore>(static_cast<Store&>(store)))
                .cooperative(),
            nullptr);
}

TEST(ForwardingStore, ADecoratorOfGetsSeesEachOfMany) {
  const std::unique_ptr<Store> inner = MemoryStore();
  std::vector<std::string> seen;
  test_support::StoreHooks hooks;
  hooks.before_get = [&](Keyspace /*keyspace*/, std::string_view key) {
    seen.emplace_back(key);
    // Between the two, and the second sees it.
    if (key == "a") AwaitCommit(*inner, PutOf("b", "1"));
  };
  const test_support::HookedStore hooked(*inner, hooks);
  const RecordKey keys[] = {{Keyspace::kHeads, "a"}, {Keyspace::kHeads, "b"}};
  EXPECT_TRUE(hooked.GetMany(keys)[1]->has_value());
  EXPECT_THAT(seen, ElementsAre("a", "b"));
  (void)hooked.Snapshot()->GetMany(keys);
  EXPECT_THAT(seen, ElementsAre("a", "b", "a", "b"));
}

}  // namespace
}  // namespace strata::store
