// Commits by threads that help the RocksDB engine between their own work, and reads beside them.
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

class HelpingThreadsTest : public testing::Test {
 protected:
  HelpingThreadsTest() {
    options_.directory = directory_.Join("data");
    // The disk of a test may be slow; whether it is must not decide who commits.
    options_.helped_wait_max = std::chrono::hours(1);
  }

  void Open() {
    auto opened = RocksDbStore::Open(options_);
    ASSERT_THAT(opened, IsOk());
    store_ = *std::move(opened);
  }

  static WriteBatch PutOf(const std::string& key, const std::string& value) {
    WriteBatch batch;
    batch.Put(Keyspace::kHeads, key, value);
    return batch;
  }

  test_support::TemporaryDirectory directory_;
  RocksDbOptions options_;
  std::unique_ptr<RocksDbStore> store_;
};

TEST_F(HelpingThreadsTest, AHelpingThreadCommitsItsBatchesItself) {
  Open();
  store_->BeginToHelp();
  std::vector<CommitResult> results;
  const std::thread::id here = std::this_thread::get_id();
  for (int i = 0; i < 3; ++i) {
    store_->Commit(PutOf("key" + std::to_string(i), "value"), [&](const CommitResult& result) {
      EXPECT_EQ(std::this_thread::get_id(), here);
      results.push_back(result);
    });
  }
  EXPECT_TRUE(results.empty()) << "nobody else was told";
  ASSERT_TRUE(store_->CommitsWait());
  store_->CommitWaiting();
  ASSERT_EQ(results.size(), 3u);
  EXPECT_TRUE(results[0].committed);
  EXPECT_EQ(results[2].position, results[0].position + 2);
  EXPECT_FALSE(store_->CommitsWait());
  store_->CommitWaiting();  // nothing to do
  store_->EndToHelp();
}

TEST_F(HelpingThreadsTest, WhatACallbackCommitsWaitsForTheNextGroup) {
  Open();
  store_->BeginToHelp();
  int done = 0;
  store_->Commit(PutOf("a", "1"), [&](const CommitResult&) {
    ++done;
    store_->Commit(PutOf("a", "2"), [&](const CommitResult&) { ++done; });
  });
  store_->CommitWaiting();
  EXPECT_EQ(done, 1);
  ASSERT_TRUE(store_->CommitsWait());
  store_->CommitWaiting();
  EXPECT_EQ(done, 2);
  store_->EndToHelp();
}

TEST_F(HelpingThreadsTest, WhatAThreadLeavesIsCommittedWhenItEndsToHelp) {
  Open();
  std::promise<CommitResult> promise;
  std::thread([&] {
    store_->BeginToHelp();
    store_->Commit(PutOf("a", "1"), [&](const CommitResult& result) { promise.set_value(result); });
    store_->EndToHelp();
  }).join();
  EXPECT_TRUE(promise.get_future().get().committed);
}

TEST_F(HelpingThreadsTest, OthersNeedNoHelp) {
  Open();
  store_->BeginToHelp();
  std::thread([&] { EXPECT_TRUE(AwaitCommit(*store_, PutOf("a", "1")).committed); }).join();
  store_->EndToHelp();
}

TEST_F(HelpingThreadsTest, OnASlowDiskTheStoresOwnThreadCommits) {
  options_.helped_wait_max = std::chrono::microseconds(-1);
  Open();
  store_->BeginToHelp();
  std::promise<std::thread::id> committer;
  store_->Commit(PutOf("a", "1"),
                 [&](const CommitResult&) { committer.set_value(std::this_thread::get_id()); });
  EXPECT_FALSE(store_->CommitsWait());
  EXPECT_NE(committer.get_future().get(), std::this_thread::get_id());
  store_->EndToHelp();
}

// Writers of all kinds count records of heads up, readers of all kinds watch: no read may ever see
// less than one that ended before it began, through the cache, a snapshot or a cursor.
TEST_F(HelpingThreadsTest, ReadsBesideCommitsNeverGoBack) {
  constexpr int kKeys = 4;
  constexpr int kCommits = 400;
  options_.block_cache_bytes = size_t{1} << 20;
  Open();
  const auto key_of = [](int key) { return "key" + std::to_string(key); };
  for (int key = 0; key < kKeys; ++key) {
    ASSERT_TRUE(AwaitCommit(*store_, PutOf(key_of(key), "0")).committed);
  }
  std::atomic<int> writers = 2;
  const auto write = [&](bool helping) {
    if (helping) store_->BeginToHelp();
    for (int i = 0; i < kCommits; ++i) {
      const std::string key = key_of(i % kKeys);
      const auto before = store_->Get(Keyspace::kHeads, key);
      ASSERT_THAT(before, IsOk());
      WriteBatch batch;
      batch.Replace(Keyspace::kHeads, key, std::to_string(std::stoi((*before)->value) + 1),
                    (*before)->stamp);
      if (helping) {
        std::atomic<bool> done = false;
        store_->Commit(std::move(batch), [&](const CommitResult&) { done = true; });
        // The store's own thread may have taken it along.
        while (!done) {
          store_->CommitsWait() ? store_->CommitWaiting() : std::this_thread::yield();
        }
      } else {
        AwaitCommit(*store_, std::move(batch));
      }
    }
    if (helping) store_->EndToHelp();
    --writers;
  };
  std::array<std::atomic<int>, kKeys> seen = {};
  const auto read = [&](int how) {
    for (int i = 0; writers > 0; ++i) {
      const int key = i % kKeys;
      const int at_least = seen[static_cast<size_t>(key)];
      int value = 0;
      if (how == 0) {
        value = std::stoi((*store_->Get(Keyspace::kHeads, key_of(key)))->value);
      } else {
        const std::unique_ptr<store::Reader> snapshot = store_->Snapshot();
        value = std::stoi((*snapshot->Get(Keyspace::kHeads, key_of(key)))->value);
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
