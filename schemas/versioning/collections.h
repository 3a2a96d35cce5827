// Collections: which strategy a set of documents uses, and the incarnation under which its records
// stand.
//
// A deleted collection's record stays as a tombstone, so that its stamp grows on and a writer that
// read the collection before can never commit into it; collection_sweeps.h says how long. `used`
// says that a document was about to be written; only a collection that is not used is empty for
// sure, and a deletion without force is guarded by the stamp of that state.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/age_clock.h"
#include "schemas/base/clock.h"
#include "schemas/base/doors.h"
#include "schemas/base/executor.h"
#include "schemas/base/stop.h"
#include "schemas/store/store.h"
#include "schemas/versioning/collection_cache.h"
#include "schemas/versioning/collection_count.h"
#include "schemas/versioning/collection_record.h"
#include "schemas/versioning/collection_sweeps.h"
#include "schemas/versioning/strategy.h"

namespace strata::versioning {

struct Collection {
  std::string name;
  int64_t incarnation = 0;
  const StrategyEntry* strategy_entry = nullptr;
  StrategyOptions options;  // all that the strategy has
  UnixMicros create_time = 0;
  bool used = false;
  store::Stamp stamp = 0;
  std::shared_ptr<const Strategy> strategy;
};

using CollectionPtr = std::shared_ptr<const Collection>;

inline constexpr int64_t kCollectionsMaxDefault = 100'000;

// The collection of a record, outside of the cache.
CollectionPtr MakeCollection(const CollectionRecord& record);

struct CollectionStatistics {
  int64_t documents = 0;
  int64_t versions = 0;
  std::map<store::Keyspace, store::RangeEstimate> keyspaces;
};

// Walks collections on one snapshot, which it takes at the first Next. Not thread-safe; must not
// outlive the store.
//
//   while (cursor.Next()) Use(cursor.collection());
//   RETURN_IF_ERROR(cursor.status());
class CollectionCursor {
 public:
  // Collections::List.
  CollectionCursor(const store::Store& store, std::string after_name, StopCheck stopped);

  // Moves to the next one; false at the end and after an error, and from then on.
  bool Next();

  // Of the collection moved to, until the next Next.
  const Collection& collection() const { return *collection_; }

  // The name after which a walk goes on that does not take the collection stood on. At the end:
  // nothing.
  std::optional<std::string> resume_after() const;

  // Why the walk ended: OK unless it failed.
  const absl::Status& status() const { return status_; }

 private:
  absl::StatusOr<CollectionPtr> Find();

  const store::Store& store_;
  const StopCheck stopped_;
  std::string passed_;  // the name before those to come
  std::unique_ptr<store::Reader> snapshot_;
  std::unique_ptr<store::Cursor> records_;
  CollectionPtr collection_;
  bool ended_ = false;
  absl::Status status_;
};

// What is to be deleted.
struct CollectionDeletion {
  std::string name;
  bool force = false;           // whatever it holds
  int64_t incarnation = 0;      // this one and no other; 0: whichever there is
  std::string request_id = {};  // empty: none
  ChangeInfo change = {};       // who deletes it and why, for the ledger
  // From then on nothing begins to take effect (write_batch.h).
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

struct CollectionDeleted {
  bool replayed = false;  // it was done before; this call did nothing
};

// Thread-safe. Callbacks come on any thread, once. Keep it in a shared_ptr: work in flight holds
// it.
//
// A commit of Create, PrepareForWrite or Delete that loses a race is decided anew on what the
// winner left. A call loses 100 commits at most, whichever records they are about, then it ends
// with RETRIES_EXHAUSTED.
class Collections : public std::enable_shared_from_this<Collections> {
 public:
  using Callback = std::function<void(absl::StatusOr<CollectionPtr>)>;
  using DeleteCallback = std::function<void(absl::StatusOr<CollectionDeleted>)>;
  // From then on nothing of a call begins to take effect: DEADLINE_EXCEEDED (write_batch.h).
  using Deadline = std::chrono::steady_clock::time_point;

  // All must outlive the work that is in flight. Of a store that several processes write to, each
  // sees to it alone that there are no more than `most`. `executor` sweeps; `prompt` repeats
  // commits that lost a race, null: `executor` does.
  Collections(store::Store& store, const Clock& clock, Executor& executor,
              int64_t most = kCollectionsMaxDefault, Executor* prompt = nullptr);

  // Counts the collections, which otherwise the first one to be made waits for. STORE_UNAVAILABLE.
  absl::Status Count() { return count_.Begin(); }

  // The collection, or null if there is none (or it is deleted). Reads its record through `reader`
  // each time; parsing it is cached. RECORD_CORRUPT, STORE_UNAVAILABLE.
  absl::StatusOr<CollectionPtr> Find(const store::Reader& reader, std::string_view name);
  // As Find, of a store that is not open for writers yet: nothing is cached.
  static absl::StatusOr<CollectionPtr> FindIn(const store::Reader& reader, std::string_view name);
  // As Find, with COLLECTION_NOT_FOUND for none.
  absl::StatusOr<CollectionPtr> Require(const store::Reader& reader, std::string_view name);

