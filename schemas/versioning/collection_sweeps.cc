#include "schemas/versioning/collection_sweeps.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "schemas/store/key_codec.h"

namespace strata::versioning {
namespace {

using std::chrono::microseconds;
using store::Keyspace;

constexpr auto kSwept = store::KeyspacesWith<&store::KeyspaceTraits::of_documents>();
// Deleted by one commit: enough to make its fsync cheap, few enough not to hold up others' commits
// or a stop of the process.
constexpr size_t kChunk = 500;
constexpr microseconds kDelayFirst = std::chrono::milliseconds(100);
constexpr microseconds kDelayMax = std::chrono::minutes(1);

}  // namespace

struct CollectionSweeps::Sweep {
  std::string collection;
  int64_t incarnation = 0;
  // The place: everything before `begin` in kSwept[keyspace], and all keyspaces before that, is
  // gone. Empty: the range's first key. Deleted keys are slow to walk over for as long as the
  // engine keeps their traces, so no chunk begins before it.
  size_t keyspace = 0;
  std::string begin = {};
  bool found = false;  // this pass deleted something
  int failures = 0;    // in a row
};

CollectionSweeps::CollectionSweeps(store::Store& store, const Clock& clock, Executor& executor)
    : store_(store), clock_(clock), executor_(executor), capabilities_(store.capabilities()) {}

void CollectionSweeps::After(microseconds delay, Step step, Sweep sweep) {
  executor_.Schedule(delay, [self = shared_from_this(), step, sweep = std::move(sweep)]() mutable {
    (*self.*step)(std::move(sweep));
  });
}

void CollectionSweeps::Next(Step step, Sweep sweep) {
  sweep.failures = 0;
  After(microseconds(0), step, std::move(sweep));
}

void CollectionSweeps::Later(Step step, Sweep sweep) {
  microseconds delay = kDelayFirst;
  for (int i = 0; i < sweep.failures && delay < kDelayMax; ++i) delay *= 2;
  ++sweep.failures;
  After(std::min(delay, kDelayMax), step, std::move(sweep));
}

void CollectionSweeps::Begin(std::string collection, int64_t incarnation) {
  Next(&CollectionSweeps::SweepChunk, {std::move(collection), incarnation});
}

void CollectionSweeps::Resume() {
  std::vector<SweepRecord> left;
  store::Range range;
  range.begin = kSweepKeyPrefix;
  range.end = store::PrefixEnd(kSweepKeyPrefix);
  const auto cursor = store_.Scan(Keyspace::kMeta, range);
  for (; cursor->Valid(); cursor->Next()) {
    absl::StatusOr<SweepRecord> record = SweepRecord::Decode(cursor->value());
    // A damaged one does not say what to delete.
    if (record.ok()) left.push_back(*std::move(record));
  }
  if (!cursor->status().ok()) {
    executor_.Schedule(kDelayMax, [self = shared_from_this()] { self->Resume(); });
    return;
  }
  for (SweepRecord& record : left) {
    Sweep sweep{std::move(record.collection), record.incarnation};
    if (!record.swept) {
      Next(&CollectionSweeps::CheckDeleted, std::move(sweep));
      continue;
    }
    // Whatever the wall clock did meanwhile, no later than a sweep that ends now.
    const microseconds remaining(*record.swept - clock_.Now() +
                                 microseconds(kTombstoneLifetime).count());
    After(std::clamp(remaining, microseconds(0), microseconds(kTombstoneLifetime)),
          &CollectionSweeps::RemoveTombstone, std::move(sweep));
  }
  if (!capabilities_.commit_positions) return;
  executor_.Schedule([self = shared_from_this()] { self->AdoptTombstones(); });
}

// Stores written before tombstones were removed hold some whose sweep left no record.
void CollectionSweeps::AdoptTombstones() {
  // What cannot be read now is there at the next start.
  for (auto cursor = store_.Scan(Keyspace::kCollections, {}); cursor->Valid(); cursor->Next()) {
    const store::Record stored{std::string(cursor->value()), cursor->stamp(), 0};
    const auto record = CollectionRecord::Decode(cursor->key(), stored);
    if (!record.ok() || !record->deleted) continue;
    const auto known = store_.Get(Keyspace::kMeta, SweepKey(record->incarnation));
    if (known.ok() && !*known) Begin(record->name, record->incarnation);
  }
}

// A crash between the record of a sweep and the tombstone leaves a sweep without reason.
void CollectionSweeps::CheckDeleted(Sweep sweep) {
  const auto present = ReadCollectionRecord(store_, sweep.collection);
  // A collection that cannot be read may be alive: its records stay.
  if (!present.ok()) return Later(&CollectionSweeps::CheckDeleted, std::move(sweep));
  const bool alive =
      *present && !(*present)->deleted && (*present)->incarnation == sweep.incarnation;
  if (!alive) return SweepChunk(std::move(sweep));
  store::WriteBatch batch;
  batch.MarkAsBackground();
  batch.MarkAsRemoval();
  batch.Delete(Keyspace::kMeta, SweepKey(sweep.incarnation));
  store_.Commit(std::move(batch), [](const store::CommitResult&) {});
}

// One chunk a task, so that a large collection does not keep a thread of the executor for itself.
void CollectionSweeps::SweepChunk(Sweep sweep) {
  store::WriteBatch batch;
  batch.MarkAsBackground();
  batch.MarkAsRemoval();
  Sweep next = sweep;
  for (; next.keyspace < kSwept.size(); ++next.keyspace, next.begin.clear()) {
    const Keyspace keyspace = kSwept[next.keyspace];
    store::Range range = store::IncarnationRange(sweep.incarnation);
    range.begin = std::max(range.begin, next.begin);
    const auto cursor = store_.Scan(keyspace, range);
    for (; cursor->Valid() && batch.writes().size() < kChunk; cursor->Next()) {
      next.begin.assign(cursor->key()).append(1, '\0');
      batch.Delete(keyspace, std::string(cursor->key()));
    }
    if (!cursor->status().ok()) return Later(&CollectionSweeps::SweepChunk, std::move(sweep));
    if (batch.writes().size() == kChunk) break;
  }
  if (batch.writes().empty()) return EndPass(std::move(next));
  next.found = true;
  store_.Commit(std::move(batch),
                [self = shared_from_this(), sweep = std::move(sweep),
                 next = std::move(next)](const store::CommitResult& result) mutable {
                  if (result.committed) {
                    self->Next(&CollectionSweeps::SweepChunk, std::move(next));
                  } else {
                    self->Later(&CollectionSweeps::SweepChunk, std::move(sweep));
                  }
                });
}

// The end of the last keyspace is reached.
void CollectionSweeps::EndPass(Sweep sweep) {
  // A stale scan may have missed a record, and without atomic batches a slow writer may have added
  // one; so there a sweep ends with a pass that finds nothing.
  const bool sure = capabilities_.atomic_batches && capabilities_.fresh_scans;
  if (sweep.found && !sure) {
    return Next(&CollectionSweeps::SweepChunk, {std::move(sweep.collection), sweep.incarnation});
  }
  store::WriteBatch batch;
  batch.MarkAsBackground();
  batch.MarkAsRemoval();
  if (capabilities_.commit_positions) {
    batch.Put(Keyspace::kMeta, SweepKey(sweep.incarnation),
              SweepRecord{sweep.collection, sweep.incarnation, clock_.Now()}.Encode());
  } else {
    batch.Delete(Keyspace::kMeta, SweepKey(sweep.incarnation));
  }
  store_.Commit(std::move(batch), [self = shared_from_this(), sweep = std::move(sweep)](
                                      const store::CommitResult& result) mutable {
    if (!result.committed) return self->Later(&CollectionSweeps::EndPass, std::move(sweep));
    if (!self->capabilities_.commit_positions) return;
    sweep.failures = 0;
    self->After(kTombstoneLifetime, &CollectionSweeps::RemoveTombstone, std::move(sweep));
  });
}

// Does not look at the clock: the time is for people who look into the store, not for what is
// right.
void CollectionSweeps::RemoveTombstone(Sweep sweep) {
  const auto present = ReadCollectionRecord(store_, sweep.collection);
  if (!present.ok()) return Later(&CollectionSweeps::RemoveTombstone, std::move(sweep));
  store::WriteBatch batch;
  batch.MarkAsBackground();
  batch.MarkAsRemoval();
  const bool stands =
      *present && (*present)->deleted && (*present)->incarnation == sweep.incarnation;
  // A successor has replaced it otherwise; one that comes now wins by the guard.
  if (stands) batch.DeleteIf(Keyspace::kCollections, sweep.collection, (*present)->stamp);
  batch.Delete(Keyspace::kMeta, SweepKey(sweep.incarnation));
  store_.Commit(std::move(batch), [self = shared_from_this(), sweep = std::move(sweep)](
                                      const store::CommitResult& result) mutable {
    if (!result.committed) self->Later(&CollectionSweeps::RemoveTombstone, std::move(sweep));
  });
}

}  // namespace strata::versioning
