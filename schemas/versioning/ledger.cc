#include "schemas/versioning/ledger.h"

#include <algorithm>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/store/key_codec.h"
#include "schemas/versioning/ledger_floor.h"

namespace strata::versioning {
namespace {

using store::CommitPosition;
using store::Keyspace;

// The header of a block that stands under the right key.
std::optional<store::LedgerBlockHeader> HeaderAt(const store::Cursor& cursor) {
  std::optional<store::LedgerBlockHeader> header = store::ParseLedgerBlockHeader(cursor.value());
  if (header && store::ParseLedgerKey(cursor.key()) != header->first) return std::nullopt;
  return header;
}

std::unique_ptr<store::Cursor> ScanBackward(const store::Reader& reader) {
  return reader.Scan(Keyspace::kLedger, {.begin = "", .end = "", .reverse = true});
}

}  // namespace

absl::Status DamagedLedgerBlock(CommitPosition position) {
  return Error(ErrorReason::kRecordCorrupt, "the ledger is damaged at position " +
                                                std::to_string(position) +
                                                "; Verify gives the details")
      .With("record", "ledger block")
      .With("position", position);
}

store::LedgerEntry CollectionDeletedEntry(std::string_view collection, int64_t incarnation,
                                          UnixMicros time, const ChangeInfo& change,
                                          std::string_view request_id) {
  store::LedgerEntry entry;
  entry.kind = static_cast<uint8_t>(LedgerEvent::kCollectionDeleted);
  entry.collection = collection;
  entry.incarnation = incarnation;
  entry.time = std::max<UnixMicros>(time, 0);
  entry.actor = change.actor;
  entry.on_behalf_of = change.on_behalf_of;
  entry.reason = change.reason;
  entry.labels = change.labels;
  entry.request_id = request_id;
  return entry;
}

store::LedgerEntry MakeLedgerEntry(std::string_view collection, int64_t incarnation,
                                   std::string_view id, const VersionHeader& header) {
  store::LedgerEntry entry;
  entry.kind = static_cast<uint8_t>(header.kind);
  entry.collection = collection;
  entry.incarnation = incarnation;
  entry.id = id;
  entry.version = header.version;
  entry.time = header.commit_time;
  entry.actor = header.change.actor;
  entry.on_behalf_of = header.change.on_behalf_of;
  entry.reason = header.change.reason;
  entry.labels = header.change.labels;
  entry.request_id = header.request_id;
  entry.transaction_id = header.transaction_id;
  entry.chain = LedgerChain(header);
  return entry;
}

VersionHeader HeaderOf(const store::LedgerEntryView& entry) {
  VersionHeader header;
  header.version = entry.version;
  header.kind = static_cast<VersionKind>(entry.kind);
  header.commit_time = entry.time;
  header.change.actor = entry.actor;
  header.change.on_behalf_of = entry.on_behalf_of;
  header.change.reason = entry.reason;
  for (const auto& [name, value] : entry.labels) header.change.labels.emplace(name, value);
  header.request_id = entry.request_id;
  header.transaction_id = entry.transaction_id;
  return header;
}

std::string_view LedgerChain(const VersionHeader& header) {
  return HashBytes(header.chain_hash).substr(0, store::kLedgerChainBytes);
}

LedgerBlocks::LedgerBlocks(const store::Reader& reader, CommitPosition position) {
  store::Range range;
  if (position > 0) {
    const auto before = ScanBackward(reader);
    before->Seek(store::LedgerKey(position));
    if (before->Valid()) {
      range.begin = before->key();
    } else {
      status_ = before->status();
    }
  }
  cursor_ = reader.Scan(Keyspace::kLedger, range);
  Settle();
  if (Valid() && header_ && header_->tail.last < position) Next();
}

void LedgerBlocks::Next() {
  cursor_->Next();
  Settle();
}

void LedgerBlocks::Settle() {
  if (!Valid()) return;
  key_ = store::ParseLedgerKey(cursor_->key()).value_or(0);
  header_ = HeaderAt(*cursor_);
}

LedgerCursor::LedgerCursor(const store::Reader& reader, CommitPosition position, uint32_t index)
    : begin_(position), begin_index_(index), blocks_(reader, position) {}

bool LedgerCursor::Next() {
  while (status_.ok()) {
    if (entries_ && NextInBlock()) return true;
    if (!status_.ok()) break;
    if (entries_) blocks_.Next();
    entries_.reset();
    if (!blocks_.Valid()) {
      status_ = blocks_.status();
      break;
    }
    if (!blocks_.header()) {
      status_ = DamagedLedgerBlock(blocks_.key());
      break;
    }
    entries_.emplace(blocks_.bytes());
  }
  return false;
}

bool LedgerCursor::NextInBlock() {
  while (entries_->Next()) {
    if (std::pair(position(), index()) >= std::pair(begin_, begin_index_)) return true;
  }
  if (entries_->corrupt()) status_ = DamagedLedgerBlock(blocks_.key());
  return false;
}

absl::Status CommitEntries::Find(CommitPosition position) {
  position_ = position;
  const bool here = header_ && header_->first <= position && position <= header_->tail.last;
  if (!here) RETURN_IF_ERROR(Load(position));
  if (!header_) return absl::OkStatus();
  // Onward from the entry stood on, if it is the commit's first or before it.
  const bool ahead = entries_ && !entries_->corrupt() && stands_on_entry_ &&
                     entries_->position() <= position && entries_->index() == 0;
  if (!ahead) {
    entries_.emplace(block_);
    stands_on_entry_ = false;
  }
  return absl::OkStatus();
}

bool CommitEntries::Next() {
  if (!header_) return false;
  while (stands_on_entry_ || entries_->Next()) {
    stands_on_entry_ = entries_->position() > position_;
    if (stands_on_entry_) return false;
    if (entries_->position() == position_) return true;
  }
  return false;
}

absl::Status CommitEntries::status() const {
  if (header_ && entries_->corrupt()) return DamagedLedgerBlock(header_->first);
  return absl::OkStatus();
}

absl::Status CommitEntries::Load(CommitPosition position) {
  header_.reset();
  entries_.reset();
  stands_on_entry_ = false;
  if (cursor_ == nullptr) cursor_ = ScanBackward(reader_);
  cursor_->Seek(store::LedgerKey(position));
  if (!cursor_->Valid()) return cursor_->status();
  const std::optional<store::LedgerBlockHeader> header = HeaderAt(*cursor_);
  if (!header) return DamagedLedgerBlock(store::ParseLedgerKey(cursor_->key()).value_or(0));
  if (header->tail.last < position) return absl::OkStatus();
  header_ = header;
  block_ = cursor_->value();
  return absl::OkStatus();
}

absl::StatusOr<store::LedgerTail> ReadLedgerTail(const store::Reader& reader) {
  const auto cursor = ScanBackward(reader);
  if (!cursor->Valid()) {
    RETURN_IF_ERROR(cursor->status());
    return store::LedgerTail();
  }
  const std::optional<store::LedgerBlockHeader> header = HeaderAt(*cursor);
  if (!header) return DamagedLedgerBlock(store::ParseLedgerKey(cursor->key()).value_or(0));
  return header->tail;
}

absl::StatusOr<LedgerHead> ReadLedgerHead(const store::Reader& reader) {
  ASSIGN_OR_RETURN(const store::LedgerTail tail, ReadLedgerTail(reader));
  return LedgerHead{tail.last, tail.hash};
}

absl::StatusOr<CommitPosition> FirstPositionSince(const store::Reader& reader, UnixMicros time) {
  ASSIGN_OR_RETURN(const store::LedgerTail end, ReadLedgerTail(reader));
  ASSIGN_OR_RETURN(const LedgerFloor floor, ReadLedgerFloor(reader));
  // `latest` never falls from block to block: the first that reaches the time is looked for.
  CommitPosition low = floor.trimmed;  // blocks that end at or below do not reach it
  CommitPosition high = end.last + 1;  // blocks that begin here or above need not be looked at
  const auto cursor = reader.Scan(Keyspace::kLedger, {});
  while (high - low > 1) {
    const CommitPosition middle = low + (high - low) / 2;
    cursor->Seek(store::LedgerKey(middle));
    if (!cursor->Valid()) {
      RETURN_IF_ERROR(cursor->status());
      high = middle;
      continue;
    }
    const std::optional<store::LedgerBlockHeader> header = HeaderAt(*cursor);
    if (!header) return DamagedLedgerBlock(middle);
    if (header->tail.latest >= time || header->first >= high) {
      high = middle;
    } else {
      low = header->tail.last;
    }
  }
  return low + 1;
}

bool AllLater(const store::LedgerTail& tail, const store::LedgerTail& end, UnixMicros time) {
  return tail.latest >= time + store::kLateMicros && tail.late == end.late;
}

}  // namespace strata::versioning
