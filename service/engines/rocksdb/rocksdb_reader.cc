#include "service/engines/rocksdb/rocksdb_reader.h"

#include <string>
#include <utility>

#include "service/engines/rocksdb/driver.h"
#include "service/engines/rocksdb/record_format.h"

namespace strata::engines::rocks {
namespace {

class RocksDbCursor final : public store::Cursor {
 public:
  RocksDbCursor(rocksdb::DB& database, rocksdb::ColumnFamilyHandle* keyspace,
                const rocksdb::Snapshot* snapshot, const store::Range& range, size_t cached_max)
      : database_(database),
        keyspace_(keyspace),
        cached_left_(cached_max),
        range_(range),
        begin_(ToSlice(range_.begin)),
        end_(ToSlice(range_.end)) {
    if (keyspace == nullptr) return;
    // RocksDB does not define what bounds the wrong way round mean.
    if (!range_.end.empty() && range_.begin >= range_.end) return;
    options_.snapshot = snapshot;
    // We delete no ranges. Where RocksDB 7.8 looks for them while it scans, it takes a file that it
    // cannot read for one that is empty: the scan ends early, and its status is OK.
    options_.ignore_range_deletions = true;
    if (!range_.begin.empty()) options_.iterate_lower_bound = &begin_;
    if (!range_.end.empty()) options_.iterate_upper_bound = &end_;
    iterator_.reset(database.NewIterator(options_, keyspace));
    if (range_.reverse) {
      iterator_->SeekToLast();
    } else {
      iterator_->SeekToFirst();
    }
    Settle();
  }

  bool Valid() const override { return valid_; }
  std::string_view key() const override { return ToView(iterator_->key()); }
  std::string_view value() const override { return record_.value; }
  store::Stamp stamp() const override { return record_.position; }
  store::CommitPosition position() const override { return record_.position; }

  void Next() override {
    if (range_.reverse) {
      iterator_->Prev();
    } else {
      iterator_->Next();
    }
    if (cached_left_ > 0 && --cached_left_ == 0) ReadPastCache();
    Settle();
  }

  void Seek(std::string_view key) override {
    if (iterator_ == nullptr) return;
    if (range_.reverse) {
      iterator_->SeekForPrev(ToSlice(key));
    } else {
      iterator_->Seek(ToSlice(key));
    }
    Settle();
  }

  absl::Status status() const override { return status_; }

 private:
  // Whether what is read is kept an iterator is told when it is made.
  void ReadPastCache() {
    if (!iterator_->Valid()) return;
    const std::string key = iterator_->key().ToString();
    options_.fill_cache = false;
    iterator_.reset(database_.NewIterator(options_, keyspace_));
    if (range_.reverse) {
      iterator_->SeekForPrev(key);
    } else {
      iterator_->Seek(key);
    }
  }

  void Settle() {
    valid_ = false;
    status_ = absl::OkStatus();
    if (!iterator_->Valid()) {
      if (!iterator_->status().ok()) status_ = Translate(iterator_->status(), "scanning records");
      return;
    }
    const std::optional<StoredRecord> record = ParseRecord(ToView(iterator_->value()));
    if (!record) {
      status_ = UnreadableRecord();
      return;
    }
    record_ = *record;
    valid_ = true;
  }

  rocksdb::DB& database_;
  rocksdb::ColumnFamilyHandle* const keyspace_;
  size_t cached_left_;
  rocksdb::ReadOptions options_;
  // The iterator holds on to the slices, and they to the range.
  const store::Range range_;
  const rocksdb::Slice begin_;
  const rocksdb::Slice end_;
  std::unique_ptr<rocksdb::Iterator> iterator_;  // none: the range is empty, or the keyspace
  bool valid_ = false;
  StoredRecord record_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<std::optional<store::Record>> GetRecord(rocksdb::DB& database,
                                                       rocksdb::ColumnFamilyHandle* keyspace,
                                                       const rocksdb::Snapshot* snapshot,
                                                       std::string_view key, size_t kept_from,
                                                       UnixMicros* expire_time) {
  if (keyspace == nullptr) return std::nullopt;
  rocksdb::ReadOptions options;
  options.snapshot = snapshot;
  options.fill_cache = kept_from == 0;
  rocksdb::PinnableSlice stored;
  const rocksdb::Status status = database.Get(options, keyspace, ToSlice(key), &stored);
  if (status.IsNotFound()) return std::nullopt;
  if (!status.ok()) return Translate(status, "reading a record");
  const std::optional<StoredRecord> record = ParseRecord(ToView(stored));
  if (!record) return UnreadableRecord();
  if (expire_time != nullptr) *expire_time = record->expire_time;
  if (!options.fill_cache && stored.size() >= kept_from) {
    // How large it is, is known only now. Where the cache has it already this costs a look.
    options.fill_cache = true;
    rocksdb::PinnableSlice kept;
    (void)database.Get(options, keyspace, ToSlice(key), &kept);
  }
  return store::Record{record->value, record->position, record->position};
}

std::unique_ptr<store::Cursor> ScanRecords(rocksdb::DB& database,
                                           rocksdb::ColumnFamilyHandle* keyspace,
                                           const rocksdb::Snapshot* snapshot,
                                           const store::Range& range, size_t cached_max) {
  return std::make_unique<RocksDbCursor>(database, keyspace, snapshot, range, cached_max);
}

}  // namespace strata::engines::rocks
