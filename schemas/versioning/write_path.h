// The only way to write a document: read the head, apply a function, plan, commit; again if another
// was faster.
//
// Where the engine's reads block, only the executor reads: neither the caller of Modify nor the
// thread that brings a commit's answer waits for it. Nor do they decide what takes long, such as
// about large documents or by many conditions: such a round goes on in the turn of any of those who
// wait for writes of its documents, whichever comes first, or on the executor where one of them is
// not known.
//
// Writes of one document stand in its write queue. While a commit of the document is in flight,
// further writes wait; then they are applied one after the other and planned together as successive
// versions of one batch (on engines with atomic batches; elsewhere one version a commit). So
// writers in one process never fight each other, and a hot document costs one fsync for a group;
// compare-and-swap remains for writers in other processes. An answer that was decided on a version
// which is not durable yet waits for that commit; if nothing comes of it, the write queue starts
// again from a fresh read, and only who would have made that version hears why.
//
// A unit is what commits together: changes of several documents, reads that must still hold, writes
// that others join. It stands with a ticket in the write queue of each of its documents, in the
// same order in all of them as any other unit. A write queue whose front is a ticket stands still;
// when all tickets of a unit are at the front, its round runs, which holds all their write queues,
// and takes the entries right after them along. So n transfers through one hot account share a
// commit, nobody is overtaken, and no two wait for each other. A round's answers, commit and start
// anew are those of one document; a unit's writes are decided together or refused together.
//
// write_queue.h has the queues, decision.h decides a round of writes, commit_plan.h plans its
// batch; write_path.cc runs them and ends the rounds.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/base/executor.h"
#include "schemas/base/names.h"
#include "schemas/base/waiter.h"
#include "schemas/document/content.h"
#include "schemas/document/filter.h"
#include "schemas/store/joined_plan.h"
#include "schemas/store/store.h"
#include "schemas/versioning/collections.h"
#include "schemas/versioning/newer.h"
#include "schemas/versioning/read_limits.h"
#include "schemas/versioning/strategy.h"
#include "schemas/versioning/version.h"

namespace strata::versioning {

// What must hold of the current version. At most one is set.
struct Precondition {
  std::optional<int64_t> version;  // 0: never written
  std::optional<bool> exists;      // and is no deletion
  std::optional<document::Filter>
      filter;  // of the content; missing and deleted documents match none
  // Of Update and Delete: what their mutators ask (mutators.h), and answer `stale`.
  std::optional<Newer> newer;

  // A write that lost a race gets the conflict: the state that it named has passed. A filter may
  // still hold.
  bool forbids_retry() const { return version || exists; }
};

// What every write has.
struct WriteRequest {
  DocumentName name;
  ChangeInfo change;
  Precondition precondition;
  int max_attempts = 16;
  std::string request_id;  // empty: none
  std::string
      request_fingerprint;  // equal iff the arguments are equal; set by whoever sets request_id
  bool validate_only = false;
  bool keep_unchanged =
      false;  // a result that says the same as the current content makes a version all the same
  bool removal = false;  // it is there to remove something: taken a little longer by a full disk
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  // Asked before the write is decided with a result of this content; what it answers but OK refuses
  // the write. Perhaps several times, on any thread, one call at a time, and never after the
  // answer. Empty: as if OK.
  std::function<absl::Status(const document::Content& content)> admit_content;
  // Who waits for the answer; outlives the callback. Null: nobody knows.
  const Waiter* waiter = nullptr;
  // Others wait for the thread that brings the write: what takes long is done elsewhere, when it is
  // the waiter's turn.
  bool brief = false;
  std::vector<store::JoinedPlan> joined;  // needs atomic batches
};

struct WriteResult {
  DocumentName name;
  StoredVersion version;  // the new one; the current one if nothing changed
  int attempts = 0;       // commits tried
  bool changed = false;
  bool replayed = false;
  bool stale = false;  // Mutation::stale
  // Of the commit that made `version`, if this request made it, or that did what was joined.
  store::CommitPosition position = 0;
  int32_t note = 0;  // Mutation::note
};

using WriteCallback = std::function<void(absl::StatusOr<WriteResult>)>;

// What a mutator sees: the current state of the document, versions planned before in the same group
// included.
struct CurrentState {
  const StoredVersion* version = nullptr;  // null: never written; may be a deletion
  // Reads an older version (from 1 to the current one) with content.
  std::function<absl::StatusOr<StoredVersion>(int64_t version)> read;
  // Others wait for this thread: what takes long is to end with TakesLong, and is called again
  // elsewhere.
  bool brief = false;

