// How RocksDB is set up: every option that differs from its default, with the reason beside it in
// tuning.cc.
#pragma once

#include <rocksdb/cache.h>
#include <rocksdb/compaction_filter.h>
#include <rocksdb/options.h>

#include <cstddef>
#include <memory>

#include "schemas/store/record.h"

namespace strata::engines::rocks {

// Of uncompressed blocks, indexes and filters.
std::shared_ptr<rocksdb::Cache> BlockCache(size_t bytes);

rocksdb::DBOptions DatabaseOptions(rocksdb::Env* env, const std::shared_ptr<rocksdb::Cache>& cache,
                                   int open_files_max);

// For one keyspace. The filter outlives the database.
rocksdb::ColumnFamilyOptions KeyspaceOptions(store::Keyspace keyspace,
                                             const std::shared_ptr<rocksdb::Cache>& cache,
                                             const rocksdb::CompactionFilter* expiry);

// How many records of a walk over the keyspace are kept in the cache (ScanRecords).
size_t CachedOfWalk(store::Keyspace keyspace);

// For the engine's own few keys.
rocksdb::ColumnFamilyOptions DefaultOptions(const std::shared_ptr<rocksdb::Cache>& cache);

rocksdb::WriteOptions DurableWrite();

}  // namespace strata::engines::rocks
