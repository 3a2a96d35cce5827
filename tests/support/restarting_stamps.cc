#include "tests/support/restarting_stamps.h"

#include "service/engines/nested_callbacks.h"
#include "tests/support/await_commit.h"

namespace strata::test_support {
namespace {

using store::Keyspace;
using store::Record;

// No record has it.
constexpr store::Stamp kNobodys = INT64_MAX;

class RestartingCursor final : public store::ForwardingCursor {
 public:
  RestartingCursor(const RestartingStamps& store, Keyspace keyspace,
                   std::unique_ptr<store::Cursor> inner)
      : ForwardingCursor(std::move(inner)), store_(store), keyspace_(keyspace) {}

  store::Stamp stamp() const override {
    return store_.StampOf(keyspace_, key(), ForwardingCursor::stamp());
  }
  store::CommitPosition position() const override { return 0; }

 private:
  const RestartingStamps& store_;
  const Keyspace keyspace_;
};

class RestartingReader final : public store::ForwardingReader {
 public:
  template <typename Inner>
  RestartingReader(const RestartingStamps& store, Inner&& inner)
      : ForwardingReader(std::forward<Inner>(inner)), store_(store) {}

  absl::StatusOr<std::optional<Record>> Get(Keyspace keyspace,
                                            std::string_view key) const override {
    absl::StatusOr<std::optional<Record>> record = ForwardingReader::Get(keyspace, key);
    Change(keyspace, key, record);
    return record;
  }
  std::vector<absl::StatusOr<std::optional<Record>>> GetMany(
      std::span<const store::RecordKey> keys) const override {
    auto records = ForwardingReader::GetMany(keys);
    for (size_t i = 0; i < keys.size(); ++i) Change(keys[i].keyspace, keys[i].key, records[i]);
    return records;
  }
  std::unique_ptr<store::Cursor> Scan(Keyspace keyspace, const store::Range& range) const override {
    return std::make_unique<RestartingCursor>(store_, keyspace,
                                              ForwardingReader::Scan(keyspace, range));
  }

 private:
  void Change(Keyspace keyspace, std::string_view key,
              absl::StatusOr<std::optional<Record>>& record) const {
    if (!record.ok() || !*record) return;
    (*record)->stamp = store_.StampOf(keyspace, key, (*record)->stamp);
    (*record)->position = 0;
  }

  const RestartingStamps& store_;
};

}  // namespace

store::Capabilities RestartingStamps::capabilities() const {
  store::Capabilities capabilities = inner().capabilities();
  capabilities.commit_positions = false;
  return capabilities;
}

absl::StatusOr<std::optional<Record>> RestartingStamps::Get(Keyspace keyspace,
                                                            std::string_view key) const {
  return RestartingReader(*this, inner()).Get(keyspace, key);
}

std::vector<absl::StatusOr<std::optional<Record>>> RestartingStamps::GetMany(
    std::span<const store::RecordKey> keys) const {
  return RestartingReader(*this, inner()).GetMany(keys);
}

std::unique_ptr<store::Cursor> RestartingStamps::Scan(Keyspace keyspace,
                                                      const store::Range& range) const {
  return RestartingReader(*this, inner()).Scan(keyspace, range);
}

std::unique_ptr<store::Reader> RestartingStamps::Snapshot() const {
  return std::make_unique<RestartingReader>(*this, inner().Snapshot());
}

// Waits for a commit under way, which may be the one that wrote it.
store::Stamp RestartingStamps::StampOf(Keyspace keyspace, std::string_view key,
                                       store::Stamp inner) const {
  const std::lock_guard lock(mutex_);
  return StampOfLocked({keyspace, std::string(key)}, inner);
}

store::Stamp RestartingStamps::StampOfLocked(const Place& place, store::Stamp inner) const {
  // What was there before this store was is its key's first.
  return stamps_.try_emplace({place, inner}, 1).first->second;
}

void RestartingStamps::Commit(store::WriteBatch batch, store::CommitCallback done) {
  store::CommitResult result;
  {
    const std::lock_guard lock(mutex_);
    result = CommitLocked(std::move(batch));
  }
  engines::CallNested(*this,
                      [result = std::move(result), done = std::move(done)] { done(result); });
}

store::CommitResult RestartingStamps::CommitLocked(store::WriteBatch batch) {
  store::WriteBatch inner_batch;
  std::vector<std::pair<Place, store::Stamp>> puts;  // and what stamp each gives its key
  for (size_t i = 0; i < batch.writes().size(); ++i) {
    store::Write write = batch.writes()[i];
    const Place place{write.keyspace, write.key};
    const auto stored = inner().Get(write.keyspace, write.key);
    const store::Stamp inner_stamp = stored.ok() && *stored ? (*stored)->stamp : 0;
    const store::Stamp stamp = inner_stamp == 0 ? 0 : StampOfLocked(place, inner_stamp);
    if (write.guard == store::Guard::kStamp) {
      write.stamp = write.stamp == stamp ? inner_stamp : kNobodys;
    }
    if (write.kind == store::WriteKind::kPut) {
      // What is inserted over a record that has expired comes after a deletion.
      const bool inserted =
          write.guard == store::Guard::kAbsent || write.guard == store::Guard::kEnsure;
      puts.emplace_back(place, inserted ? 1 : stamp + 1);
    }
    inner_batch.Put(write.keyspace, "", "") = std::move(write);
    if (i == batch.commit_point()) inner_batch.MarkCommitPoint();
  }
  inner_batch.set_deadline(batch.deadline());
  if (batch.background()) inner_batch.MarkAsBackground();
  if (batch.removal()) inner_batch.MarkAsRemoval();
  store::CommitResult result = AwaitCommit(inner(), std::move(inner_batch));
  if (result.committed) {
    for (const auto& [place, stamp] : puts)
      stamps_.emplace(std::pair(place, result.position), stamp);
  }
  result.position = 0;
  return result;
}

}  // namespace strata::test_support
