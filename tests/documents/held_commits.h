// A store whose commits a test ends, each in the way that it wants.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "schemas/base/error.h"
#include "schemas/store/forwarding_store.h"

namespace strata::versioning::testing {

// Hands everything to `inner`, but keeps commits while `hold` is set. Not thread-safe.
class HeldCommits final : public store::ForwardingStore {
 public:
  using Held = std::pair<store::WriteBatch, store::CommitCallback>;

  explicit HeldCommits(store::Store& inner, bool reads_block = false)
      : ForwardingStore(inner), reads_block_(reads_block) {}

  store::Capabilities capabilities() const override {
    store::Capabilities capabilities = ForwardingStore::capabilities();
    capabilities.blocking_reads = capabilities.blocking_reads || reads_block_;
    return capabilities;
  }

  void Commit(store::WriteBatch batch, store::CommitCallback done) override {
    ExpectEachKeyOnce(batch);
    if (!hold) return inner().Commit(std::move(batch), std::move(done));
    held.emplace_back(std::move(batch), std::move(done));
  }

  // What these end is the oldest commit that is held.
  Held Take() {
    Held first = std::move(held.front());
    held.erase(held.begin());
    return first;
  }
  void LetGo() {
    auto [batch, done] = Take();
    inner().Commit(std::move(batch), std::move(done));
  }
  // It is not stored, and this is the answer.
  void End(store::CommitResult result) { Take().second(std::move(result)); }
  void Lose() { End({}); }
  void Fail(absl::Status status) {
    store::CommitResult result;
    result.status = std::move(status);
    End(std::move(result));
  }

  bool hold = false;
  std::vector<Held> held;

 private:
  // As the port requires.
  static void ExpectEachKeyOnce(const store::WriteBatch& batch) {
    std::set<std::pair<store::Keyspace, std::string_view>> written;
    for (const store::Write& write : batch.writes()) {
      if (write.kind == store::WriteKind::kCheck) continue;
      EXPECT_TRUE(written.emplace(write.keyspace, write.key).second)
          << "two writes on one key of " << store::KeyspaceName(write.keyspace);
    }
  }

  const bool reads_block_;
};

inline absl::Status Overloaded() {
  return Error(ErrorReason::kOverloaded, "Too many writes are waiting.");
}
inline absl::Status Unknown() { return Error(ErrorReason::kOutcomeUnknown, "Nobody knows."); }

}  // namespace strata::versioning::testing
