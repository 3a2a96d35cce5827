#include "tests/support/single_record_store.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "schemas/base/error.h"
#include "service/engines/nested_callbacks.h"
#include "tests/support/await_commit.h"

namespace strata::test_support {
namespace {

using store::Keyspace;
using store::Record;

absl::Status DeadStatus() {
  return Error(ErrorReason::kStoreUnavailable, "The store has crashed.");
}

struct Entry {
  std::string key;
  std::string value;
  store::Stamp stamp = 0;
};

// Walks records that were collected before.
class CollectedCursor final : public store::Cursor {
 public:
  // `entries` in the order of the walk.
  CollectedCursor(std::vector<Entry> entries, bool reverse, absl::Status status)
      : entries_(std::move(entries)), reverse_(reverse), status_(std::move(status)) {}

  bool Valid() const override { return at_ < entries_.size(); }
  std::string_view key() const override { return entries_[at_].key; }
  std::string_view value() const override { return entries_[at_].value; }
  store::Stamp stamp() const override { return entries_[at_].stamp; }
  store::CommitPosition position() const override { return 0; }
  void Next() override { ++at_; }
  void Seek(std::string_view key) override {
    const auto found = std::partition_point(
        entries_.begin(), entries_.end(),
        [&](const Entry& entry) { return reverse_ ? entry.key > key : entry.key < key; });
    at_ = static_cast<size_t>(found - entries_.begin());
  }
  absl::Status status() const override { return status_; }

 private:
  const std::vector<Entry> entries_;
  const bool reverse_;
  const absl::Status status_;
  size_t at_ = 0;
};

}  // namespace

SingleRecordStore::SingleRecordStore(store::Store& inner, SingleRecordOptions options)
    : store::SingleRecordStore(inner), options_(options), generator_(options.seed) {}

SingleRecordStore::~SingleRecordStore() = default;

void SingleRecordStore::set_hooks(SingleRecordHooks hooks) { hooks_ = std::move(hooks); }

void SingleRecordStore::CrashAfter(size_t writes) { crash_at_ = writes_ + writes; }

void SingleRecordStore::Crash() { crashed_ = true; }

absl::StatusOr<std::optional<Record>> SingleRecordStore::Get(Keyspace keyspace,
                                                             std::string_view key) const {
  if (hooks_.before_get) hooks_.before_get(keyspace, key);
  if (crashed_) return DeadStatus();
  return store::SingleRecordStore::Get(keyspace, key);
}

std::vector<absl::StatusOr<std::optional<Record>>> SingleRecordStore::GetMany(
    std::span<const store::RecordKey> keys) const {
  return Reader::GetMany(keys);
}

std::unique_ptr<store::Cursor> SingleRecordStore::Scan(Keyspace keyspace,
                                                       const store::Range& range) const {
  if (hooks_.before_scan) hooks_.before_scan(keyspace, range);
  if (crashed_) {
    return std::make_unique<CollectedCursor>(std::vector<Entry>(), range.reverse, DeadStatus());
  }
  if (options_.stale_writes > 0) return ScanStale(keyspace, range);
  return store::SingleRecordStore::Scan(keyspace, range);
}

std::unique_ptr<store::Cursor> SingleRecordStore::ScanStale(Keyspace keyspace,
                                                            const store::Range& range) const {
  std::shared_ptr<store::Reader> past;
  uint64_t coins_seed = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!past_.empty()) past = past_[generator_() % past_.size()];
    coins_seed = generator_();
  }
  if (past == nullptr) return store::SingleRecordStore::Scan(keyspace, range);

  std::mt19937_64 coins(coins_seed);
  const auto then = past->Scan(keyspace, range);
  const auto now = inner().Scan(keyspace, range);
  const auto precedes = [&](std::string_view a, std::string_view b) {
    return range.reverse ? a > b : a < b;
  };
  std::vector<Entry> entries;
  const auto add = [&entries](const store::Cursor& from) {
    entries.push_back({std::string(from.key()), std::string(from.value()), from.stamp()});
  };
  while (then->Valid() || now->Valid()) {
    const bool in_then = then->Valid() && (!now->Valid() || !precedes(now->key(), then->key()));
    const bool in_now = now->Valid() && (!then->Valid() || !precedes(then->key(), now->key()));
    const bool show_then = (coins() >> 63) != 0;
    if (show_then && in_then) add(*then);
    if (!show_then && in_now) add(*now);
    if (in_then) then->Next();
    if (in_now) now->Next();
  }
  absl::Status status = then->status();
  status.Update(now->status());
  return std::make_unique<CollectedCursor>(std::move(entries), range.reverse, std::move(status));
}

void SingleRecordStore::Commit(store::WriteBatch batch, store::CommitCallback done) {
  store::CommitResult result = Apply(std::move(batch));
  engines::CallNested(*this,
                      [result = std::move(result), done = std::move(done)] { done(result); });
}

store::CommitResult SingleRecordStore::Apply(store::WriteBatch writes) {
  store::SingleRecordBatch batch(std::move(writes));
  if (crashed_) batch.Abandon(DeadStatus());
  while (!batch.finished()) {
    if (DiesBefore(batch)) {
      batch.Abandon(Error(ErrorReason::kOutcomeUnknown, "The store crashed during the commit."));
      break;
    }
    RememberState();
    const size_t applied = batch.result().applied;
    batch.Take(AwaitCommit(inner(), batch.NextAlone()));
    if (batch.result().applied > applied) ++writes_;
  }
  return batch.result();
}

bool SingleRecordStore::DiesBefore(const store::SingleRecordBatch& batch) {
  if (writes_ >= crash_at_) Crash();
  const bool lives =
      crashed_ || !hooks_.before_write || hooks_.before_write(batch.next(), batch.result().applied);
  if (!lives) Crash();
  return crashed_;
}

void SingleRecordStore::RememberState() {
  if (options_.stale_writes == 0 || !inner().capabilities().snapshots) return;
  std::shared_ptr<store::Reader> state = inner().Snapshot();
  const std::lock_guard lock(mutex_);
  past_.push_back(std::move(state));
  if (past_.size() > options_.stale_writes) past_.pop_front();
}

}  // namespace strata::test_support
