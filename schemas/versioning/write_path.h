// The only way to write a document: read the head, apply a function, plan, commit; again if another
// was faster.
//
// Where the engine's reads block, only the executor reads: neither the caller of Modify nor the
// thread that brings a commit's answer waits for it. Nor do they decide what takes long, such as
// about large documents or by many conditions: such a round goes on in the turn of any of those who
// wait for writes of the document, whichever comes first, or on the executor where one of them is
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
// write_queue.h has the queues, decision.h decides a round of writes, commit_plan.h plans its
// batch; write_path.cc runs them and ends the rounds.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/base/executor.h"
#include "schemas/base/waiter.h"
#include "schemas/document/content.h"
#include "schemas/document/filter.h"
#include "schemas/store/store.h"
#include "schemas/versioning/collections.h"
#include "schemas/versioning/names.h"
#include "schemas/versioning/read_limits.h"
#include "schemas/versioning/version.h"

namespace strata::versioning {

// What must hold of the current version. At most one is set.
struct Precondition {
  std::optional<int64_t> version;  // 0: never written
  std::optional<bool> exists;      // and is no deletion
  std::optional<document::Filter>
      filter;  // of the content; missing and deleted documents match none

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
  // Asked before the write is decided with a result whose content has so many bytes; what it
  // answers but OK refuses the write. Perhaps several times, on any thread, one call at a time, and
  // never after the answer. Empty: as if OK.
  std::function<absl::Status(size_t content_bytes)> admit_content;
  // Who waits for the answer; outlives the callback. Null: nobody knows.
  const Waiter* waiter = nullptr;
  // Others wait for the thread that brings the write: what takes long is done elsewhere, when it is
  // the waiter's turn.
  bool brief = false;
};

struct WriteResult {
  DocumentName name;
  StoredVersion version;  // the new one; the current one if nothing changed
  int attempts = 0;       // commits tried
  bool changed = false;
  bool replayed = false;
  store::CommitPosition position = 0;  // of the commit that made `version`, if this request made it
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
};

// Decides on the current state; may be called several times, on any thread, one call at a time. An
// error refuses the write. A pure function but for what it keeps for its own caller.
using Mutator = std::function<absl::StatusOr<Mutation>(const CurrentState& current)>;

struct WriteOptions {
  const StrategyEntry* default_strategy = FindStrategy(kDefaultStrategy);
  bool create_collections = true;  // a write to an unknown collection makes it
  bool combining = true;           // several versions a batch, where the engine can
  int group_versions_max = 128;
  size_t group_bytes_max = size_t{8} << 20;
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
struct Round;
struct WantedTurn;
using WriteQueuePtr = std::shared_ptr<WriteQueue>;

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

 private:
  using RoundPtr = std::shared_ptr<Round>;
  using Turn = std::atomic<bool>;  // set by the first of two that pass

  // How long the first round may take; all others are brief, so that each that is not waits for its
  // turn.
  enum class Effort : uint8_t { kBrief, kAtLength };
  void Run(const WriteQueuePtr& queue, Effort effort);
  void RunOn(const WriteQueuePtr& queue, Effort effort);
  RoundPtr TakeRound(WriteQueue& queue, Effort effort);
  bool DecideElsewhere(const WriteQueuePtr& queue, Round& round);
  bool AskForTurns(const WriteQueuePtr& queue, std::vector<WantedTurn> wanted);
  bool CommitPlanned(const WriteQueuePtr& queue, const RoundPtr& round);
  bool Commit(const WriteQueuePtr& queue, const RoundPtr& round, store::WriteBatch batch);
  bool PrepareCollection(const WriteQueuePtr& queue, const RoundPtr& round);
  template <typename End>
  void Continue(const WriteQueuePtr& queue, const RoundPtr& round, Turn& turn, End end);
  bool IsMuchWork(const WriteQueue& queue, const Round& round) const;
  void EndCommitted(WriteQueue& queue, Round& round, store::CommitPosition position);
  void EndLost(const WriteQueuePtr& queue, Round& round);
  void EndFailed(WriteQueue& queue, Round& round, const absl::Status& failure);
  bool CollectionUnchanged(const Round& round);
  std::chrono::microseconds Backoff(int attempts);

  store::Store& store_;
  const store::Capabilities capabilities_;
  std::shared_ptr<Collections> collections_;
  Entropy& entropy_;
  Executor& executor_;
  const WriteOptions options_;
  const std::unique_ptr<WriteQueues> queues_;
  const std::unique_ptr<Decider> decider_;
};

}  // namespace strata::versioning
