#include "tests/support/hooked_store.h"

#include <utility>

namespace strata::test_support {
namespace {

// The store's own, if borrowed, or one of its snapshots.
class HookedReader final : public store::ForwardingReader {
 public:
  template <typename Inner>
  HookedReader(Inner&& inner, const StoreHooks& hooks)
      : ForwardingReader(std::forward<Inner>(inner)), hooks_(hooks) {}

  absl::StatusOr<std::optional<store::Record>> Get(store::Keyspace keyspace,
                                                   std::string_view key) const override {
    if (hooks_.before_get) hooks_.before_get(keyspace, key);
    return ForwardingReader::Get(keyspace, key);
  }
  // A hook may step in between any two.
  std::vector<absl::StatusOr<std::optional<store::Record>>> GetMany(
      std::span<const store::RecordKey> keys) const override {
    return Reader::GetMany(keys);
  }
  std::unique_ptr<store::Cursor> Scan(store::Keyspace keyspace,
                                      const store::Range& range) const override {
    if (hooks_.before_scan) hooks_.before_scan(keyspace, range);
    return ForwardingReader::Scan(keyspace, range);
  }

 private:
  const StoreHooks& hooks_;
};

}  // namespace

HookedStore::HookedStore(store::Store& inner, StoreHooks hooks)
    : ForwardingStore(inner), hooks_(std::move(hooks)) {}

HookedStore::~HookedStore() = default;

void HookedStore::set_hooks(StoreHooks hooks) { hooks_ = std::move(hooks); }

absl::StatusOr<std::optional<store::Record>> HookedStore::Get(store::Keyspace keyspace,
                                                              std::string_view key) const {
  return HookedReader(inner(), hooks_).Get(keyspace, key);
}

std::vector<absl::StatusOr<std::optional<store::Record>>> HookedStore::GetMany(
    std::span<const store::RecordKey> keys) const {
  return HookedReader(inner(), hooks_).GetMany(keys);
}

std::unique_ptr<store::Cursor> HookedStore::Scan(store::Keyspace keyspace,
                                                 const store::Range& range) const {
  return HookedReader(inner(), hooks_).Scan(keyspace, range);
}

std::unique_ptr<store::Reader> HookedStore::Snapshot() const {
  return std::make_unique<HookedReader>(inner().Snapshot(), hooks_);
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
    inner().Commit(std::move(batch), std::move(done));
    return;
  }
  inner().Commit(std::move(batch), [this, done = std::move(done)](store::CommitResult result) {
    hooks_.after_commit(result);
    done(std::move(result));
  });
}

}  // namespace strata::test_support
