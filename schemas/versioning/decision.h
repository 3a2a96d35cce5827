// Decisions: what becomes of the writes and units that wait for documents, one after the other,
// each on what those before it leave. Internal to this folder.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/age_clock.h"
#include "schemas/base/clock.h"
#include "schemas/store/store.h"
#include "schemas/versioning/collections.h"
#include "schemas/versioning/strategy.h"
#include "schemas/versioning/transaction_record.h"
#include "schemas/versioning/version.h"
#include "schemas/versioning/write_path.h"
#include "schemas/versioning/write_queue.h"

namespace strata::versioning {

// What a round knows of one of its documents, and plans for it.
struct RoundDocument {
  absl::Status read;  // but OK: what reading it failed with
  // Null: there is none. Of a unit that makes one: what it will be, with the stamp of its
  // tombstone.
  CollectionPtr collection;
  store::DocumentKey key;
  std::optional<Head> head;
  std::vector<StoredVersion> planned;
  bool confirmed = false;  // the commit holds only if nobody has written it since

  const StoredVersion* current() const {
    if (!planned.empty()) return &planned.back();
    return head ? &head->version : nullptr;
  }
  int64_t head_version() const { return head ? head->version.header.version : 0; }
};

// The writes and units that are decided together, on one moment of the store.
struct Round {
  std::vector<Waiting> group;                       // that are not answered yet
  WriteQueuePtrs queues;                            // held; empty: of no write queue
  absl::InlinedVector<RoundDocument, 1> documents;  // one for each write queue, in their order
  std::optional<size_t> take_max;                   // what WriteQueue::LimitNextTake had said

  bool brief = false;  // others wait for the thread, until then
  std::chrono::steady_clock::time_point brief_until = std::chrono::steady_clock::time_point::max();
  ReadLimits limits;
  bool takes_long = false;   // the first entry, more than the limits let it: nothing is decided
  bool is_too_much = false;  // to be held together: nothing is decided
  std::string undecided;     // the transaction to be settled before anything is decided
  size_t undecided_document = 0;  // whose version that is

  std::unique_ptr<store::Reader> reader;
  UnixMicros forgotten = 0;  // what requests did until then is not remembered
  size_t planned_bytes = 0;
  // The earliest of those who planned: the versions come together or not at all.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  store::WriteBatch joined;  // what others write with those who planned
  // What they write, and the records of units: decided upon once in a round.
  absl::flat_hash_set<std::pair<store::Keyspace, std::string>> joined_keys;
  // Whose the writes of a batch are, from the first on.
  struct Section {
    size_t end = 0;  // index into the batch, exclusive
    static constexpr size_t kNone = SIZE_MAX;
    size_t document = kNone;      // the entries that have to do with it
    const void* entry = nullptr;  // Waiting::identity; where there is neither, they are all's
  };
  absl::InlinedVector<Section, 4> sections;
  std::vector<Section> joined_sections;  // of `joined`
  std::optional<size_t> unfit_document;  // for which the commit cannot be planned or prepared
  std::shared_ptr<CollectionRoom> room;  // of the collections that the commit makes

  bool planned() const {
    return std::any_of(group.begin(), group.end(), [](const auto& e) { return e.planned(); });
  }

  // Answers, in their order, those who have an answer that holds; the others stay.
  template <typename Holds>
  void Answer(Holds holds) {
    size_t kept = 0;
    for (Waiting& entry : group) {
      if (entry.answered() && holds(entry)) {
        Waiting::Answer(std::move(entry));
      } else {
        std::swap(group[kept++], entry);
      }
    }
    group.resize(kept);
  }
};

// DEADLINE_EXCEEDED, for a write that tried `attempts` commits.
absl::Status DeadlineExceeded(int attempts);

// Thread-safe. All that it is given must outlive it.
class Decider {
 public:
  Decider(const store::Store& store, Collections& collections, const Clock& clock, Entropy& entropy,
          const WriteOptions& options);

