#include "service/engines/rocksdb/tuning.h"

#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>
#include <rocksdb/write_buffer_manager.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <string_view>

#include "service/engines/rocksdb/driver.h"

namespace strata::engines::rocks {
namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;
constexpr uint64_t kDaySeconds = 24 * 60 * 60;
constexpr uint32_t kTableFormat = 5;

size_t BlockBytes(store::Neighbours neighbours) {
  switch (neighbours) {
    case store::Neighbours::kUnlike:
      return 4 * kKiB;
    case store::Neighbours::kAlike:
      // Versions of one document, lines of one form: the more of them share a block, the less zstd
      // leaves of each, and the more of others a point read has to unpack.
      return 16 * kKiB;
    case store::Neighbours::kReadAlone:
      // A whole block is unpacked for each record.
      return 4 * kKiB;
    case store::Neighbours::kReadTogether:
      // Nobody unpacks in vain: of the ledger 67 bytes a version are left instead of 72
      // (bench/README.md).
      return 64 * kKiB;
  }
  return 4 * kKiB;
}

size_t WriteBufferBytes(store::Volume volume) {
  switch (volume) {
    case store::Volume::kLow:
      return 2 * kMiB;
    case store::Volume::kMedium:
      return 16 * kMiB;
    case store::Volume::kHigh:
      return 32 * kMiB;
  }
  return 2 * kMiB;
}

// Small blocks of much make an index that has no room in the cache as a whole, and would be read
// and unpacked for each record. In pieces, those stay that are used.
bool HasIndexInPieces(const store::KeyspaceEntry& entry) {
  return entry.neighbours == store::Neighbours::kUnlike && entry.volume != store::Volume::kLow;
}

// Where a block is unpacked for one record, zstd costs more than the rest of the read, and there is
// less alike in a small block for it to find (bench/README.md).
rocksdb::CompressionType Compression(store::Neighbours neighbours) {
  return neighbours == store::Neighbours::kReadAlone ? rocksdb::kLZ4Compression : rocksdb::kZSTD;
}

// How many files of flushed records come together before they are merged with the rest. Where
// records come at random places, each merge rewrites all of them; and so it does with messages, of
// which each file has deletions at one end and insertions at the other.
int FlushedFilesPerMerge(const store::KeyspaceEntry& entry) {
  return entry.traits.writes_scattered ? 12 : 4;
}

// What has just been flushed is soon rewritten, and heads are read from there: speed counts. Of
// versions hardly one is read so soon, and packed as they are below they are fewer bytes to write.
rocksdb::CompressionType FlushCompression(store::Keyspace keyspace) {
  return keyspace == store::Keyspace::kVersions ? rocksdb::kZSTD : rocksdb::kLZ4Compression;
}

// Of keys with the same first bytes each is looked for in the memtable from where the last one
// went. So each run of keys that come one after the other is to have first bytes of its own; but
// each run costs some 300 bytes until the memtable is flushed.
class KeyRuns final : public rocksdb::SliceTransform {
 public:
  // How many bytes say which run the key belongs to; 0: to none.
  using Bytes = size_t (*)(std::string_view key);

  explicit KeyRuns(Bytes bytes) : bytes_(bytes) {}

  const char* Name() const override { return "strata.KeyRuns"; }
  bool InDomain(const rocksdb::Slice& key) const override { return bytes_(ToView(key)) > 0; }
  rocksdb::Slice Transform(const rocksdb::Slice& key) const override {
    return {key.data(), bytes_(ToView(key))};
  }

