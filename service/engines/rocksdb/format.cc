#include "service/engines/rocksdb/format.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"
#include "schemas/store/key_codec.h"
#include "service/engines/rocksdb/driver.h"
#include "service/engines/rocksdb/record_format.h"
#include "service/engines/rocksdb/rocksdb_reader.h"
#include "service/engines/rocksdb/tuning.h"
#include "service/observability/log.h"

namespace strata::engines::rocks {
namespace {

using store::Keyspace;

// Of format 2: position and index in the commit, 8 and 4 bytes, big-endian.
constexpr size_t kEntryKeyBytes = 12;

std::optional<store::CommitPosition> EntryPosition(std::string_view key) {
  if (key.size() != kEntryKeyBytes) return std::nullopt;
  return store::ParseLedgerKey(key.substr(0, kEntryKeyBytes - 4));
}

// What the migration reads besides the ledger.
class DatabaseReader final : public store::Reader {
 public:
  DatabaseReader(rocksdb::DB& database, const KeyspaceHandles& keyspaces)
      : database_(database), keyspaces_(keyspaces) {}

  absl::StatusOr<std::optional<store::Record>> Get(Keyspace keyspace,
                                                   std::string_view key) const override {
    return GetRecord(database_, keyspaces_[keyspace], nullptr, key);
  }
  std::unique_ptr<store::Cursor> Scan(Keyspace keyspace, const store::Range& range) const override {
    return ScanRecords(database_, keyspaces_[keyspace], nullptr, range);
  }

 private:
  rocksdb::DB& database_;
  const KeyspaceHandles& keyspaces_;
};

// Turns the ledger of format 2 into blocks, from its beginning on. A block and the removal of the
// entries that it holds are one write, so that at any moment every entry is there once, the blocks
// in front.
class LedgerMigration {
 public:
  LedgerMigration(rocksdb::DB& database, const KeyspaceHandles& keyspaces,
                  const LedgerEntryConverter& convert)
      : database_(database),
        ledger_(keyspaces[Keyspace::kLedger]),
        reader_(database, keyspaces),
        convert_(convert) {}

  absl::Status Run() {
    const auto cursor = ScanRecords(database_, ledger_, nullptr, {});
    while (cursor->Valid() && cursor->key().size() != kEntryKeyBytes) {
      const auto header = store::ParseLedgerBlockHeader(cursor->value());
      if (!header) return UnreadableRecord();
      tail_ = header->tail;
      cursor->Next();
    }
    while (cursor->Valid()) {
      RETURN_IF_ERROR(TakeCommit(*cursor));
      if (block_->full()) RETURN_IF_ERROR(EndBlock());
    }
    RETURN_IF_ERROR(cursor->status());
    if (block_) RETURN_IF_ERROR(EndBlock());
    // What was removed would be in the way of every walk from the beginning.
    const rocksdb::Status compacted =
        database_.CompactRange(rocksdb::CompactRangeOptions(), ledger_, nullptr, nullptr);
    return compacted.ok() ? absl::OkStatus() : Translate(compacted, "migrating the ledger");
  }

  int64_t entries() const { return entries_; }

 private:
  absl::Status TakeCommit(store::Cursor& cursor) {
    const std::optional<store::CommitPosition> position = EntryPosition(cursor.key());
    if (!position) return UnreadableRecord();
    std::vector<store::LedgerEntry>& entries = commits_.emplace_back();
    for (; cursor.Valid() && EntryPosition(cursor.key()) == position; cursor.Next()) {
      ASSIGN_OR_RETURN(store::LedgerEntry entry, convert_(reader_, cursor.value()));
      entries.push_back(std::move(entry));
      removals_.Delete(ledger_, ToSlice(cursor.key()));
      ++entries_;
    }
    if (!block_) block_.emplace(tail_);
    block_->Add(*position, entries);
    last_ = *position;
    return absl::OkStatus();
  }

