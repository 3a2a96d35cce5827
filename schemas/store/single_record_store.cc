#include "schemas/store/single_record_store.h"

#include <algorithm>
#include <utility>

#include "schemas/base/error.h"

namespace strata::store {
namespace {

// Hides the position and hands on the rest.
class PlainCursor final : public ForwardingCursor {
 public:
  using ForwardingCursor::ForwardingCursor;
  CommitPosition position() const override { return 0; }
};

}  // namespace

SingleRecordBatch::SingleRecordBatch(WriteBatch batch) : batch_(std::move(batch)) {
  const auto is_check = [](const Write& write) { return write.kind == WriteKind::kCheck; };
  if (std::any_of(writes().begin(), writes().end(), is_check)) {
    Abandon(
        Error(ErrorReason::kUnsupportedByEngine, "This engine does not check records in a batch."));
  }
}

WriteBatch SingleRecordBatch::NextAlone() const {
  WriteBatch alone;
  alone.Put(next().keyspace, "", "") = next();
  if (batch_.removal()) alone.MarkAsRemoval();
  // The batch is begun with its first write.
  if (result_.applied == 0) alone.set_deadline(batch_.deadline());
  return alone;
}

void SingleRecordBatch::Take(const CommitResult& alone) {
  if (!alone.status.ok()) {
    // The version stands or falls with the commit point; after it there is only clean-up. Before
    // it, "nothing was written" would be a lie from the second write on.
    finished_ = true;
    if (result_.committed) return;
    result_.status = result_.applied == 0 ? alone.status
                                          : Error(ErrorReason::kOutcomeUnknown,
                                                  "The store failed in the middle of the commit.");
    return;
  }
  if (!alone.committed) {
    finished_ = true;
    if (!result_.committed) result_.refused = result_.applied;
    return;
  }
  result_.committed = result_.applied >= batch_.commit_point();
  ++result_.applied;
  finished_ = result_.applied == writes().size();
}

void SingleRecordBatch::Abandon(absl::Status status) {
  result_.status = std::move(status);
  finished_ = true;
}

// A batch under way.
struct SingleRecordStore::Running {
  Running(WriteBatch of, CommitCallback then) : batch(std::move(of)), done(std::move(then)) {}

  SingleRecordBatch batch;
  CommitCallback done;
  // Guarded by the store's mutex: how many it waits for, and who waits for it.
  size_t waits_for = 0;
  std::vector<RunningPtr> waiting;
};

SingleRecordStore::SingleRecordStore(Store& inner) : ForwardingStore(inner) {}

SingleRecordStore::SingleRecordStore(std::unique_ptr<Store> inner)
    : ForwardingStore(std::move(inner)) {}

SingleRecordStore::~SingleRecordStore() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return running_ == 0; });
}

Capabilities SingleRecordStore::capabilities() const {
  return {.blocking_reads = inner().capabilities().blocking_reads};
}

absl::StatusOr<std::optional<Record>> SingleRecordStore::Get(Keyspace keyspace,
                                                             std::string_view key) const {
  absl::StatusOr<std::optional<Record>> result = inner().Get(keyspace, key);
  if (result.ok() && *result) (*result)->position = 0;
  return result;
}

std::vector<absl::StatusOr<std::optional<Record>>> SingleRecordStore::GetMany(
    std::span<const RecordKey> keys) const {
  auto records = inner().GetMany(keys);
  for (absl::StatusOr<std::optional<Record>>& record : records) {
    if (record.ok() && *record) (*record)->position = 0;
  }
  return records;
}

std::unique_ptr<Cursor> SingleRecordStore::Scan(Keyspace keyspace, const Range& range) const {
  return std::make_unique<PlainCursor>(inner().Scan(keyspace, range));
}

std::unique_ptr<Reader> SingleRecordStore::Snapshot() const {
  return std::make_unique<ForwardingReader>(*this);
}

CommitPosition SingleRecordStore::LastPosition() const { return 0; }

void SingleRecordStore::Commit(WriteBatch batch, CommitCallback done) {
  const auto running = std::make_shared<Running>(std::move(batch), std::move(done));
  if (running->batch.finished()) return running->done(running->batch.result());
  if (Begin(running)) Run(running);
}

// Whether it goes ahead; else it waits for batches before it.
bool SingleRecordStore::Begin(const RunningPtr& running) {
  const std::lock_guard lock(mutex_);
  ++running_;
  for (const Write& write : running->batch.writes()) {
    const auto [last, is_first] =
        last_writers_.try_emplace(RecordKey{write.keyspace, write.key}, running);
    if (is_first || last->second == running) continue;
    last->second->waiting.push_back(running);
    ++running->waits_for;
    // Anew, as the key is a view of the batch's own.
    last_writers_.erase(last);
    last_writers_.emplace(RecordKey{write.keyspace, write.key}, running);
  }
  return running->waits_for == 0;
}

// A store that answers inside Commit sees to it that callbacks do not nest for ever.
void SingleRecordStore::Run(const RunningPtr& running) {
  inner().Commit(running->batch.NextAlone(), [this, running](const CommitResult& alone) {
    running->batch.Take(alone);
    if (running->batch.finished()) {
      End(running);
    } else {
      Run(running);
    }
  });
}

void SingleRecordStore::End(const RunningPtr& running) {
  std::vector<RunningPtr> ready;
  {
    const std::lock_guard lock(mutex_);
    for (const Write& write : running->batch.writes()) {
      const auto last = last_writers_.find(RecordKey{write.keyspace, write.key});
      if (last != last_writers_.end() && last->second == running) last_writers_.erase(last);
    }
    for (RunningPtr& waiting : running->waiting) {
      if (--waiting->waits_for == 0) ready.push_back(std::move(waiting));
    }
  }
  for (const RunningPtr& next : ready) Run(next);
  std::exchange(running->done, nullptr)(running->batch.result());
  // Notified under the lock: once it is released, the destructor may go on.
  const std::lock_guard lock(mutex_);
  if (--running_ == 0) idle_.notify_all();
}

}  // namespace strata::store