 private:
  const Bytes bytes_;
};

// A message's id begins with the time in milliseconds, in 6 bytes: those that came within the same
// quarter of a second lie together, apart from those that are handed out and acknowledged now. Ids
// that are made of a request id begin with anything, so that one in 64 is taken for such a time.
size_t MessageRun(std::string_view id) {
  constexpr size_t kQuarterSecond = 5;
  constexpr unsigned char kTimesUntil2109 = 4;
  const bool time = !id.empty() && static_cast<unsigned char>(id[0]) < kTimesUntil2109;
  return time && id.size() >= kQuarterSecond ? kQuarterSecond : 0;
}

// Hints begin with their queue and kind. Those that are due at some time go on with their priority
// and the time in microseconds, in 8 bytes: what is pushed, handed out, reserved until later and
// acknowledged at one moment lies at four places.
size_t HintRun(std::string_view key) {
  constexpr size_t kKind = sizeof(int64_t);
  constexpr size_t kSixtyFiveMilliseconds = kKind + 2 + 6;
  if (key.size() <= kKind) return 0;
  return key[kKind] == 'd' && key.size() >= kSixtyFiveMilliseconds ? kSixtyFiveMilliseconds
                                                                   : kKind + 1;
}

KeyRuns::Bytes RunsOf(store::Keyspace keyspace, const store::KeyspaceEntry& entry) {
  // They only grow.
  if (entry.traits.append_only) return [](std::string_view key) { return key.empty() ? 0UL : 1UL; };
  if (keyspace == store::Keyspace::kMessages) return MessageRun;
  if (keyspace == store::Keyspace::kQueueIndex) return HintRun;
  return nullptr;
}

rocksdb::ColumnFamilyOptions CommonOptions(const std::shared_ptr<rocksdb::Cache>& cache,
                                           size_t block_bytes, bool index_in_pieces = false,
                                           rocksdb::CompressionType compression = rocksdb::kZSTD) {
  rocksdb::BlockBasedTableOptions table;
  // By default RocksDB 9 writes 6, which RocksDB 7 does not read: one data directory is opened by
  // builds for Debian 12 and 13 in turns.
  table.format_version = kTableFormat;
  table.block_cache = cache;
  table.block_size = block_bytes;
  // A point read finds its record in a block by hash: neighbours' keys are long alike.
  table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  // Indexes and filters count against the cache, so that memory stays bounded as data grows.
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  // Every eighth key of an index is whole, the others tell how they differ: less room, and a search
  // goes to fewer places of memory.
  table.index_block_restart_interval = 8;
  // Most guards ask for what is not there: the next version, a new request.
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.optimize_filters_for_memory = true;
  if (index_in_pieces) {
    table.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
    table.partition_filters = true;
    table.pin_top_level_index_and_filter = true;
  }

  rocksdb::ColumnFamilyOptions options;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.compression_per_level = {rocksdb::kLZ4Compression, compression};
  options.level_compaction_dynamic_level_bytes = true;
  options.memtable_protection_bytes_per_key = 8;
  // Without an expiry filter there is nothing that rewriting old files for their age would gain.
  options.periodic_compaction_seconds = 0;
  options.ttl = 0;
  return options;
}

}  // namespace

// In as many shards as there may be with 32 MiB each. By default each has some 3 MiB, of which half
// is kept for indexes and filters, and a file of 64 MiB has about 1 MiB of each: those of large
// files drive each other out, and are read and unpacked again for a single record.
std::shared_ptr<rocksdb::Cache> BlockCache(size_t bytes) {
  constexpr size_t kShardBytes = 32 * kMiB;
  constexpr int kShardBitsMax = 6;
  const size_t shards = std::max<size_t>(bytes / kShardBytes, 1);
  const int bits = static_cast<int>(std::bit_width(shards)) - 1;
  return rocksdb::NewLRUCache(bytes, std::min(bits, kShardBitsMax));
}

