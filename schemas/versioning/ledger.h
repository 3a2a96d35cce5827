// The ledger: who changed what and why, in the order of commits. The only reader of the blocks that
// engines keep it in (schemas/store/ledger_block.h).
//
// Needs an engine with commit positions. Nothing here is thread-safe; readers must outlive what
// reads through them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/store/ledger_block.h"
#include "schemas/store/store.h"
#include "schemas/versioning/version.h"

namespace strata::versioning {

// What an entry tells of that is no version: LedgerEntry::kind beside the VersionKinds. The numbers
// are part of every stored format.
enum class LedgerEvent : uint8_t {
  kCollectionDeleted = 16,  // the collection, with all that it held; no id and no version
};

inline bool IsVersion(const store::LedgerEntryView& entry) {
  return entry.kind <= static_cast<uint8_t>(VersionKind::kRestored);
}

store::LedgerEntry CollectionDeletedEntry(std::string_view collection, int64_t incarnation,
                                          UnixMicros time, const ChangeInfo& change,
                                          std::string_view request_id);

// The entry of one version, and back (REQUIRES: IsVersion): without create time, salt, content hash
// and fingerprint, and of the chain hash the entry has the beginning only (LedgerEntryView::chain).
store::LedgerEntry MakeLedgerEntry(std::string_view collection, int64_t incarnation,
                                   std::string_view id, const VersionHeader& header);
VersionHeader HeaderOf(const store::LedgerEntryView& entry);

// The beginning of a version's chain hash, as its entry has it.
std::string_view LedgerChain(const VersionHeader& header);

// RECORD_CORRUPT about the block at `position`.
absl::Status DamagedLedgerBlock(store::CommitPosition position);

// What an auditor writes down: all entries of commits up to `position` are proven by `hash`.
struct LedgerHead {
  store::CommitPosition position = 0;  // 0: the ledger is empty
  Hash hash = store::kNoHash;

  friend bool operator==(const LedgerHead&, const LedgerHead&) = default;
};

// Walks blocks upward.
//
//   for (LedgerBlocks blocks(reader, 0); blocks.Valid(); blocks.Next()) …
//   check blocks.status()
class LedgerBlocks {
 public:
  // Begins with the block that holds `position`, or the first one after it.
  LedgerBlocks(const store::Reader& reader, store::CommitPosition position);

  bool Valid() const { return status_.ok() && cursor_->Valid(); }
  void Next();
  // Why the walk ended: OK at the ledger's end.
  absl::Status status() const { return status_.ok() ? cursor_->status() : status_; }

  // Of the block stood on; the bytes live until Next. No header: it is damaged.
  std::string_view bytes() const { return cursor_->value(); }
  const std::optional<store::LedgerBlockHeader>& header() const { return header_; }
  store::CommitPosition key() const { return key_; }

 private:
  void Settle();

  absl::Status status_;
  std::unique_ptr<store::Cursor> cursor_;
  store::CommitPosition key_ = 0;
  std::optional<store::LedgerBlockHeader> header_;
};

// Walks entries upward.
//
//   LedgerCursor cursor(reader, position, index);
//   while (cursor.Next()) …
//   check cursor.status()
class LedgerCursor {
 public:
  // Stands in front of the entry `index` of the commit at `position`, or of the first one after it.
  LedgerCursor(const store::Reader& reader, store::CommitPosition position, uint32_t index);

  bool Next();
  // RECORD_CORRUPT, STORE_UNAVAILABLE.
  absl::Status status() const { return status_; }

  // Of the entry moved to; the views live until Next.
  const store::LedgerEntryView& entry() const { return entries_->entry(); }
  store::CommitPosition position() const { return entries_->position(); }
  uint32_t index() const { return entries_->index(); }
  // Where the ledger ends with this entry's block.
  const store::LedgerTail& tail() const { return blocks_.header()->tail; }

 private:
  bool NextInBlock();

  const store::CommitPosition begin_;
  const uint32_t begin_index_;
  LedgerBlocks blocks_;
  std::optional<store::LedgerBlockReader> entries_;
  absl::Status status_;
};

// Reads the entries of single commits. What is asked for in the order of positions is read once.
//
//   RETURN_IF_ERROR(entries.Find(position));
//   while (entries.Next()) …
class CommitEntries {
 public:
  explicit CommitEntries(const store::Reader& reader) : reader_(reader) {}

  // Stands in front of the entries of the commit at `position`, of which there may be none.
  // RECORD_CORRUPT, STORE_UNAVAILABLE.
  absl::Status Find(store::CommitPosition position);
  // False after the commit's last entry.
  bool Next();
  // RECORD_CORRUPT if the entries ended at damage.
  absl::Status status() const;

  const store::LedgerEntryView& entry() const { return entries_->entry(); }
  uint32_t index() const { return entries_->index(); }

 private:
  absl::Status Load(store::CommitPosition position);

  const store::Reader& reader_;
  std::unique_ptr<store::Cursor> cursor_;
  std::string block_;
  std::optional<store::LedgerBlockHeader> header_;  // none: no block is at hand
  std::optional<store::LedgerBlockReader> entries_;
  store::CommitPosition position_ = 0;
  bool stands_on_entry_ = false;  // which nobody has taken yet
};

// Where the ledger ends.
absl::StatusOr<store::LedgerTail> ReadLedgerTail(const store::Reader& reader);
absl::StatusOr<LedgerHead> ReadLedgerHead(const store::Reader& reader);

// A position below which no entry has a time of `time` or later: where a walk for such entries may
// begin. A few seeks, however long the ledger is.
absl::StatusOr<store::CommitPosition> FirstPositionSince(const store::Reader& reader,
                                                         UnixMicros time);

// Whether no entry after a block that ends with `tail` has a time before `time`, as far as blocks
// tell; `end` is the ledger's. Times follow positions but for what commits overtake each other and
// a clock is set back, of which blocks keep count.
bool AllLater(const store::LedgerTail& tail, const store::LedgerTail& end, UnixMicros time);

}  // namespace strata::versioning
