#include "schemas/versioning/collections.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "schemas/base/error.h"
#include "schemas/base/field_checks.h"
#include "schemas/base/names.h"
#include "schemas/base/status_macros.h"
#include "schemas/document/bson_builder.h"
#include "schemas/store/guarded_commit.h"
#include "schemas/versioning/document_errors.h"
#include "schemas/versioning/ledger.h"
#include "schemas/versioning/ledger_floor.h"
#include "schemas/versioning/record_codec.h"
#include "schemas/versioning/write_path.h"

namespace strata::versioning {
namespace {

using store::Keyspace;

// Of one call. A lost race here means that another writer made progress; so many lost by one call
// mean that something is wrong.
constexpr int kAttemptsMax = 100;
// Beyond, parsing a record now and then costs less than the memory.
constexpr size_t kCachedMax = 10'000;
// So many documents or records are counted, and of records so many bytes; beyond, statistics are
// extrapolated.
constexpr int64_t kStatisticsSample = 1000;
constexpr int64_t kStatisticsSampleBytes = int64_t{1} << 20;

std::string SubjectOf(std::string_view name) { return "collection " + std::string(name); }

absl::Status Validate(const CollectionDeletion& deletion) {
  RETURN_IF_ERROR(ValidateName("name", deletion.name));
  RETURN_IF_ERROR(ValidateRequestId(deletion.request_id));
  if (deletion.incarnation >= 0) return absl::OkStatus();
  return FieldError("incarnation",
                    "is " + std::to_string(deletion.incarnation) + ", but counts from 1");
}

// Why the collection must not be deleted; `live` is null if there is none.
absl::Status CheckDeletion(const CollectionDeletion& deletion, const CollectionRecord* live) {
  if (live == nullptr) return CollectionNotFound(deletion.name);
  if (deletion.incarnation != 0 && deletion.incarnation != live->incarnation) {
    return Error(ErrorReason::kIncarnationMismatch,
                 "collection's incarnation is " + std::to_string(live->incarnation) + ", not " +
                     std::to_string(deletion.incarnation))
        .With("collection", deletion.name)
        .With("expected", deletion.incarnation)
        .With("actual", live->incarnation);
  }
  if (live->used && !deletion.force) {
    return Error(ErrorReason::kCollectionNotEmpty,
                 "collection holds documents; delete it with force")
        .With("collection", deletion.name);
  }
  return absl::OkStatus();
}

// Counted where that is little work: engines may take a neighbour's records for those of a small
// range.
absl::StatusOr<store::RangeEstimate> SizeOf(const store::Store& store, const store::Reader& reader,
                                            Keyspace keyspace, const store::Range& range) {
  store::RangeEstimate counted;
  const auto cursor = reader.Scan(keyspace, range);
  for (; cursor->Valid(); cursor->Next()) {
    if (counted.records == kStatisticsSample || counted.bytes >= kStatisticsSampleBytes) {
      const store::RangeEstimate estimated = store.Estimate(keyspace, range);
      return store::RangeEstimate{std::max(counted.records, estimated.records),
                                  std::max(counted.bytes, estimated.bytes)};
    }
    ++counted.records;
    counted.bytes += static_cast<int64_t>(cursor->key().size() + cursor->value().size());
  }
  RETURN_IF_ERROR(cursor->status());
  return counted;
}

}  // namespace

CollectionPtr MakeCollection(const CollectionRecord& record) {
  auto made = std::make_shared<Collection>();
  made->name = record.name;
  made->incarnation = record.incarnation;
  made->strategy_entry = record.strategy;
  made->options = record.options;
  made->create_time = record.create_time;
  made->used = record.used;
  made->stamp = record.stamp;
  made->strategy = record.strategy->make(record.options);
  return made;
}

Collections::Collections(store::Store& store, const Clock& clock, Executor& executor, int64_t most,
                         Executor* prompt)
    : store_(store),
      clock_(clock),
      age_clock_(clock),
      prompt_(prompt != nullptr ? *prompt : executor),
      sweeps_(std::make_shared<CollectionSweeps>(store, clock, executor)),
      count_(store, clock, most),
      cache_(kCachedMax) {}

CollectionPtr Collections::Cached(const CollectionRecord& record) {
  CollectionPtr made = MakeCollection(record);
  const std::lock_guard lock(mutex_);
  cache_.Put(made);
  return made;
}

void Collections::DropCached(std::string_view name, int64_t incarnation) {
  const std::lock_guard lock(mutex_);
  cache_.Drop(name, incarnation);
}

absl::StatusOr<CollectionPtr> Collections::Find(const store::Reader& reader,
                                                std::string_view name) {
  ASSIGN_OR_RETURN(const std::optional<store::Record> record,
                   reader.Get(Keyspace::kCollections, name));
  if (!record) return CollectionPtr();
  {
    const std::lock_guard lock(mutex_);
    CollectionPtr found = cache_.Find(name);
    if (found != nullptr && found->stamp == record->stamp) return found;
  }
  ASSIGN_OR_RETURN(const CollectionRecord decoded, CollectionRecord::Decode(name, *record));
  if (!decoded.deleted) return Cached(decoded);
  DropCached(name, decoded.incarnation);
  return CollectionPtr();
}

absl::StatusOr<CollectionPtr> Collections::FindIn(const store::Reader& reader,
                                                  std::string_view name) {
  ASSIGN_OR_RETURN(const std::optional<store::Record> record,
                   reader.Get(Keyspace::kCollections, name));
  if (!record) return CollectionPtr();
  ASSIGN_OR_RETURN(const CollectionRecord decoded, CollectionRecord::Decode(name, *record));
  return decoded.deleted ? CollectionPtr() : MakeCollection(decoded);
}

absl::StatusOr<CollectionPtr> Collections::Require(const store::Reader& reader,
                                                   std::string_view name) {
  ASSIGN_OR_RETURN(CollectionPtr collection, Find(reader, name));
  if (!collection) return CollectionNotFound(name);
  return collection;
}

absl::StatusOr<CollectionPtr> Collections::Get(std::string_view name) {
  RETURN_IF_ERROR(ValidateName("name", name));
  return Require(store_, name);
}

void Collections::Create(std::string_view name, const StrategyEntry& strategy,
                         const StrategyOptions& options, Deadline deadline, Callback done) {
  if (absl::Status valid = ValidateName("name", name); !valid.ok()) return done(std::move(valid));
  absl::StatusOr<StrategyOptions> complete = CompleteOptions(strategy, options);
  if (!complete.ok()) return done(complete.status());
  Insert(std::string(name), strategy, *std::move(complete), /*used=*/false, deadline,
         /*attempt=*/1, std::move(done));
}

void Collections::Insert(std::string name, const StrategyEntry& strategy, StrategyOptions options,
                         bool used, std::optional<Deadline> deadline, int attempt, Callback done) {
  const absl::StatusOr<std::optional<CollectionRecord>> present =
      ReadCollectionRecord(store_, name);
  if (!present.ok()) return done(present.status());
  if (*present && !(*present)->deleted) return done(CollectionExists(name));
  auto room = std::make_shared<CollectionRoom>(count_);
  if (absl::Status taken = room->Take(name); !taken.ok()) {
    return done(std::move(taken));
  }

  CollectionRecord wanted;
  wanted.name = std::move(name);
  wanted.strategy = &strategy;
  wanted.options = std::move(options);
  wanted.used = used;
  wanted.stamp = *present ? (*present)->stamp : 0;
  AllocateIncarnations(
      1, [self = shared_from_this(), room = std::move(room), wanted = std::move(wanted), deadline,
          attempt, done = std::move(done)](absl::StatusOr<Allocated> allocated) mutable {
        if (!allocated.ok()) {
          room.reset();
          return done(allocated.status());
        }
        wanted.incarnation = allocated->first;
        wanted.create_time = self->clock_.Now();
        self->InsertRecord(std::move(wanted), std::move(room), deadline, attempt + allocated->lost,
                           std::move(done));
      });
}

void Collections::InsertRecord(CollectionRecord wanted, std::shared_ptr<CollectionRoom> room,
                               std::optional<Deadline> deadline, int attempt, Callback done) {
  store::WriteBatch batch;
  batch.set_deadline(deadline);
  if (wanted.stamp == 0) {
    batch.Insert(Keyspace::kCollections, wanted.name, wanted.Encode());
  } else {
    batch.Replace(Keyspace::kCollections, wanted.name, wanted.Encode(), wanted.stamp);
  }
  store_.Commit(
      std::move(batch),
      [self = shared_from_this(), room = std::move(room), wanted = std::move(wanted), deadline,
       attempt, done = std::move(done)](const store::CommitResult& result) mutable {
        EndMaking(result, std::move(room));
        if (result.committed) return done(self->Require(self->store_, wanted.name));
        if (!result.status.ok()) return done(result.status);
        // Lost the race: whoever won made the collection, or deleted it once more.
        if (attempt >= kAttemptsMax) {
          return done(store::RetriesExhausted(SubjectOf(wanted.name), attempt));
        }
        self->Insert(wanted.name, *wanted.strategy, wanted.options, wanted.used, deadline,
                     attempt + 1, done);
      });
}

absl::StatusOr<CollectionPtr> Collections::Draft(const store::Reader& reader, std::string_view name,
                                                 const StrategyEntry& strategy, int64_t incarnation,
                                                 UnixMicros create_time) {
  ASSIGN_OR_RETURN(const std::optional<CollectionRecord> present,
                   ReadCollectionRecord(reader, name));
  CollectionRecord draft;
  draft.name = std::string(name);
  draft.incarnation = incarnation;
  draft.strategy = &strategy;
  ASSIGN_OR_RETURN(draft.options, CompleteOptions(strategy, {}));
  draft.create_time = create_time;
  // One that lives by now loses its race.
  draft.stamp = present && present->deleted ? present->stamp : 0;
  return MakeCollection(draft);
}

// Many collections are made at once, and all of them need the one counter: so one commit of it
// takes numbers for all that wait.
void Collections::AllocateIncarnations(int64_t count, AllocationCallback done) {
  {
    const std::lock_guard lock(mutex_);
    unnumbered_.push_back({count, std::move(done)});
    if (std::exchange(allocating_, true)) return;
  }
  AllocateForAll();
}

void Collections::AllocateForAll() {
  std::vector<Allocation> waiting;
  {
    const std::lock_guard lock(mutex_);
    waiting.swap(unnumbered_);
    allocating_ = !waiting.empty();
  }
  if (waiting.empty()) return;
  int64_t count = 0;
  for (const Allocation& allocation : waiting) count += allocation.count;
  const auto attempts = std::make_shared<int>(0);
  store::CommitGuarded(
      {store_, prompt_, {shared_from_this(), &doors_}},
      // A number that stands for nothing tells of nothing.
      {"numbers of collections", /*deadline=*/std::nullopt, kAttemptsMax},
      [this, count, attempts](store::WriteBatch& batch) -> absl::StatusOr<Allocated> {
        ASSIGN_OR_RETURN(IncarnationCounter counter, ReadIncarnationCounter(store_));
        const int64_t first = counter.next;
        counter.next += count;
        if (counter.stamp != 0) {
          batch.Replace(Keyspace::kMeta, std::string(kNextIncarnationKey), counter.Encode(),
                        counter.stamp);
        } else {
          batch.Insert(Keyspace::kMeta, std::string(kNextIncarnationKey), counter.Encode());
        }
        return Allocated{first, (*attempts)++};
      },
      [this, waiting = std::move(waiting)](absl::StatusOr<Allocated> next) {
        for (const Allocation& allocation : waiting) {
          allocation.done(next);
          if (next.ok()) next->first += allocation.count;
        }
        AllocateForAll();
      });
}

// A new collection may see the first writes of hundreds of documents at once, which would all lose
// races against each other.
void Collections::PrepareForWrite(std::string_view name, const StrategyEntry* strategy,
                                  std::optional<Deadline> deadline, Callback done) {
  {
    const std::lock_guard lock(mutex_);
    const auto [waiting, first] = preparing_.try_emplace(std::string(name));
    waiting->second.push_back({deadline, std::move(done)});
    if (!first) return;
  }
  Prepare(std::string(name), strategy, deadline,
          [self = shared_from_this(), name = std::string(name), strategy,
           deadline](const absl::StatusOr<CollectionPtr>& prepared) {
            std::vector<Waiting> waiting;
            {
              const std::lock_guard lock(self->mutex_);
              waiting = std::move(self->preparing_.extract(name).mapped());
            }
            const bool late = deadline && absl::IsDeadlineExceeded(prepared.status());
            for (Waiting& each : waiting) {
              if (late && each.deadline.value_or(Deadline::max()) > *deadline) {
                self->PrepareForWrite(name, strategy, each.deadline, std::move(each.done));
              } else {
                each.done(prepared);
              }
            }
          });
}

void Collections::Prepare(const std::string& name, const StrategyEntry* strategy,
                          std::optional<Deadline> deadline, Callback done) {
  absl::StatusOr<std::optional<CollectionRecord>> present = ReadCollectionRecord(store_, name);
  if (!present.ok()) return done(present.status());
  if ((!*present || (*present)->deleted) && strategy == nullptr) return done(CollectionPtr());
  // Whoever wins a race here did what was wanted, or its opposite; the caller looks again either
  // way.
  auto adopt = [self = shared_from_this(), name, done = std::move(done)](absl::Status status) {
    if (!status.ok() && ReasonOf(status) != ErrorReason::kCollectionExists) return done(status);
    done(self->Find(self->store_, name));
  };
  if (!*present || (*present)->deleted) {
    return Insert(name, *strategy, *CompleteOptions(*strategy, {}), /*used=*/true, deadline,
                  /*attempt=*/1,
                  [adopt](const absl::StatusOr<CollectionPtr>& made) { adopt(made.status()); });
  }
  if ((*present)->used) return adopt(absl::OkStatus());
  CollectionRecord used = **present;
  used.used = true;
  store::WriteBatch batch;
  batch.set_deadline(deadline);
  batch.Replace(Keyspace::kCollections, name, used.Encode(), used.stamp);
  store_.Commit(std::move(batch),
                [adopt](const store::CommitResult& result) { adopt(result.status); });
}

void Collections::Delete(CollectionDeletion deletion, DeleteCallback done) {
  if (absl::Status valid = Validate(deletion); !valid.ok()) return done(std::move(valid));
  store::Race race{SubjectOf(deletion.name), deletion.deadline, kAttemptsMax};
  const auto shared = std::make_shared<const CollectionDeletion>(std::move(deletion));
  store::CommitGuarded(
      {store_, prompt_, {shared_from_this(), &doors_}}, std::move(race),
      [this, shared](store::WriteBatch& batch) { return PlanDelete(*shared, batch); },
      [this, shared, done = std::move(done)](const absl::StatusOr<int64_t>& incarnation) {
        if (!incarnation.ok()) return done(incarnation.status());
        if (*incarnation == 0) return done(CollectionDeleted{.replayed = true});
        count_.Remove();
        DropCached(shared->name, *incarnation);
        sweeps_->Begin(shared->name, *incarnation);
        done(CollectionDeleted{});
      });
}

// What is remembered of the deletion's request id.
absl::StatusOr<std::optional<DeletionRecord>> Collections::Recall(
    const CollectionDeletion& deletion) const {
  if (deletion.request_id.empty()) return std::nullopt;
  ASSIGN_OR_RETURN(const std::optional<store::Record> record,
                   store_.Get(Keyspace::kMeta, DeletionKey(deletion.name, deletion.request_id)));
  if (!record) return std::nullopt;
  ASSIGN_OR_RETURN(DeletionRecord recalled, DeletionRecord::Decode(*record));
  // Engines drop what has expired when they like.
  if (recalled.time <= age_clock_.Now() - kRequestIdLifetime) return std::nullopt;
  if (recalled.force != deletion.force || recalled.expected != deletion.incarnation) {
    return Error(ErrorReason::kRequestIdReused,
                 "request_id was used for a deletion with another force or incarnation; give every "
                 "deletion an id of its own")
        .With("field", "request_id")
        .With("incarnation", recalled.incarnation);
  }
  return recalled;
}

// The incarnation that is deleted; 0: it was before, under the same request id.
absl::StatusOr<int64_t> Collections::PlanDelete(const CollectionDeletion& deletion,
                                                store::WriteBatch& batch) {
  // Before everything else: whatever stands in this request's way may be its own first attempt.
  ASSIGN_OR_RETURN(const std::optional<DeletionRecord> recalled, Recall(deletion));
  ASSIGN_OR_RETURN(std::optional<CollectionRecord> present,
                   ReadCollectionRecord(store_, deletion.name));
  const bool lives = present && !present->deleted;
  if (recalled && !(lives && present->incarnation == recalled->incarnation)) return 0;
  const absl::Status refusal = CheckDeletion(deletion, lives ? &*present : nullptr);
  if (!refusal.ok()) {
    if (recalled) return refusal;
    // The first attempt may have taken effect since the id was looked up.
    ASSIGN_OR_RETURN(const std::optional<DeletionRecord> meanwhile, Recall(deletion));
    if (!meanwhile) return refusal;
    return PlanDelete(deletion, batch);
  }
  RETURN_IF_ERROR(count_.Begin());
  CollectionRecord target = *std::move(present);
  batch.MarkAsRemoval();
  if (!deletion.request_id.empty()) {
    // First, so that a call repeated after a crash knows what this one was to delete. Guarded, so
    // that an id names one incarnation for good: a slow attempt loses here, before it could delete
    // a successor.
    const UnixMicros now = clock_.Now();
    std::string key = DeletionKey(deletion.name, deletion.request_id);
    std::string value =
        DeletionRecord{target.incarnation, deletion.force, deletion.incarnation, now}.Encode();
    store::Write& write =
        recalled ? batch.Replace(Keyspace::kMeta, std::move(key), std::move(value), recalled->stamp)
                 : batch.Insert(Keyspace::kMeta, std::move(key), std::move(value));
    write.expire_time = now + kRequestIdLifetime;
  }
  // Before the tombstone, so that a crash between the two leaves a sweep that is found unfounded at
  // the next start, not garbage for ever.
  batch.Ensure(Keyspace::kMeta, SweepKey(target.incarnation),
               SweepRecord{target.name, target.incarnation, {}}.Encode());
  if (store_.capabilities().commit_positions) {
    batch.Ensure(Keyspace::kFeed, std::string(kLedgerEventsKey), document::BsonBuilder().Take());
    batch.AppendToLedger(CollectionDeletedEntry(target.name, target.incarnation, clock_.Now(),
                                                deletion.change, deletion.request_id));
  }
  target.deleted = true;
  batch.Replace(Keyspace::kCollections, target.name, target.Encode(), target.stamp);
  batch.MarkCommitPoint();
  return target.incarnation;
}

CollectionCursor Collections::List(std::string after_name, StopCheck stopped) const {
  return CollectionCursor(store_, std::move(after_name), std::move(stopped));
}

CollectionCursor::CollectionCursor(const store::Store& store, std::string after_name,
                                   StopCheck stopped)
    : store_(store), stopped_(std::move(stopped)), passed_(std::move(after_name)) {}

bool CollectionCursor::Next() {
  if (ended_) return false;
  if (collection_) passed_ = collection_->name;
  absl::StatusOr<CollectionPtr> found = Find();
  status_ = found.status();
  collection_ = found.ok() ? *std::move(found) : nullptr;
  ended_ = collection_ == nullptr;
  return !ended_;
}

// Null at the end.
absl::StatusOr<CollectionPtr> CollectionCursor::Find() {
  if (records_ == nullptr) {
    snapshot_ = store_.Snapshot();
    records_ = snapshot_->Scan(Keyspace::kCollections, {.begin = passed_, .end = ""});
    if (!passed_.empty() && records_->Valid() && records_->key() == passed_) records_->Next();
  } else {
    records_->Next();
  }
  for (; records_->Valid(); records_->Next()) {
    if (Stopped(stopped_)) return StoppedError();
    const store::Record record{std::string(records_->value()), records_->stamp(), 0};
    ASSIGN_OR_RETURN(const CollectionRecord decoded,
                     CollectionRecord::Decode(records_->key(), record));
    // Past the cache: a walk over all must not push out what is in use.
    if (!decoded.deleted) return MakeCollection(decoded);
  }
  RETURN_IF_ERROR(records_->status());
  return CollectionPtr();
}

std::optional<std::string> CollectionCursor::resume_after() const {
  if (collection_ == nullptr) return std::nullopt;
  return passed_;
}

absl::StatusOr<CollectionStatistics> Collections::Statistics(const Collection& collection) const {
  CollectionStatistics statistics;
  const store::Range range = store::IncarnationRange(collection.incarnation);
  const auto snapshot = store_.Snapshot();
  for (const Keyspace keyspace : store::KeyspacesWith<&store::KeyspaceTraits::of_documents>()) {
    ASSIGN_OR_RETURN(statistics.keyspaces[keyspace], SizeOf(store_, *snapshot, keyspace, range));
  }
  const auto heads_cursor = collection.strategy->ScanHeads(
      {*snapshot, store_.capabilities()}, collection.incarnation, "", "", Part::kHeader);
  bool whole = true;
  while (whole && heads_cursor->Next()) {
    whole = statistics.documents < kStatisticsSample;
    if (!whole) break;
    ++statistics.documents;
    statistics.versions += heads_cursor->item().version.header.version;
  }
  RETURN_IF_ERROR(heads_cursor->status());
  if (whole || statistics.versions == 0) return statistics;
  // Extrapolate from the sample's versions per document, by the keyspace whose records the strategy
  // ties to documents.
  const double versions_per_document =
      static_cast<double>(statistics.versions) / static_cast<double>(statistics.documents);
  const int64_t heads = statistics.keyspaces[Keyspace::kHeads].records;
  if (heads > 0) {
    statistics.documents = std::max(statistics.documents, heads);
    statistics.versions =
        static_cast<int64_t>(static_cast<double>(statistics.documents) * versions_per_document);
  } else {
    statistics.versions =
        std::max(statistics.versions, statistics.keyspaces[Keyspace::kVersions].records);
    statistics.documents =
        static_cast<int64_t>(static_cast<double>(statistics.versions) / versions_per_document);
  }
  return statistics;
}

}  // namespace strata::versioning
