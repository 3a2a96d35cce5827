#include "schemas/versioning/collections.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/versioning/document_errors.h"
#include "schemas/versioning/record_codec.h"

namespace strata::versioning {
namespace {

using store::Keyspace;

constexpr char kNextIncarnation[] = "next_incarnation";
constexpr char kSweepPrefix[] = "sweep/";
// A lost race here means that another writer made progress; so many in a row mean that something is
// wrong.
constexpr int kAttemptsMax = 100;
constexpr size_t kSweepChunk = 500;
// So many documents are counted; beyond, statistics are extrapolated.
constexpr int64_t kStatisticsSample = 1000;

std::string SweepKey(int64_t incarnation) { return kSweepPrefix + std::to_string(incarnation); }

absl::Status TooManyAttempts() {
  return Error(ErrorReason::kRetriesExhausted, "other writers of the collection were faster")
      .With("attempts", int64_t{kAttemptsMax});
}

}  // namespace

struct Collections::Stored {
  std::string name;
  int64_t incarnation = 0;
  const StrategyEntry* strategy = nullptr;
  StrategyOptions options;
  UnixMicros create_time = 0;
  bool used = false;
  bool deleted = false;
  store::Stamp stamp = 0;

  std::string Encode() const {
    return BsonBuilder()
        .Int64("incarnation", incarnation)
        .Int32("strategy", strategy->id)
        .Int32("keyframe_interval", options.keyframe_interval)
        .Int64("created", create_time)
        .Bool("used", used)
        .Bool("deleted", deleted)
        .Take();
  }