rocksdb::DBOptions DatabaseOptions(rocksdb::Env* env, const std::shared_ptr<rocksdb::Cache>& cache,
                                   int open_files_max) {
  rocksdb::DBOptions options;
  options.env = env;
  options.create_if_missing = true;

  // The default loses acknowledged writes silently after one flipped byte of the log.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kAbsoluteConsistency;
  options.paranoid_checks = true;
  options.track_and_verify_wals_in_manifest = true;  // a log file that is missing is damage

  // All memtables together, on the cache's account. The log is cut before replaying it would make a
  // start slow.
  options.write_buffer_manager = std::make_shared<rocksdb::WriteBufferManager>(64 * kMiB, cache);
  options.max_total_wal_size = 64 * kMiB;
  options.max_open_files = open_files_max;
  options.max_background_jobs = 2;
  // A store whose write failed writes no more until it is opened again, so there is nothing to
  // resume; and closing waits for ever for a resumption that it has told to end before it began
  // (facebook/rocksdb#11440).
  options.max_bgerror_resume_count = 0;
  // One committer writes; nothing to do at once.
  options.allow_concurrent_memtable_write = false;
  options.enable_write_thread_adaptive_yield = false;
  // Letting go of an iterator must not delete files on the thread that answers calls.
  options.avoid_unnecessary_blocking_io = true;

  options.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  options.max_log_file_size = kMiB;
  options.keep_log_file_num = 2;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  return options;
}

rocksdb::ColumnFamilyOptions KeyspaceOptions(store::Keyspace keyspace,
                                             const std::shared_ptr<rocksdb::Cache>& cache,
                                             const rocksdb::CompactionFilter* expiry) {
  const store::KeyspaceEntry& entry = store::EntryOf(keyspace);
  rocksdb::ColumnFamilyOptions options = CommonOptions(
      cache, BlockBytes(entry.neighbours), HasIndexInPieces(entry), Compression(entry.neighbours));
  options.write_buffer_size = WriteBufferBytes(entry.volume);
  options.level0_file_num_compaction_trigger = FlushedFilesPerMerge(entry);
  options.compression_per_level[0] = FlushCompression(keyspace);
  // Of files that wait to be merged, twice as many may come before writers are held back.
  options.level0_slowdown_writes_trigger = std::max(20, 2 * FlushedFilesPerMerge(entry));
  options.level0_stop_writes_trigger = std::max(36, 3 * FlushedFilesPerMerge(entry));
  // Most of what is asked for is not in the memtable: guards ask for what is nowhere, and a
  // document that is not in the record cache was hardly written lately. What a filter of hashes
  // says of it comes from one place of memory, a search from a dozen.
  if (entry.traits.absence_asked || entry.neighbours == store::Neighbours::kReadAlone) {
    options.memtable_whole_key_filtering = true;
    options.memtable_prefix_bloom_size_ratio = 0.02;
  }
  if (const KeyRuns::Bytes runs = RunsOf(keyspace, entry)) {
    options.memtable_insert_with_hint_prefix_extractor = std::make_shared<KeyRuns>(runs);
  }
  // Also where nothing expires: without a filter, compacting everything moves files instead of
  // rewriting them, a way that is not tried beside a failing disk.
  options.compaction_filter = entry.traits.append_only ? nullptr : expiry;
  // What expires lives for a day; files that no write touches would else keep it for ever.
  if (entry.traits.expires) options.periodic_compaction_seconds = kDaySeconds;
  return options;
}

// Long walks over the index of queues count it, or fetch what is handed out next: neither comes by
// again soon. Of 10^6 messages that wait it would take 46 MiB.
size_t CachedOfWalk(store::Keyspace keyspace) {
  constexpr size_t kFirst = 64;
  return keyspace == store::Keyspace::kQueueIndex ? kFirst : std::numeric_limits<size_t>::max();
}

rocksdb::ColumnFamilyOptions DefaultOptions(const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::ColumnFamilyOptions options = CommonOptions(cache, 4 * kKiB);
  options.write_buffer_size = kMiB;
  return options;
}

rocksdb::WriteOptions DurableWrite() {
  rocksdb::WriteOptions options;
  options.sync = true;
  options.protection_bytes_per_key = 8;
  return options;
}

}  // namespace strata::engines::rocks
