// A collection that another process deletes, with all that it holds, while a test reads it.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "schemas/document/bson_builder.h"
#include "schemas/store/key_codec.h"
#include "schemas/versioning/collections.h"
#include "tests/documents/world.h"
#include "tests/support/await_commit.h"
#include "tests/support/executors.h"

namespace strata::versioning::testing {

// Not thread-safe.
class Deleter {
 public:
  Deleter(store::Store& store, test_support::ManualClock& clock)
      : store_(store),
        executor_(clock),
        collections_(std::make_shared<Collections>(store, clock, executor_)) {}
  // Commits under way may still call back; they come before this one.
  ~Deleter() {
    store::WriteBatch last;
    last.Put(store::Keyspace::kMeta, "test/swept", document::BsonBuilder().Take());
    test_support::AwaitCommit(store_, std::move(last));
  }

  bool IsThere(const std::string& name) { return collections_->Get(name).ok(); }
  // Answers when nothing is left of it.
  void DeleteAndSweep(const std::string& name) {
    const auto found = collections_->Get(name);
    ASSERT_TRUE(found.ok()) << found.status();
    const store::Range records = store::IncarnationRange((*found)->incarnation);
    const auto is_swept = [&] {
      return !store_.Scan(store::Keyspace::kHeads, records)->Valid() &&
             !store_.Scan(store::Keyspace::kVersions, records)->Valid() &&
             !store_.Scan(store::Keyspace::kRequests, records)->Valid();
    };
    const auto deleted = std::make_shared<std::atomic<bool>>(false);
    collections_->Delete({.name = name, .force = true}, [deleted](const auto& deletion) {
      EXPECT_TRUE(deletion.ok()) << deletion.status();
      *deleted = true;
    });
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!*deleted || !is_swept()) {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up);
      if (executor_.RunDue() == 0) std::this_thread::yield();
    }
  }

 private:
  store::Store& store_;
  test_support::ManualExecutor executor_;
  const std::shared_ptr<Collections> collections_;
};

}  // namespace strata::versioning::testing
