// The store port: what the strategies need from a document database, no more. Read this header
// first.
//
// The weakest engine sets the contract: atomic, durable, conditional writes of one record;
// linearizable reads of one record; range scans that may be stale. Whatever an engine offers beyond
// is a capability, and the code above the port is correct without it.
// tests/conformance/store_conformance_test.cc is this header's specification.
//
// All classes here are thread-safe unless they say otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/store/record.h"
#include "schemas/store/write_batch.h"

namespace strata::store {

class CooperativeCommitter;

struct Capabilities {
  bool atomic_batches = false;  // a batch is applied whole or not at all
  bool fresh_scans = false;     // a scan sees every write acknowledged before it began
  bool snapshots = false;       // Snapshot() is one moment of the store
  bool commit_positions =
      false;  // commits are numbered, records carry the number, the ledger is kept
  bool blocking_reads =
      false;  // reads may wait for a network or a lock: keep them off an event loop
};

// A walk over the keys of one range in one direction. Not thread-safe; must not outlive its reader.
//
//   for (auto cursor = reader.Scan(keyspace, range); cursor->Valid(); cursor->Next()) …
//   check cursor->status()
class Cursor {
 public:
  virtual ~Cursor() = default;

  virtual bool Valid() const = 0;
  // REQUIRES: Valid(). The views live until the cursor moves.
  virtual std::string_view key() const = 0;
  virtual std::string_view value() const = 0;
  virtual Stamp stamp() const = 0;
  virtual CommitPosition position() const = 0;
  virtual void Next() = 0;
  // Moves to the first key at or after `key` in the cursor's direction (the greatest key <= `key`
  // when reverse), inside the range. Cheap, in both senses of moving; also after the end was
  // reached.
  virtual void Seek(std::string_view key) = 0;
  // Why the walk ended: OK at the range's end; RECORD_CORRUPT, STORE_UNAVAILABLE.
  virtual absl::Status status() const = 0;
};

struct Range {
  std::string begin;     // inclusive
  std::string end;       // exclusive; empty: no upper bound
  bool reverse = false;  // from the greatest key down
};

class Reader {
 public:
  virtual ~Reader() = default;

  // The record under `key`, or nothing. Linearizable (a snapshot: as of its moment); returns only
  // what is durable. RECORD_CORRUPT, STORE_UNAVAILABLE.
  virtual absl::StatusOr<std::optional<Record>> Get(Keyspace keyspace,
                                                    std::string_view key) const = 0;

  // The records under `keys`, of any keyspaces, in their order: as Get would answer one after the
  // other in that order, so also each with its own status. An engine may read them in one go; the
  // default asks Get for each.
  virtual std::vector<absl::StatusOr<std::optional<Record>>> GetMany(
      std::span<const RecordKey> keys) const;

  // A hint: these records will be read next, in any order. What can be fetched meanwhile is.
  virtual void Prefetch(std::span<const RecordKey> /*keys*/) const {}

  // A cursor on the range's first key in its direction. Each record is one that was stored; without
  // `fresh_scans` it, or its absence, may be an old state.
  virtual std::unique_ptr<Cursor> Scan(Keyspace keyspace, const Range& range) const = 0;
};

struct CommitResult {
  // OK: decided, see `committed`. OUTCOME_UNKNOWN: it may or may not be stored, now or later. Any
  // other: nothing of the batch was written (STORE_UNAVAILABLE; OVERLOADED; DISK_FULL; LAYOUT_LIMIT
  // for a record the engine cannot hold; DEADLINE_EXCEEDED if the batch's deadline had passed
  // before the engine began with it, and never else).
  absl::Status status;
  // The commit point was applied (or skipped by its `ensure`); false with OK: a guard failed before
  // it, the batch lost a race.
  bool committed = false;
  // How many writes, from the first, were applied or skipped by their `ensure`. All or none on
  // atomic engines.
  size_t applied = 0;
  // Which write's guard failed, if the batch lost a race and the engine knows.
  std::optional<size_t> refused = {};
  CommitPosition position = 0;  // of this commit, if committed and the engine has positions
};

using CommitCallback = std::function<void(CommitResult)>;
using PositionListener = std::function<void()>;

struct RangeEstimate {
  int64_t records = 0;
  int64_t bytes = 0;  // as stored, compressed
};

class Store : public Reader {
 public:
  virtual Capabilities capabilities() const = 0;

  // OK, or why reads or writes cannot be expected to work: STORE_UNAVAILABLE; DISK_FULL if all that
  // is refused are writes, for lack of room, until there is some again. Answered from what is
  // known, never waits: a failure that nobody has met yet it does not tell.
  virtual absl::Status Ready() const = 0;

  // A view of one moment, or (without `snapshots`) of the live store. Holds resources of the
  // engine: let it go within a second or so. Must not outlive the store.
  virtual std::unique_ptr<Reader> Snapshot() const = 0;

  // Applies the writes in order, each if its guard holds against what is stored, this batch's
  // earlier writes included, and stops at the first guard that fails. With atomic batches nothing
  // is applied then. What has expired counts as absent for guards, a record that the batch itself
  // has just written too. A batch that waits in the engine beyond its deadline is dropped. When
  // `done` is called with `committed`, the batch is durable and visible.
  // Returns at once; `done` is called exactly once, on any thread (perhaps this one, before the
  // return), with no lock held; it may call Commit. Batches from one thread on one key take effect
  // in the order of their calls. REQUIRES: the batch has a write; no two writes of one batch put or
  // delete the same key; none puts into a keyspace that is append_only.
  virtual void Commit(WriteBatch batch, CommitCallback done) = 0;

  // How much a range holds, from the engine's own statistics, without reading it. May be far off
  // for small ranges.
  virtual RangeEstimate Estimate(Keyspace keyspace, const Range& range) const = 0;

  // The position of the newest commit that reads can see; before the first StartPosition(), and 0
  // without commit positions. A read that begins after it returned p sees all commits up to p; it
  // may be older than a read's by the moment between a commit's becoming visible and its answer.
  virtual CommitPosition LastPosition() const = 0;

  // Every commit of this store has a greater position than this; one that is as small or smaller,
  // but for 0, is from before what the store holds was forgotten. 0 without commit positions, and
  // where nothing is ever forgotten.
  virtual CommitPosition StartPosition() const { return 0; }

  // Has `listener` called soon after each time that LastPosition() grew, once for several at times,
  // on any thread, with no lock of the store's held; null: nobody from then on. When this returns,
  // the listener that was there before is not called any more. A listener returns soon, and commits
  // nothing and sets no listener from within the call. Without commit positions it is never called.
  virtual void OnPosition(PositionListener listener) = 0;

  // For threads that would commit between their own work (cooperative.h). Lives as long as the
  // store; null: the engine commits alone.
  virtual CooperativeCommitter* cooperative() { return nullptr; }
};

}  // namespace strata::store
