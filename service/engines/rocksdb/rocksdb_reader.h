// Reads of RocksDB: what the store and its snapshots share.
#pragma once

#include <rocksdb/db.h>

#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "schemas/store/store.h"

namespace strata::engines::rocks {

// The port's Reader::Get and Reader::Scan on one column family (null: of a keyspace that is not
// made), as of `snapshot` or, if that is null, of now. The block cache keeps what had to be fetched
// for a record of at least `kept_from` bytes. `expire_time` is set to the record's, if it is there.
absl::StatusOr<std::optional<store::Record>> GetRecord(rocksdb::DB& database,
                                                       rocksdb::ColumnFamilyHandle* keyspace,
                                                       const rocksdb::Snapshot* snapshot,
                                                       std::string_view key, size_t kept_from = 0,
                                                       UnixMicros* expire_time = nullptr);
// The block cache does not keep the records that a walk reads after the first `cached_max`. Without
// a snapshot the walk continues from there as of that time.
std::unique_ptr<store::Cursor> ScanRecords(rocksdb::DB& database,
                                           rocksdb::ColumnFamilyHandle* keyspace,
                                           const rocksdb::Snapshot* snapshot,
                                           const store::Range& range,
                                           size_t cached_max = std::numeric_limits<size_t>::max());

}  // namespace strata::engines::rocks
