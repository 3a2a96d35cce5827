// A store that lets a test step in between any two calls of the code above the port.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "schemas/store/forwarding_store.h"

namespace strata::test_support {

// Each is called, if set, with no lock held, on the thread of the call it comes before, and may use
// any store, this one too (then it must guard itself against its own recursion).
struct StoreHooks {
  std::function<void(store::Keyspace, std::string_view key)> before_get{};
  std::function<void(store::Keyspace, const store::Range&)> before_scan{};
  std::function<void(const store::WriteBatch&)> before_commit{};
  // Answers instead of the store if it returns something: a commit that fails and did nothing.
  std::function<std::optional<store::CommitResult>(const store::WriteBatch&)> instead_of_commit{};
  // May change the answer on its way back: a commit that took effect and is reported as
  // OUTCOME_UNKNOWN. On the thread that completes the commit.
  std::function<void(store::CommitResult&)> after_commit{};
};

// Hands everything to `inner`, which must outlive it, with its capabilities; readers of Snapshot()
// call the hooks too. To force a race: write to `inner` in before_commit.
class HookedStore final : public store::ForwardingStore {
 public:
  explicit HookedStore(store::Store& inner, StoreHooks hooks = {});
  ~HookedStore() override;

  // REQUIRES: no call is under way.
  void set_hooks(StoreHooks hooks);

  absl::StatusOr<std::optional<store::Record>> Get(store::Keyspace keyspace,
                                                   std::string_view key) const override;
  std::vector<absl::StatusOr<std::optional<store::Record>>> GetMany(
      std::span<const store::RecordKey> keys) const override;
  std::unique_ptr<store::Cursor> Scan(store::Keyspace keyspace,
                                      const store::Range& range) const override;
  std::unique_ptr<store::Reader> Snapshot() const override;
  void Commit(store::WriteBatch batch, store::CommitCallback done) override;

 private:
  StoreHooks hooks_;
};

}  // namespace strata::test_support