  static absl::StatusOr<Stored> Decode(std::string_view name, const store::Record& record) {
    Stored stored;
    stored.name = name;
    stored.stamp = record.stamp;
    BsonReader reader(record.value);
    while (reader.Next()) {
      const std::string_view member = reader.name();
      if (member == "incarnation") {
        stored.incarnation = reader.Int64();
      } else if (member == "strategy") {
        stored.strategy = FindStrategy(static_cast<int32_t>(reader.Int64()));
      } else if (member == "keyframe_interval") {
        stored.options.keyframe_interval = static_cast<int32_t>(reader.Int64());
      } else if (member == "created") {
        stored.create_time = reader.Int64();
      } else if (member == "used") {
        stored.used = reader.Bool();
      } else if (member == "deleted") {
        stored.deleted = reader.Bool();
      }
    }
    if (reader.corrupt() || stored.incarnation < 1 || stored.strategy == nullptr) {
      return Error(ErrorReason::kRecordCorrupt, "collection record is damaged")
          .With("collection", name);
    }
    return stored;
  }
};

Collections::Collections(store::Store& store, const Clock& clock, Executor& executor)
    : store_(store), clock_(clock), executor_(executor) {}

absl::StatusOr<std::optional<Collections::Stored>> Collections::Read(const store::Reader& reader,
                                                                     std::string_view name) const {
  ASSIGN_OR_RETURN(const std::optional<store::Record> record,
                   reader.Get(Keyspace::kCollections, name));
  if (!record) return std::nullopt;
  ASSIGN_OR_RETURN(Stored stored, Stored::Decode(name, *record));
  return stored;
}

CollectionPtr Collections::Cached(const Stored& stored) {
  const std::lock_guard lock(mutex_);
  CollectionPtr& cached = cache_[stored.name];
  if (cached && cached->stamp == stored.stamp) return cached;
  auto fresh = std::make_shared<Collection>();
  fresh->name = stored.name;
  fresh->incarnation = stored.incarnation;
  fresh->strategy_entry = stored.strategy;
  fresh->options = stored.options;
  fresh->create_time = stored.create_time;
  fresh->used = stored.used;
  fresh->stamp = stored.stamp;
  fresh->strategy = stored.strategy->make(stored.options);
  // An older snapshot's answer must not push out what a newer one found.
  if (!cached || cached->stamp < stored.stamp) cached = fresh;
  return fresh;
}

absl::StatusOr<CollectionPtr> Collections::Find(const store::Reader& reader,
                                                std::string_view name) {
  ASSIGN_OR_RETURN(const std::optional<store::Record> record,
                   reader.Get(Keyspace::kCollections, name));
  if (!record) return CollectionPtr();
  {
    const std::lock_guard lock(mutex_);
    const auto found = cache_.find(name);
    if (found != cache_.end() && found->second->stamp == record->stamp) return found->second;
  }
  ASSIGN_OR_RETURN(const Stored stored, Stored::Decode(name, *record));
  if (stored.deleted) return CollectionPtr();
  return Cached(stored);
}

absl::StatusOr<CollectionPtr> Collections::Require(const store::Reader& reader,
                                                   std::string_view name) {
  ASSIGN_OR_RETURN(CollectionPtr collection, Find(reader, name));
  if (!collection) return CollectionNotFound(name);
  return collection;
}

void Collections::Create(std::string_view name, const StrategyEntry& strategy,
                         const StrategyOptions& options, Callback done) {
  Insert(std::string(name), strategy, options, /*used=*/false, /*attempt=*/1, std::move(done));
}

void Collections::Insert(std::string name, const StrategyEntry& strategy, StrategyOptions options,
                         bool used, int attempt, Callback done) {
  const absl::StatusOr<std::optional<Stored>> present = Read(store_, name);
  if (!present.ok()) return done(present.status());
  if (*present && !(*present)->deleted) return done(CollectionExists(name));

  Stored wanted;
  wanted.name = std::move(name);
  wanted.strategy = &strategy;
  wanted.options = options;
  wanted.used = used;
  wanted.stamp = *present ? (*present)->stamp : 0;
  AllocateIncarnation(1, [self = shared_from_this(), wanted = std::move(wanted), attempt,
                          done = std::move(done)](absl::StatusOr<int64_t> incarnation) mutable {
    if (!incarnation.ok()) return done(incarnation.status());
    wanted.incarnation = *incarnation;
    wanted.create_time = self->clock_.Now();
    self->InsertRecord(std::move(wanted), attempt, std::move(done));
  });
}

void Collections::InsertRecord(Stored wanted, int attempt, Callback done) {
  store::WriteBatch batch;
  if (wanted.stamp == 0) {
    batch.Insert(Keyspace::kCollections, wanted.name, wanted.Encode());
  } else {
    batch.Replace(Keyspace::kCollections, wanted.name, wanted.Encode(), wanted.stamp);
  }
  store_.Commit(std::move(batch), [self = shared_from_this(), wanted = std::move(wanted), attempt,
                                   done = std::move(done)](const store::CommitResult& result) {
    if (!result.status.ok()) return done(result.status);
    if (result.committed) return done(self->Require(self->store_, wanted.name));
    // Lost the race: whoever won made the collection, or deleted it once more.
    if (attempt == kAttemptsMax) return done(TooManyAttempts());
    self->Insert(wanted.name, *wanted.strategy, wanted.options, wanted.used, attempt + 1, done);
  });
}

void Collections::AllocateIncarnation(int attempt,
                                      std::function<void(absl::StatusOr<int64_t>)> done) {
  const auto record = store_.Get(Keyspace::kMeta, kNextIncarnation);
  if (!record.ok()) return done(record.status());
  int64_t next = 1;
  if (*record) {
    BsonReader reader((*record)->value);
    while (reader.Next()) {
      if (reader.name() == "value") next = reader.Int64();
    }
    if (reader.corrupt()) {
      return done(Error(ErrorReason::kRecordCorrupt, "incarnation counter is damaged").ToStatus());
    }
  }
  store::WriteBatch batch;
  std::string value = BsonBuilder().Int64("value", next + 1).Take();
  if (*record) {
    batch.Replace(Keyspace::kMeta, kNextIncarnation, std::move(value), (*record)->stamp);
  } else {
    batch.Insert(Keyspace::kMeta, kNextIncarnation, std::move(value));
  }
  store_.Commit(std::move(batch), [self = shared_from_this(), next, attempt,
                                   done = std::move(done)](const store::CommitResult& result) {
    if (!result.status.ok()) return done(result.status);
    if (result.committed) return done(next);
    if (attempt == kAttemptsMax) return done(TooManyAttempts());
    self->AllocateIncarnation(attempt + 1, done);
  });
}

// A new collection may see the first writes of hundreds of documents at once, which would all lose
// races against each other.
void Collections::PrepareForWrite(std::string_view name, const StrategyEntry* strategy,
                                  Callback done) {
  {
    const std::lock_guard lock(mutex_);
    const auto [waiting, first] = preparing_.try_emplace(std::string(name));
    waiting->second.push_back(std::move(done));
    if (!first) return;
  }
  Prepare(std::string(name), strategy,
          [self = shared_from_this(),
           name = std::string(name)](const absl::StatusOr<CollectionPtr>& prepared) {
            std::vector<Callback> waiting;
            {
              const std::lock_guard lock(self->mutex_);
              waiting = std::move(self->preparing_.extract(name).mapped());
            }
            for (const Callback& each : waiting) each(prepared);
          });
}

void Collections::Prepare(const std::string& name, const StrategyEntry* strategy, Callback done) {
  absl::StatusOr<std::optional<Stored>> present = Read(store_, name);
  if (!present.ok()) return done(present.status());
  if ((!*present || (*present)->deleted) && strategy == nullptr) return done(CollectionPtr());
  // Whoever wins a race here did what was wanted, or its opposite; the caller looks again either
  // way.
  auto adopt = [self = shared_from_this(), name, done = std::move(done)](absl::Status status) {
    if (!status.ok() && ReasonOf(status) != ErrorReason::kCollectionExists) return done(status);
    done(self->Find(self->store_, name));
  };
  if (!*present || (*present)->deleted) {
    return Insert(name, *strategy, StrategyOptions(), /*used=*/true, /*attempt=*/1,
                  [adopt](const absl::StatusOr<CollectionPtr>& made) { adopt(made.status()); });
  }
  if ((*present)->used) return adopt(absl::OkStatus());
  Stored used = **present;
  used.used = true;
  store::WriteBatch batch;
  batch.Replace(Keyspace::kCollections, name, used.Encode(), used.stamp);
  store_.Commit(std::move(batch),
                [adopt](const store::CommitResult& result) { adopt(result.status); });
}

void Collections::Delete(std::string_view name, bool force, DeleteCallback done) {
  const absl::StatusOr<std::optional<Stored>> present = Read(store_, name);
  if (!present.ok()) return done(present.status());
  if (!*present || (*present)->deleted) return done(CollectionNotFound(name));
  if ((*present)->used && !force) {
    return done(
        Error(ErrorReason::kCollectionNotEmpty, "collection holds documents; delete it with force")
            .With("collection", name)
            .ToStatus());
  }
  Stored tombstone = **present;
  tombstone.deleted = true;
  store::WriteBatch batch;
  // First, so that a crash between the two leaves a sweep that ResumeSweeps finds unfounded, not
  // garbage for ever.
  batch.Ensure(
      Keyspace::kMeta, SweepKey(tombstone.incarnation),
      BsonBuilder().String("collection", name).Int64("incarnation", tombstone.incarnation).Take());
  batch.Replace(Keyspace::kCollections, std::string(name), tombstone.Encode(), tombstone.stamp);
  batch.MarkCommitPoint();
  store_.Commit(std::move(batch), [self = shared_from_this(), name = std::string(name), force,
                                   incarnation = tombstone.incarnation,
                                   done = std::move(done)](const store::CommitResult& result) {
    if (!result.status.ok()) return done(result.status);
    // A lost race: the collection changed since it was read, so decide anew.
    if (!result.committed) return self->Delete(name, force, done);
    self->executor_.Schedule([self, incarnation] { self->Sweep(incarnation); });
    done(absl::OkStatus());
  });
}

absl::Status Collections::List(std::string_view after_name,
                               const std::function<bool(const Collection&)>& visitor) {
  const auto snapshot = store_.Snapshot();
  store::Range range;
  range.begin = after_name;
  auto cursor = snapshot->Scan(Keyspace::kCollections, range);
  for (; cursor->Valid(); cursor->Next()) {
    if (!after_name.empty() && cursor->key() == after_name) continue;
    const store::Record record{std::string(cursor->value()), cursor->stamp(), 0};
    ASSIGN_OR_RETURN(const Stored stored, Stored::Decode(cursor->key(), record));
    if (!stored.deleted && !visitor(*Cached(stored))) return absl::OkStatus();
  }
  return cursor->status();
}

absl::StatusOr<CollectionStatistics> Collections::Statistics(const Collection& collection) const {
  CollectionStatistics statistics;
  const store::Range range = store::IncarnationRange(collection.incarnation);
  for (const Keyspace keyspace : {Keyspace::kHeads, Keyspace::kVersions, Keyspace::kRequests}) {
    statistics.keyspaces[keyspace] = store_.Estimate(keyspace, range);
  }
  const auto snapshot = store_.Snapshot();
  bool whole = true;
  RETURN_IF_ERROR(collection.strategy->ScanHeads(
      {*snapshot, store_.capabilities()}, collection.incarnation, "", "", Part::kHeader,
      [&](std::string_view /*id*/, StoredVersion&& head) {
        whole = statistics.documents < kStatisticsSample;
        if (!whole) return false;
        ++statistics.documents;
        statistics.versions += head.header.version;
        return true;
      }));
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

void Collections::ResumeSweeps() {
  store::Range range;
  range.begin = kSweepPrefix;
  range.end = store::PrefixEnd(kSweepPrefix);
  for (auto cursor = store_.Scan(Keyspace::kMeta, range); cursor->Valid(); cursor->Next()) {
    BsonReader reader(cursor->value());
    std::string name;
    int64_t incarnation = 0;
    while (reader.Next()) {
      if (reader.name() == "collection") name = reader.String();
      if (reader.name() == "incarnation") incarnation = reader.Int64();
    }
    const absl::StatusOr<CollectionPtr> live = Find(store_, name);
    // A collection that cannot be read may be alive: its records stay.
    if (!live.ok() || reader.corrupt()) continue;
    if (*live && (*live)->incarnation == incarnation) {
      store::WriteBatch batch;
      batch.Delete(Keyspace::kMeta, std::string(cursor->key()));
      store_.Commit(std::move(batch), [](const store::CommitResult&) {});
      continue;
    }
    executor_.Schedule([self = shared_from_this(), incarnation] { self->Sweep(incarnation); });
  }
}

void Collections::Sweep(int64_t incarnation) {
  // One chunk a task, so that a large collection does not keep a thread of the executor for itself.
  store::WriteBatch batch;
  for (const Keyspace keyspace : {Keyspace::kHeads, Keyspace::kVersions, Keyspace::kRequests}) {
    auto cursor = store_.Scan(keyspace, store::IncarnationRange(incarnation));
    for (; cursor->Valid() && batch.writes().size() < kSweepChunk; cursor->Next()) {
      batch.Delete(keyspace, std::string(cursor->key()));
    }
    if (!cursor->status().ok()) return;  // the next start goes on
  }
  const bool last = batch.writes().empty();
  if (last) batch.Delete(Keyspace::kMeta, SweepKey(incarnation));
  store_.Commit(std::move(batch),
                [self = shared_from_this(), incarnation, last](const store::CommitResult& result) {
                  if (last || !result.committed) return;
                  self->executor_.Schedule([self, incarnation] { self->Sweep(incarnation); });
                });
}

}  // namespace strata::versioning