  // Reads the documents' heads and decides the writes and units of the round in their order. Each
  // gets an answer. One that has something to commit plans it: that answer, and all after it, hold
  // once that is committed. The last ones get none if the round is too full for them, or if what
  // they have others join touches what is planned to be written. None gets any, and none counts, if
  // the round takes long or a document is undecided.
  void Decide(Round& round);

  // Whether something failed because records of several moments were read: a collection of the
  // round was deleted after it was found, and is being swept, or a document has a newer version
  // than the one that was read. Never where there are snapshots.
  bool WasReadTooLate(const Round& round, const absl::Status& failure);

  // Reads the document and plans the one version of a slot, as the round's only one. False: the
  // slot is not empty, or it is not the next one.
  absl::StatusOr<bool> DecideSlot(Round& round, const SlotRequest& slot);

 private:
  // What a version says of the request that made it.
  struct Origin {
    const ChangeInfo& change;
    std::string_view request_id;
    std::string_view request_fingerprint;
    std::string_view transaction_id;
    VersionMark mark = VersionMark::kNone;
  };

  void MakeBrief(Round& round) const;
  void Read(Round& round);
  absl::Status ReadDocument(const DocumentName& name, Round& round, RoundDocument& document);
  // False: it has to wait for the next round.
  bool DecideEntry(Round& round, Waiting& entry);
  bool DecideWrite(Round& round, PendingWrite& write);
  bool DecideUnit(Round& round, PendingUnit& unit);
  absl::StatusOr<UnitResult> DecideParts(Round& round, PendingUnit& unit);
  void DecideChange(Round& round, PendingWrite& write, std::string_view transaction_id);
  bool IsCollectionGone(const RoundDocument& document);
  bool IsWritten(const Round& round, const RoundDocument& document);
  absl::StatusOr<bool> DecideSlotOf(Round& round, RoundDocument& document, const SlotRequest& slot);
  bool IsProven(const Round& round, const PendingUnit& unit) const;
  bool IsOutOfTime(const Round& round) const;
  void PlanUnit(Round& round, PendingUnit& unit, store::WriteBatch joined);
  static void TakeOut(Round& round, PendingUnit& unit);
  static absl::StatusOr<bool> Join(const Round& round, const std::vector<store::JoinedPlan>& plans,
                                   store::WriteBatch& batch);
  static void AddJoined(Round& round, const void* entry, store::WriteBatch joined);
  absl::StatusOr<std::optional<UnitResult>> ReplayUnit(const Round& round,
                                                       const PendingUnit& unit) const;
  absl::StatusOr<WriteResult> ReplayChange(const Round& round, const PendingWrite& write,
                                           const Participant& made) const;
  absl::Status CheckRead(const Round& round, const PendingUnit& unit, size_t index) const;
  bool Replay(Round& round, PendingWrite& write) const;
  absl::StatusOr<std::optional<StoredVersion>> FindMade(const Round& round,
                                                        const RoundDocument& document,
                                                        const WriteRequest& request) const;
  absl::Status CheckPrecondition(const Round& round, const PendingWrite& write) const;
  absl::Status CheckFilter(const Round& round, const PendingWrite& write) const;
  ReadContext ContextOf(const Round& round) const;
  // A stored one. REQUIRES: the document has a head that is not older.
  absl::StatusOr<StoredVersion> ReadVersion(const Round& round, const RoundDocument& document,
                                            int64_t version, Part part = Part::kContent) const;
  CurrentState StateOf(const Round& round, const RoundDocument& document) const;
  void PlanVersion(Round& round, PendingWrite& write, const CurrentState& current,
                   const Origin& origin, Mutation mutation);
  StoredVersion NextVersion(const StoredVersion* current, const DocumentName& name,
                            const Origin& origin, Mutation mutation);

  const store::Store& store_;
  const store::Capabilities capabilities_;
  Collections& collections_;
  const Clock& clock_;
  const AgeClock age_clock_;
  Entropy& entropy_;
  const WriteOptions& options_;
};

}  // namespace strata::versioning
