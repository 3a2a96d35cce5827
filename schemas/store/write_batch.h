// The unit of writing: ordered, guarded record writes with one commit point.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schemas/base/clock.h"
#include "schemas/store/ledger_block.h"
#include "schemas/store/record.h"

namespace strata::store {

// The condition on one write.
enum class Guard : uint8_t {
  kAbsent,  // no record under the key
  kStamp,   // the record's stamp is `stamp`
  kEnsure,  // insert if absent; if present, skip this write and go on
  kAny,     // none
};

enum class WriteKind : uint8_t {
  kPut,
  kDelete,  // of what is not there: no error under kAny
  kCheck,   // writes nothing; the guard (kAbsent or kStamp) must hold. Atomic engines only.
};

struct Write {
  WriteKind kind = WriteKind::kPut;
  Guard guard = Guard::kAny;
  Keyspace keyspace = Keyspace::kMeta;
  std::string key;
  std::string value;  // kPut: a BSON document
  Stamp stamp = 0;    // kStamp: what was read
  // From this time on, by the engine's AgeClock, guards count the record as absent and the engine
  // drops it when it likes; until then reads may still see it. 0: never, and nothing else where the
  // keyspace does not expire (keyspaces.def).
  UnixMicros expire_time = 0;
};

class WriteBatch {
 public:
  // Each returns the write, so that rarer members can be set.
  Write& Insert(Keyspace keyspace, std::string key, std::string value) {
    return Add(WriteKind::kPut, Guard::kAbsent, keyspace, std::move(key), std::move(value), 0);
  }
  Write& Replace(Keyspace keyspace, std::string key, std::string value, Stamp stamp) {
    return Add(WriteKind::kPut, Guard::kStamp, keyspace, std::move(key), std::move(value), stamp);
  }
  Write& Ensure(Keyspace keyspace, std::string key, std::string value) {
    return Add(WriteKind::kPut, Guard::kEnsure, keyspace, std::move(key), std::move(value), 0);
  }
  Write& Put(Keyspace keyspace, std::string key, std::string value) {
    return Add(WriteKind::kPut, Guard::kAny, keyspace, std::move(key), std::move(value), 0);
  }
  Write& Delete(Keyspace keyspace, std::string key) {
    return Add(WriteKind::kDelete, Guard::kAny, keyspace, std::move(key), "", 0);
  }
  Write& DeleteIf(Keyspace keyspace, std::string key, Stamp stamp) {
    return Add(WriteKind::kDelete, Guard::kStamp, keyspace, std::move(key), "", stamp);
  }
  Write& Check(Keyspace keyspace, std::string key, Stamp stamp) {
    return Add(WriteKind::kCheck, Guard::kStamp, keyspace, std::move(key), "", stamp);
  }

  Write& CheckAbsent(Keyspace keyspace, std::string key) {
    return Add(WriteKind::kCheck, Guard::kAbsent, keyspace, std::move(key), "", 0);
  }

  // Adds the writes of another batch after this one's, its ledger entries and its deadline. The
  // commit point stays this one's, if that is marked; whether it is a removal is this one's too.
  void Append(WriteBatch other) {
    writes_.insert(writes_.end(), std::make_move_iterator(other.writes_.begin()),
                   std::make_move_iterator(other.writes_.end()));
    ledger_.insert(ledger_.end(), std::make_move_iterator(other.ledger_.begin()),
                   std::make_move_iterator(other.ledger_.end()));
    deadline_ = std::min(deadline_, other.deadline_);
    background_ = background_ || other.background_;
  }

  // The write added last is the commit point: the batch is committed iff it was applied. A batch
  // whose commit point is not marked commits with its last write.
  void MarkCommitPoint() { commit_point_ = writes_.size() - 1; }

  // Adds an entry to what the ledger tells of this commit. An engine with commit positions keeps
  // it, in the order of positions and of these calls, if and only if the batch commits
  // (ledger_block.h); others drop it.
  void AppendToLedger(LedgerEntry entry) { ledger_.push_back(std::move(entry)); }

  // From this moment on, by the engine's clock (steady), the engine does not begin with the batch:
  // one that waited so long is dropped, DEADLINE_EXCEEDED, and nothing was written. What was begun
  // before is finished, however long that takes. Unset: never. None: no call waits for it.
  void set_deadline(std::optional<std::chrono::steady_clock::time_point> deadline) {
    if (deadline) {
      deadline_ = *deadline;
    } else {
      background_ = true;
    }
  }
  std::chrono::steady_clock::time_point deadline() const { return deadline_; }

  // No call waits for it, or it is right at any time: so it needs no deadline. A store in the tests
  // finds batches that have neither this mark nor a deadline.
  void MarkAsBackground() { background_ = true; }
  bool background() const { return background_; }

  // What is removed here is worth more room than the batch takes: while an engine refuses writes
  // because its disk is nearly full, it still takes this one, as long as it can.
  void MarkAsRemoval() { removal_ = true; }
  bool removal() const { return removal_; }

  const std::vector<Write>& writes() const { return writes_; }
  const std::vector<LedgerEntry>& ledger() const { return ledger_; }
  size_t commit_point() const {
    return commit_point_ == kUnmarked ? writes_.size() - 1 : commit_point_;
  }

 private:
  static constexpr size_t kUnmarked = static_cast<size_t>(-1);
  // One version's: a check of the collection, the version before it, a request's, the head; and of
  // a lease that fences it a check of its owner and its place.
  static constexpr size_t kUsualWrites = 6;

  Write& Add(WriteKind kind, Guard guard, Keyspace keyspace, std::string key, std::string value,
             Stamp stamp) {
    if (writes_.empty()) writes_.reserve(kUsualWrites);
    return writes_.emplace_back(
        Write{kind, guard, keyspace, std::move(key), std::move(value), stamp, 0});
  }

  std::vector<Write> writes_;
  std::vector<LedgerEntry> ledger_;
  size_t commit_point_ = kUnmarked;
  bool removal_ = false;
  bool background_ = false;
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::time_point::max();
};

}  // namespace strata::store
