#include "tests/support/hooked_store.h"

#include <utility>

namespace strata::test_support {
namespace {

class HookedReader final : public store::Reader {
 public:
  HookedReader(std::unique_ptr<store::Reader> inner, const StoreHooks& hooks)
      : inner_(std::move(inner)), hooks_(hooks) {}

  absl::StatusOr<std::optional<store::Record>> Get(store::Keyspace keyspace,
                                                   std::string_view key) const override {
    if (hooks_.before_get) hooks_.before_get(keyspace, key);
    return inner_->Get(keyspace, key);
  }
  std::unique_ptr<store::Cursor> Scan(store::Keyspace keyspace,
                                      const store::Range& range) const override {
    if (hooks_.before_scan) hooks_.before_scan(keyspace, range);
    return inner_->Scan(keyspace, range);
  }

 private:
  const std::unique_ptr<store::Reader> inner_;
  const StoreHooks& hooks_;
};

}  // namespace

HookedStore::HookedStore(store::Store& inner, StoreHooks hooks)
    : inner_(inner), hooks_(std::move(hooks)) {}

HookedStore::~HookedStore() = default;

void HookedStore::set_hooks(StoreHooks hooks) { hooks_ = std::move(hooks); }

store::Capabilities HookedStore::capabilities() const { return inner_.capabilities(); }

absl::StatusOr<std::optional<store::Record>> HookedStore::Get(store::Keyspace keyspace,
                                                              std::string_view key) const {
  if (hooks_.before_get) hooks_.before_get(keyspace, key);
  return inner_.Get(keyspace, key);
}

std::unique_ptr<store::Cursor> HookedStore::Scan(store::Keyspace keyspace,
                                                 const store::Range& range) const {
  if (hooks_.before_scan) hooks_.before_scan(keyspace, range);
  return inner_.Scan(keyspace, range);
}

std::unique_ptr<store::Reader> HookedStore::Snapshot() const {
  return std::make_unique<HookedReader>(inner_.Snapshot(), hooks_);
}

void HookedStore::Commit(store::WriteBatch batch, store::CommitCallback done) {
  if (hooks_.before_commit) hooks_.before_commit(batch);
  if (hooks_.instead_of_commit) {
    if (std::optional<store::CommitResult> answer = hooks_.instead_of_commit(batch)) {
      done(*std::move(answer));
      return;
    }
  }
  if (!hooks_.after_commit) {
    inner_.Commit(std::move(batch), std::move(done));
    return;
  }
  inner_.Commit(std::move(batch), [this, done = std::move(done)](store::CommitResult result) {
    hooks_.after_commit(result);
    done(std::move(result));
  });
}

store::RangeEstimate HookedStore::Estimate(store::Keyspace keyspace,
                                           const store::Range& range) const {
  return inner_.Estimate(keyspace, range);
}

store::CommitPosition HookedStore::LastPosition() const { return inner_.LastPosition(); }

}  // namespace strata::test_support
