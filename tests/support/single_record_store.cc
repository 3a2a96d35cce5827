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

// Hides the position and hands on the rest.
class PlainCursor final : public store::ForwardingCursor {
 public:
  using ForwardingCursor::ForwardingCursor;
  store::CommitPosition position() const override { return 0; }
};

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

store::WriteBatch BatchOf(const store::Write& write) {
  store::WriteBatch batch;
  batch.Put(write.keyspace, "", "") = write;
  return batch;
}

}  // namespace

SingleRecordStore::SingleRecordStore(store::Store& inner, SingleRecordOptions options)
    : ForwardingStore(inner), options_(options), generator_(options.seed) {}

SingleRecordStore::~SingleRecordStore() = default;

void SingleRecordStore::set_hooks(SingleRecordHooks hooks) { hooks_ = std::move(hooks); }

void SingleRecordStore::CrashAfter(size_t writes) { crash_at_ = writes_ + writes; }

void SingleRecordStore::Crash() { crashed_ = true; }

store::Capabilities SingleRecordStore::capabilities() const { return {}; }

absl::StatusOr<std::optional<Record>> SingleRecordStore::Get(Keyspace keyspace,
                                                             std::string_view key) const {
  if (hooks_.before_get) hooks_.before_get(keyspace, key);
  if (crashed_) return DeadStatus();
  absl::StatusOr<std::optional<Record>> result = inner().Get(keyspace, key);
  if (result.ok() && *result) (*result)->position = 0;
  return result;
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
  return std::make_unique<PlainCursor>(inner().Scan(keyspace, range));
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
  if (past == nullptr) return std::make_unique<PlainCursor>(inner().Scan(keyspace, range));

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

std::unique_ptr<store::Reader> SingleRecordStore::Snapshot() const {
  return std::make_unique<store::ForwardingReader>(*this);
}

void SingleRecordStore::Commit(store::WriteBatch batch, store::CommitCallback done) {
  store::CommitResult result = Apply(batch);
  engines::CallNested(*this,
                      [result = std::move(result), done = std::move(done)] { done(result); });
}

store::CommitResult SingleRecordStore::Apply(const store::WriteBatch& batch) {
  store::CommitResult result;
  if (crashed_) {
    result.status = DeadStatus();
    return result;
  }
  const auto is_check = [](const store::Write& write) {
    return write.kind == store::WriteKind::kCheck;
  };
  if (std::any_of(batch.writes().begin(), batch.writes().end(), is_check)) {
    result.status =
        Error(ErrorReason::kUnsupportedByEngine, "This engine does not check records in a batch.");
    return result;
  }
  for (size_t index = 0; index < batch.writes().size(); ++index) {
    const store::Write& write = batch.writes()[index];
    if (DiesBefore(write, index)) {
      result.status = Error(ErrorReason::kOutcomeUnknown, "The store crashed during the commit.");
      return result;
    }
    RememberState();
    store::WriteBatch alone = BatchOf(write);
    if (index == 0)
      alone.set_deadline(batch.deadline());  // the batch is begun with its first write
    const store::CommitResult single = AwaitCommit(inner(), std::move(alone));
    if (!single.status.ok()) {
      // The version stands or falls with the commit point; after it there is only clean-up. Before
      // it, "nothing was written" would be a lie from the second write on.
      if (result.committed) return result;
      result.status = index == 0 ? single.status
                                 : Error(ErrorReason::kOutcomeUnknown,
                                         "The store failed in the middle of the commit.");
      return result;
    }
    if (!single.committed) return result;
    ++writes_;
    ++result.applied;
    result.committed = index >= batch.commit_point();
  }
  return result;
}

bool SingleRecordStore::DiesBefore(const store::Write& write, size_t index) {
  if (writes_ >= crash_at_) Crash();
  if (!crashed_ && hooks_.before_write && !hooks_.before_write(write, index)) Crash();
  return crashed_;
}

void SingleRecordStore::RememberState() {
  if (options_.stale_writes == 0 || !inner().capabilities().snapshots) return;
  std::shared_ptr<store::Reader> state = inner().Snapshot();
  const std::lock_guard lock(mutex_);
  past_.push_back(std::move(state));
  if (past_.size() > options_.stale_writes) past_.pop_front();
}

store::CommitPosition SingleRecordStore::LastPosition() const { return 0; }

}  // namespace strata::test_support
