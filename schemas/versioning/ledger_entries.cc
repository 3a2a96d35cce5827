#include "schemas/versioning/ledger_entries.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <string>
#include <utility>

#include "schemas/base/status_macros.h"
#include "schemas/store/key_codec.h"
#include "schemas/versioning/ledger.h"

namespace strata::versioning {
namespace {

using store::CommitPosition;
using store::LedgerEntryView;

class Upward final : public LedgerEntries {
 public:
  Upward(const store::Reader& reader, CommitPosition position, uint32_t index,
         std::optional<UnixMicros> end_time, const store::LedgerTail& end)
      : cursor_(reader, position, index), end_time_(end_time), end_(end) {}

  bool Next() override { return cursor_.Next() && !IsAllTooLate(); }
  absl::Status status() const override { return cursor_.status(); }
  const LedgerEntryView& entry() const override { return cursor_.entry(); }
  CommitPosition position() const override { return cursor_.position(); }
  uint32_t index() const override { return cursor_.index(); }

 private:
  // A block at a time: of each the ledger knows whether all that follows is too late.
  bool IsAllTooLate() {
    const store::LedgerTail& block = cursor_.tail();
    if (end_time_ && before_ && before_->last != block.last &&
        AllLater(*before_, end_, *end_time_)) {
      return true;
    }
    before_ = block;
    return false;
  }

  LedgerCursor cursor_;
  const std::optional<UnixMicros> end_time_;
  const store::LedgerTail end_;              // the ledger's
  std::optional<store::LedgerTail> before_;  // with the block of the entry before
};

// Blocks are read upward, so it takes one apart as a whole.
class Downward final : public LedgerEntries {
 public:
  Downward(const store::Reader& reader, CommitPosition position, uint32_t index,
           CommitPosition lowest)
      : begin_(position),
        begin_index_(index),
        lowest_(lowest),
        blocks_(reader.Scan(store::Keyspace::kLedger, {.begin = "", .end = "", .reverse = true})) {
    blocks_->Seek(store::LedgerKey(position));
  }

  bool Next() override {
    if (!entries_.empty()) entries_.pop_back();
    while (entries_.empty()) {
      if (!status_.ok() || at_end_ || !TakeApart()) return false;
    }
    return true;
  }
  absl::Status status() const override { return status_; }
  const LedgerEntryView& entry() const override { return entries_.back().view; }
  CommitPosition position() const override { return entries_.back().position; }
  uint32_t index() const override { return entries_.back().index; }

 private:
  struct Entry {
    LedgerEntryView view;
    CommitPosition position = 0;
    uint32_t index = 0;
    // Of these the block's reader keeps only what it stands on.
    std::string request_id;
    std::string transaction_id;
  };

  // The next block; false: there is none, or it is damaged.
  bool TakeApart() {
    if (!blocks_->Valid()) {
      status_ = blocks_->status();
      at_end_ = true;
      return false;
    }
    const std::optional<store::CommitPosition> key = store::ParseLedgerKey(blocks_->key());
    const std::optional<store::LedgerBlockHeader> header =
        store::ParseLedgerBlockHeader(blocks_->value());
    if (!key || !header || header->first != *key) {
      status_ = DamagedLedgerBlock(key.value_or(0));
      return false;
    }
    block_ = blocks_->value();
    // What lies below is not asked for; of this block the upper part may be.
    at_end_ = header->first <= lowest_;
    blocks_->Next();
    store::LedgerBlockReader reader(block_);
    while (reader.Next()) {
      if (reader.position() < lowest_) continue;
      if (std::pair(reader.position(), reader.index()) > std::pair(begin_, begin_index_)) break;
      Keep(reader);
    }
    if (reader.corrupt()) {
      entries_.clear();
      status_ = DamagedLedgerBlock(*key);
      return false;
    }
    return true;
  }

  void Keep(const store::LedgerBlockReader& reader) {
    Entry& entry = entries_.emplace_back();
    entry.view = reader.entry();
    entry.position = reader.position();
    entry.index = reader.index();
    entry.request_id = entry.view.request_id;
    entry.transaction_id = entry.view.transaction_id;
    entry.view.request_id = entry.request_id;
    entry.view.transaction_id = entry.transaction_id;
  }

  const CommitPosition begin_;
  const uint32_t begin_index_;
  const CommitPosition lowest_;
  std::unique_ptr<store::Cursor> blocks_;
  bool at_end_ = false;
  std::string block_;          // that the entries view
  std::deque<Entry> entries_;  // what is left of it; the last is stood on. A deque moves none
  absl::Status status_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LedgerEntries>> LedgerUpward(const store::Reader& reader,
                                                            CommitPosition position, uint32_t index,
                                                            const LedgerSpan& span) {
  if (span.start_time) {
    ASSIGN_OR_RETURN(const CommitPosition first, FirstPositionSince(reader, *span.start_time));
    if (first > position) {
      position = first;
      index = 0;
    }
  }
  ASSIGN_OR_RETURN(const store::LedgerTail end, ReadLedgerTail(reader));
  return std::make_unique<Upward>(reader, position, index, span.end_time, end);
}

absl::StatusOr<std::unique_ptr<LedgerEntries>> LedgerDownward(const store::Reader& reader,
                                                              CommitPosition position,
                                                              uint32_t index, CommitPosition lowest,
                                                              const LedgerSpan& span) {
  ASSIGN_OR_RETURN(const store::LedgerTail end, ReadLedgerTail(reader));
  if (position == 0) {
    position = std::numeric_limits<CommitPosition>::max();
    index = std::numeric_limits<uint32_t>::max();
  }
  if (span.end_time) {
    // All blocks behind the first that AllLater holds for are too late.
    ASSIGN_OR_RETURN(const CommitPosition first,
                     FirstPositionSince(reader, *span.end_time + store::kLateMicros));
    const LedgerBlocks block(reader, first);
    RETURN_IF_ERROR(block.status());
    if (block.Valid() && block.header() && AllLater(block.header()->tail, end, *span.end_time) &&
        block.header()->tail.last < position) {
      position = block.header()->tail.last;
      index = std::numeric_limits<uint32_t>::max();
    }
  }
  if (span.start_time) {
    ASSIGN_OR_RETURN(const CommitPosition first, FirstPositionSince(reader, *span.start_time));
    lowest = std::max(lowest, first);
  }
  return std::make_unique<Downward>(reader, position, index, lowest);
}

}  // namespace strata::versioning