  // The collection as it is now. COLLECTION_NOT_FOUND; INVALID_NAME of `name`.
  absl::StatusOr<CollectionPtr> Get(std::string_view name);

  // Makes a collection. COLLECTION_EXISTS if there is one; COLLECTION_LIMIT; INVALID_NAME of
  // `name`; INVALID_FIELD as CompleteOptions.
  void Create(std::string_view name, const StrategyEntry& strategy, const StrategyOptions& options,
              Deadline deadline, Callback done);

  // Makes sure that the collection is marked as used, and makes it with `strategy` and default
  // options if there is none (any more). A null `strategy` makes none: then the answer is null. Of
  // several at once, the first does it and all get its answer, so one process always gives the same
  // `strategy`. Who comes later and has more time than the first does it again, if that one's was
  // not enough. COLLECTION_LIMIT.
  void PrepareForWrite(std::string_view name, const StrategyEntry* strategy,
                       std::optional<Deadline> deadline, Callback done);

  // Draws numbers for `count` collections whose records the caller writes: `first` and those after
  // it are the caller's alone. STORE_UNAVAILABLE; RETRIES_EXHAUSTED.
  struct Allocated {
    int64_t first = 0;
    int lost = 0;  // races for the counter
  };
  using AllocationCallback = std::function<void(absl::StatusOr<Allocated>)>;
  void AllocateIncarnations(int64_t count, AllocationCallback done);
  // Where those collections take their room.
  CollectionCount& count() { return count_; }
  // What the collection is to be under that number: not used, with default options, and with the
  // stamp of the tombstone that `reader` has of it, or none. RECORD_CORRUPT,
  // STORE_UNAVAILABLE.
  static absl::StatusOr<CollectionPtr> Draft(const store::Reader& reader, std::string_view name,
                                             const StrategyEntry& strategy, int64_t incarnation,
                                             UnixMicros create_time);

  // Deletes a collection: tombstones its record, then sweeps its documents in the background.
  // COLLECTION_NOT_FOUND; INCARNATION_MISMATCH where another incarnation lives than the one asked
  // for; without `force`, COLLECTION_NOT_EMPTY for one that was ever written to. A request id that
  // took effect within 24 hours is answered as replayed, whatever bears the name now; with other
  // arguments it is REQUEST_ID_REUSED. With commit positions the ledger tells of it. (Without
  // atomic batches, a request that another one overtakes in deleting the same incarnation counts as
  // done too.) INVALID_NAME, INVALID_FIELD, of the member.
  void Delete(CollectionDeletion deletion, DeleteCallback done);

  // The collections after `after_name` (empty: all), in the byte order of their names. `stopped` is
  // asked at each record, those of deleted ones too; then CANCELLED.
  CollectionCursor List(std::string after_name, StopCheck stopped = {}) const;

  // Exact up to 1000 documents, and of each keyspace up to 1000 records and 1 MiB; estimated
  // beyond. Reads up to so much. RECORD_CORRUPT, STORE_UNAVAILABLE.
  absl::StatusOr<CollectionStatistics> Statistics(const Collection& collection) const;

  // Goes on with what deletions had left to do when the process stopped. Call once after start.
  void ResumeSweeps() { sweeps_->Resume(); }

 private:
  CollectionPtr Cached(const CollectionRecord& record);
  void DropCached(std::string_view name, int64_t incarnation);
  void Prepare(const std::string& name, const StrategyEntry* strategy,
               std::optional<Deadline> deadline, Callback done);
  void Insert(std::string name, const StrategyEntry& strategy, StrategyOptions options, bool used,
              std::optional<Deadline> deadline, int attempt, Callback done);
  struct Allocation {
    int64_t count = 0;
    AllocationCallback done;
  };
  void AllocateForAll();
  void InsertRecord(CollectionRecord wanted, std::shared_ptr<CollectionRoom> room,
                    std::optional<Deadline> deadline, int attempt, Callback done);
  absl::StatusOr<std::optional<DeletionRecord>> Recall(const CollectionDeletion& deletion) const;
  absl::StatusOr<int64_t> PlanDelete(const CollectionDeletion& deletion, store::WriteBatch& batch);

  store::Store& store_;
  const Clock& clock_;
  const AgeClock age_clock_;  // of what requests did
  Executor& prompt_;
  Doors doors_;  // never closed
  const std::shared_ptr<CollectionSweeps> sweeps_;

  CollectionCount count_;

  std::mutex mutex_;       // guards what follows
  CollectionCache cache_;  // live ones that were asked for
  // Who waits for a collection that is being prepared.
  struct Waiting {
    std::optional<Deadline> deadline;
    Callback done;
  };
  std::map<std::string, std::vector<Waiting>, std::less<>> preparing_;
  std::vector<Allocation> unnumbered_;  // that the next allocation is for
  bool allocating_ = false;
};

}  // namespace strata::versioning