  bool live() const { return version != nullptr && !version->deleted(); }
};

// What is to become of the document.
struct Mutation {
  VersionKind kind = VersionKind::kUpdated;
  std::optional<document::Content> content;  // absent for kDeleted only
  int32_t note = 0;  // for the answer; a unit that is remembered remembers it too
  // Of a version that takes back the one before it; else the kind tells.
  std::optional<UnixMicros> create_time = {};
  std::map<std::string, std::string> labels = {};  // besides those of the request
  // Makes no version, whatever the request says of unchanged ones; the content is as it is.
  // REQUIRES: the document was written.
  bool stale = false;
};

// Decides on the current state; may be called several times, on any thread, one call at a time. An
// error refuses the write. A pure function but for what it keeps for its own caller.
using Mutator = std::function<absl::StatusOr<Mutation>(const CurrentState& current)>;

// One write of a unit. Of the request count the name, change, precondition, keep_unchanged, removal
// and admit_content; the rest is the unit's.
struct Change {
  WriteRequest request;
  Mutator mutate;
};

// What must still hold at the commit: the document's current version. 0: it was never written.
struct ReadCheck {
  DocumentName name;
  int64_t version = 0;
};

struct UnitRequest {
  std::vector<Change> changes;  // no document twice
  std::vector<ReadCheck> reads;
  std::vector<store::JoinedPlan> joined;
  std::string joined_answer;  // what is joined, for whoever asks again; opaque here
  // Of every version that it makes; never empty. Without a fingerprint one of MakeForgottenId.
  std::string transaction_id;
  std::string request_fingerprint;  // empty: it is not remembered
  ChangeInfo change;                // of the whole, for its record
  int max_attempts = 16;
  bool validate_only = false;
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  const Waiter* waiter = nullptr;  // both as of a WriteRequest
  bool brief = false;
};

struct UnitResult {
  std::vector<WriteResult> changes;  // in the order of the request's
  std::string joined_answer;         // of the request that was the first, where it is `replayed`
  store::CommitPosition position = 0;
  int attempts = 0;
  bool replayed = false;
};

using UnitCallback = std::function<void(absl::StatusOr<UnitResult>)>;

// One version that a transaction in two phases makes.
struct SlotRequest {
  DocumentName name;
  int64_t incarnation = 0;
  int64_t version = 0;  // that is to be made
  // What becomes of the version before it; an error ends the call with it.
  Mutator mutate;
  ChangeInfo change;
  std::string transaction_id;
  VersionMark mark = VersionMark::kApplied;
  bool at_length = false;  // the caller's thread may wait for reads
  // Others wait for the thread that decides it: what takes long ends with TakesLong.
  bool brief = false;
};

// Whether this call filled the slot. False: it was filled before or is not the next one, or the
// collection is gone, or another filled it now; nothing is written then.
using SlotCallback = std::function<void(absl::StatusOr<bool>)>;

// Brings the transaction to its end, so that its versions are decided.
using Settle =
    std::function<void(const std::string& transaction_id, std::function<void(absl::Status)> done)>;

struct WriteOptions {
  const StrategyEntry* default_strategy = FindStrategy(kDefaultStrategy);
  bool create_collections = true;  // a write to an unknown collection makes it
  bool combining = true;           // several versions a batch, where the engine can
  int group_versions_max = 128;
  size_t group_bytes_max = size_t{8} << 20;
  // Of the documents of one unit, as they are stored and as they are to be: so that no request has
  // the server hold more.
  size_t unit_bytes_max = size_t{64} << 20;
  // With more content than that to go through, the thread that brings a commit's answer leaves the
  // answers and the next commit to the executor: about a millisecond's work.
  size_t direct_bytes_max = size_t{256} << 10;
  // On a thread that others wait for nothing is decided about documents past that, since a few
  // bytes of request may ask for seconds of work on them.
  size_t brief_document_bytes_max = kBriefDocumentBytesMax;
  std::chrono::microseconds backoff_first{500};
  std::chrono::microseconds backoff_max{50'000};
};

// How long a request id is remembered, by the lesser of two clocks' ages (age_clock.h).
inline constexpr UnixMicros kRequestIdLifetime = UnixMicros{24} * 3600 * 1'000'000;

class Decider;
class WriteQueue;
class WriteQueues;
class WantedTurns;
struct Added;
struct Round;
using WriteQueuePtr = std::shared_ptr<WriteQueue>;
using WriteQueuePtrs = absl::InlinedVector<WriteQueuePtr, 1>;

// Thread-safe. Keep it in a shared_ptr: work in flight holds it.
class WritePath : public std::enable_shared_from_this<WritePath> {
 public:
  WritePath(store::Store& store, std::shared_ptr<Collections> collections, const Clock& clock,
            Entropy& entropy, Executor& executor, WriteOptions options);
  ~WritePath();

