// Reads of RocksDB: what the store and its snapshots share.
#pragma once

#include <rocksdb/db.h>

#include <memory>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "schemas/store/store.h"

namespace strata::engines::rocks {

// The port's Reader::Get and Reader::Scan on one column family (null: of a keyspace that is not
// made), as of `snapshot` or, if that is null, of now.
absl::StatusOr<std::optional<store::Record>> GetRecord(rocksdb::DB& database,
                                                       rocksdb::ColumnFamilyHandle* keyspace,
                                                       const rocksdb::Snapshot* snapshot,
                                                       std::string_view key);
std::unique_ptr<store::Cursor> ScanRecords(rocksdb::DB& database,
                                           rocksdb::ColumnFamilyHandle* keyspace,
                                           const rocksdb::Snapshot* snapshot,
                                           const store::Range& range);

}  // namespace strata::engines::rocks