  absl::Status EndBlock() {
    const store::LedgerBlockWriter::Block block = block_->Finish(last_);
    block_.reset();
    commits_.clear();
    removals_.Put(ledger_, store::LedgerKey(block.first),
                  RecordHeader(block.tail.last, 0) + block.value);
    // Not synced: the log keeps the order, and the format is written after all of them.
    const rocksdb::Status status = database_.Write(rocksdb::WriteOptions(), &removals_);
    removals_.Clear();
    tail_ = block.tail;
    return status.ok() ? absl::OkStatus() : Translate(status, "migrating the ledger");
  }

  rocksdb::DB& database_;
  rocksdb::ColumnFamilyHandle* const ledger_;
  const DatabaseReader reader_;
  const LedgerEntryConverter& convert_;
  store::LedgerTail tail_;
  store::CommitPosition last_ = 0;
  std::optional<store::LedgerBlockWriter> block_;
  std::vector<std::vector<store::LedgerEntry>> commits_;  // those of the block, which looks at them
  rocksdb::WriteBatch removals_;
  int64_t entries_ = 0;
};

}  // namespace

absl::Status UnknownFormat(std::string_view what) {
  return Error(ErrorReason::kStoreUnavailable,
               "The data directory was written by another version of the store: it has " +
                   std::string(what) + ". Nothing was changed.");
}

absl::StatusOr<Format> Format::Parse(std::string_view text) {
  Format format;
  const std::vector<std::string> words = absl::StrSplit(ToAbsl(text), ' ');
  if (!absl::SimpleAtoi(words.front(), &format.number) || format.number < 1) {
    return UnknownFormat("a format that cannot be read");
  }
  format.features.insert(words.begin() + 1, words.end());
  return format;
}

std::string Format::ToText() const {
  std::string text = std::to_string(number);
  for (const std::string& feature : features) text += " " + feature;
  return text;
}

absl::Status CheckReadable(const Format& format) {
  constexpr int kOldest = 2;
  if (format.number < kOldest || format.number > kFormatNumber) {
    return UnknownFormat("format " + std::to_string(format.number) + ", and this one reads " +
                         std::to_string(kOldest) + " to " + std::to_string(kFormatNumber));
  }
  for (const std::string& feature : format.features) {
    if (feature == kPrincipalsFeature || feature == kReadyAtOnceFeature) continue;
    return UnknownFormat("the feature " + feature + ", which this one does not know");
  }
  return absl::OkStatus();
}

absl::Status Migrate(rocksdb::DB& database, const KeyspaceHandles& keyspaces, const Format& from,
                     const LedgerEntryConverter& convert) {
  if (from.number != 0 && from.number < kFormatNumber) {
    if (convert == nullptr) {
      return UnknownFormat("format " + std::to_string(from.number) +
                           ", and nothing is at hand that reads its ledger");
    }
    LedgerMigration migration(database, keyspaces, convert);
    RETURN_IF_ERROR(migration.Run());
    observability::Log(observability::LogLevel::kInfo, "migrated the data directory",
                       {{"from_format", from.number},
                        {"to_format", kFormatNumber},
                        {"ledger_entries", migration.entries()}});
  }
  Format format = from;
  format.number = kFormatNumber;
  return WriteFormat(database, format);
}

absl::Status WriteFormat(rocksdb::DB& database, const Format& format) {
  const rocksdb::Status status = database.Put(DurableWrite(), ToSlice(kFormatKey), format.ToText());
  return status.ok() ? absl::OkStatus() : Translate(status, "writing the database's format");
}

absl::StatusOr<store::LedgerTail> ReadLedgerTail(rocksdb::DB& database,
                                                 rocksdb::ColumnFamilyHandle* ledger) {
  const auto cursor =
      ScanRecords(database, ledger, nullptr, {.begin = "", .end = "", .reverse = true});
  RETURN_IF_ERROR(cursor->status());
  store::LedgerTail tail;
  if (!cursor->Valid()) return tail;
  if (const auto position = EntryPosition(cursor->key())) {
    tail.last = *position;  // of format 2: how it goes on is not asked before it is migrated
  } else if (const auto header = store::ParseLedgerBlockHeader(cursor->value());
             header && store::ParseLedgerKey(cursor->key()) == header->first) {
    tail = header->tail;
  }
  if (tail.last == 0 || tail.last != cursor->position()) return UnreadableRecord();
  return tail;
}

}  // namespace strata::engines::rocks
