// Commits in the RocksDB engine by threads that do so between their own work, and reads beside
// them.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "schemas/store/cooperative.h"
#include "service/engines/rocksdb/rocksdb_store.h"
#include "tests/support/await_commit.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_directory.h"

namespace strata::engines::rocks {
namespace {

using store::CommitResult;
using store::Keyspace;
using store::WriteBatch;
using test_support::AwaitCommit;
using test_support::IsOk;

class CooperativeCommitsTest : public testing::Test {
 protected:
  CooperativeCommitsTest() {
    options_.directory = directory_.Join("data");
    // The disk of a test may be slow; whether it is must not decide who commits.
    options_.cooperative_wait_max = std::chrono::hours(1);
  }

  void Open() {
    auto opened = RocksDbStore::Open(options_);
    ASSERT_THAT(opened, IsOk());
    store_ = *std::move(opened);
  }

  store::CooperativeCommitter& committer() { return *store_->cooperative(); }

  static WriteBatch PutOf(const std::string& key, const std::string& value) {
    WriteBatch batch;
    batch.Put(Keyspace::kHeads, key, value);
    return batch;
  }

  test_support::TemporaryDirectory directory_;
  RocksDbOptions options_;
  std::unique_ptr<RocksDbStore> store_;
};

TEST_F(CooperativeCommitsTest, AThreadThatHasJoinedCommitsItsBatchesItself) {
  Open();
  committer().Join();
  std::vector<CommitResult> results;
  const std::thread::id here = std::this_thread::get_id();
  for (int i = 0; i < 3; ++i) {
    store_->Commit(PutOf("key" + std::to_string(i), "value"), [&](const CommitResult& result) {
      EXPECT_EQ(std::this_thread::get_id(), here);
      results.push_back(result);
    });
  }
  EXPECT_TRUE(results.empty()) << "nobody else was told";
  ASSERT_TRUE(committer().WorkWaits());
  committer().CommitOneGroup();
  ASSERT_EQ(results.size(), 3u);
  EXPECT_TRUE(results[0].committed);
  EXPECT_EQ(results[2].position, results[0].position + 2);
  EXPECT_FALSE(committer().WorkWaits());
  committer().CommitOneGroup();  // nothing to do
  committer().Leave();
}

TEST_F(CooperativeCommitsTest, WhatACallbackCommitsWaitsForTheNextGroup) {
  Open();
  committer().Join();
  int done = 0;
  store_->Commit(PutOf("a", "1"), [&](const CommitResult&) {
    ++done;
    store_->Commit(PutOf("a", "2"), [&](const CommitResult&) { ++done; });
  });
  committer().CommitOneGroup();
  EXPECT_EQ(done, 1);
  ASSERT_TRUE(committer().WorkWaits());
  committer().CommitOneGroup();
  EXPECT_EQ(done, 2);
  committer().Leave();
}

TEST_F(CooperativeCommitsTest, WhatAThreadLeavesBehindIsCommittedByTheStore) {
  Open();
  std::promise<CommitResult> promise;
  std::thread([&] {
    committer().Join();
    store_->Commit(PutOf("a", "1"), [&](const CommitResult& result) { promise.set_value(result); });
    committer().Leave();
  }).join();
  EXPECT_TRUE(promise.get_future().get().committed);
}

TEST_F(CooperativeCommitsTest, OthersNeedNotWaitForIt) {
  Open();
  committer().Join();
  std::thread([&] { EXPECT_TRUE(AwaitCommit(*store_, PutOf("a", "1")).committed); }).join();
  committer().Leave();
}

TEST_F(CooperativeCommitsTest, OnASlowDiskTheStoresOwnThreadCommits) {
  options_.cooperative_wait_max = std::chrono::microseconds(-1);
  Open();
  committer().Join();
  std::promise<std::thread::id> committed_by;
  store_->Commit(PutOf("a", "1"),
                 [&](const CommitResult&) { committed_by.set_value(std::this_thread::get_id()); });
  EXPECT_FALSE(committer().WorkWaits());
  EXPECT_NE(committed_by.get_future().get(), std::this_thread::get_id());
  committer().Leave();
}

// Writers of all kinds count records of heads up, readers of all kinds watch: no read may ever see
// less than one that ended before it began, through the cache, a snapshot or a cursor.
TEST_F(CooperativeCommitsTest, ReadsBesideCommitsNeverGoBack) {
  constexpr int kKeys = 4;
  constexpr int kCommits = 400;
  options_.block_cache_bytes = size_t{1} << 20;
  Open();
  const auto key_of = [](int key) { return "key" + std::to_string(key); };
  for (int key = 0; key < kKeys; ++key) {
    ASSERT_TRUE(AwaitCommit(*store_, PutOf(key_of(key), "0")).committed);
  }
  std::atomic<int> writers = 2;
  const auto write = [&](bool joined) {
    if (joined) committer().Join();
    for (int i = 0; i < kCommits; ++i) {
      const std::string key = key_of(i % kKeys);
      const auto before = store_->Get(Keyspace::kHeads, key);
      ASSERT_THAT(before, IsOk());
      WriteBatch batch;
      batch.Replace(Keyspace::kHeads, key,
                    std::to_string(std::stoi(std::string((*before)->value)) + 1), (*before)->stamp);
      if (joined) {
        std::atomic<bool> done = false;
        store_->Commit(std::move(batch), [&](const CommitResult&) { done = true; });
        // The store's own thread may have taken it along.
        while (!done) {
          committer().WorkWaits() ? committer().CommitOneGroup() : std::this_thread::yield();
        }
      } else {
        AwaitCommit(*store_, std::move(batch));
      }
    }
    if (joined) committer().Leave();
    --writers;
  };
  std::array<std::atomic<int>, kKeys> seen = {};
  const auto read = [&](int how) {
    for (int i = 0; writers > 0; ++i) {
      const int key = i % kKeys;
      const int at_least = seen[static_cast<size_t>(key)];
      int value = 0;
      if (how == 0) {
        value = std::stoi(std::string((*store_->Get(Keyspace::kHeads, key_of(key)))->value));
      } else {
        const std::unique_ptr<store::Reader> snapshot = store_->Snapshot();
        value = std::stoi(std::string((*snapshot->Get(Keyspace::kHeads, key_of(key)))->value));
        const auto cursor =
            snapshot->Scan(Keyspace::kHeads, {.begin = key_of(key), .end = key_of(key) + "~"});
        ASSERT_TRUE(cursor->Valid());
        ASSERT_EQ(std::stoi(std::string(cursor->value())), value) << "one moment";
      }
      ASSERT_GE(value, at_least);
      int known = at_least;
      while (known < value && !seen[static_cast<size_t>(key)].compare_exchange_weak(known, value)) {
      }
    }
  };
  std::vector<std::thread> threads;
  threads.emplace_back(write, true);
  threads.emplace_back(write, false);
  for (const int how : {0, 0, 1}) threads.emplace_back(read, how);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace strata::engines::rocks