  // Writes one version of a document, or nothing, and calls `done` once, perhaps before it returns.
  // VERSION_CONFLICT, FILTER_NOT_MATCHED, RETRIES_EXHAUSTED, REQUEST_ID_REUSED,
  // COLLECTION_NOT_FOUND, COLLECTION_LIMIT, LAYOUT_LIMIT, DEADLINE_EXCEEDED (no write starts after
  // it, nor does the engine begin one that it was handed before), OUTCOME_UNKNOWN,
  // STORE_UNAVAILABLE, OVERLOADED, DISK_FULL, RECORD_CORRUPT, and whatever `mutator` answers.
  void Modify(WriteRequest request, Mutator mutator, WriteCallback done);

  // Does all that the unit asks for in one commit, or nothing, and calls `done` once, perhaps
  // before it returns. What a write is refused with, with the metadata `index` (of the change or
  // the read) and `field` ("writes[2].precondition", "reads[0].version"). A unit whose fingerprint
  // is given is done once for its transaction id; REQUEST_ID_REUSED for another one under that id.
  // UNSUPPORTED_BY_ENGINE without atomic batches, but for one change alone that is not remembered.
  // REQUIRES: the names are valid.
  void Commit(UnitRequest request, UnitCallback done);

  // Makes one version, in no write queue: whoever settles a transaction may be at the front of one.
  // Never retries. OUTCOME_UNKNOWN, STORE_UNAVAILABLE, OVERLOADED, DISK_FULL, LAYOUT_LIMIT,
  // RECORD_CORRUPT, and what the mutator answers.
  void TakeSlot(SlotRequest request, SlotCallback done);

  // Who settles transactions whose undecided versions writers meet. Called once, before any write.
  void SettleWith(Settle settle) { settle_ = std::move(settle); }

 private:
  using RoundPtr = std::shared_ptr<Round>;
  using Turn = std::atomic<bool>;  // set by the first of two that pass

  // How long the first round may take; all others are brief, so that each that is not waits for its
  // turn.
  enum class Effort : uint8_t { kBrief, kAtLength };
  void Run(WriteQueuePtrs queues, Effort effort);
  void RunOn(WriteQueuePtrs queues, Effort effort);
  RoundPtr TakeRound(const WriteQueuePtr& queue, Effort effort, WriteQueuePtrs& to_run);
  bool EndRound(const RoundPtr& round);
  void Begin(Added added, Effort effort);
  void DecideElsewhere(Round& round);
  WriteQueuePtrs AskForTurns(const WantedTurns& wanted);
  void PutBack(Round& round);
  bool SettleUndecided(const RoundPtr& round);
  bool CommitPlanned(const RoundPtr& round);
  bool Commit(const RoundPtr& round, store::WriteBatch batch);
  bool CommitPlan(const RoundPtr& round);
  bool PrepareCollection(const RoundPtr& round, size_t document);
  bool DrawCollections(const RoundPtr& round);
  bool EndDrawing(const RoundPtr& round, const absl::StatusOr<Collections::Allocated>& drawn);
  template <typename End>
  void Continue(const RoundPtr& round, Turn& turn, End end);
  bool IsMuchWork(const Round& round) const;
  void EndCommitted(Round& round, store::CommitPosition position);
  void EndLost(Round& round, std::optional<size_t> refused);
  void EndUnfit(Round& round, const absl::Status& failure);
  void EndFailed(Round& round, const absl::Status& failure);
  void FillSlot(const std::shared_ptr<SlotRequest>& slot, SlotCallback done);
  bool CollectionUnchanged(const Collection& planned);
  std::chrono::microseconds Backoff(int attempts);

  store::Store& store_;
  const store::Capabilities capabilities_;
  std::shared_ptr<Collections> collections_;
  Entropy& entropy_;
  Executor& executor_;
  const WriteOptions options_;
  Settle settle_;
  const std::unique_ptr<WriteQueues> queues_;
  const std::unique_ptr<Decider> decider_;
};

}  // namespace strata::versioning
