// Reads and walks over a keyspace, and what they leave in the block cache.
#if __has_include(<rocksdb/advanced_cache.h>)  // where later releases have what a cache can do
#include <rocksdb/advanced_cache.h>
#endif
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/table.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "service/engines/rocksdb/record_format.h"
#include "service/engines/rocksdb/rocksdb_reader.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_directory.h"

namespace strata::engines::rocks {
namespace {

constexpr int kRecords = 20'000;
constexpr size_t kCached = 64;

class RocksDbWalk : public testing::Test {
 protected:
  RocksDbWalk() {
    rocksdb::BlockBasedTableOptions table;
    table.block_cache = cache_;
    table.block_size = 4096;
    rocksdb::Options options;
    options.create_if_missing = true;
    options.compression = rocksdb::kNoCompression;
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    rocksdb::DB* opened = nullptr;
    EXPECT_TRUE(rocksdb::DB::Open(options, directory_.Join("data"), &opened).ok());
    database_.reset(opened);
    for (int i = 0; i < kRecords; ++i) Put(i);
    EXPECT_TRUE(database_->Flush({}).ok());
  }

  static std::string KeyOf(int number) {
    char key[16];
    std::snprintf(key, sizeof(key), "%08d", number);
    return key;
  }
  void Put(int number) {
    const std::string record = RecordHeader(1, 0) + std::string(60, 'v');
    EXPECT_TRUE(database_->Put({}, KeyOf(number), record).ok());
  }
  std::unique_ptr<store::Cursor> Scan(const store::Range& range, size_t cached_max,
                                      const rocksdb::Snapshot* snapshot = nullptr) {
    return ScanRecords(*database_, database_->DefaultColumnFamily(), snapshot, range, cached_max);
  }
  static std::vector<std::string> KeysOf(store::Cursor& cursor) {
    std::vector<std::string> keys;
    for (; cursor.Valid(); cursor.Next()) keys.emplace_back(cursor.key());
    EXPECT_THAT(cursor.status(), test_support::IsOk());
    return keys;
  }
  static std::vector<std::string> Expected(int from, int to) {
    std::vector<std::string> keys;
    for (int i = from; i != to; i += from < to ? 1 : -1) keys.push_back(KeyOf(i));
    return keys;
  }

  test_support::TemporaryDirectory directory_;
  const std::shared_ptr<rocksdb::Cache> cache_ = rocksdb::NewLRUCache(size_t{64} << 20);
  std::unique_ptr<rocksdb::DB> database_;
};

TEST_F(RocksDbWalk, SeesEachRecordOnceInBothDirections) {
  for (const size_t cached : {size_t{1}, size_t{2}, kCached, size_t{kRecords}}) {
    SCOPED_TRACE(cached);
    EXPECT_EQ(KeysOf(*Scan({}, cached)), Expected(0, kRecords));
    const store::Range part{KeyOf(100), KeyOf(300), true};
    EXPECT_EQ(KeysOf(*Scan(part, cached)), Expected(299, 99));
  }
}

TEST_F(RocksDbWalk, OfASnapshotIsOfOneMoment) {
  const rocksdb::Snapshot* const snapshot = database_->GetSnapshot();
  const auto cursor = Scan({}, kCached, snapshot);
  Put(kRecords);
  ASSERT_TRUE(database_->Delete({}, KeyOf(kRecords / 2)).ok());
  EXPECT_EQ(KeysOf(*cursor), Expected(0, kRecords));
  database_->ReleaseSnapshot(snapshot);
}

TEST_F(RocksDbWalk, GoesOnWhereTheRecordThatItStandsBeforeIsDeleted) {
  const auto cursor = Scan({}, kCached);
  for (size_t i = 0; i < kCached - 1; ++i) cursor->Next();
  ASSERT_TRUE(database_->Delete({}, KeyOf(kCached)).ok());
  cursor->Next();
  ASSERT_TRUE(cursor->Valid());
  EXPECT_EQ(cursor->key(), KeyOf(kCached + 1));
}

TEST_F(RocksDbWalk, LeavesLittleBehindTheFirstRecordsInTheCache) {
  const size_t before = cache_->GetUsage();
  (void)KeysOf(*Scan({}, kCached));
  const size_t past = cache_->GetUsage() - before;
  (void)KeysOf(*Scan({}, kRecords));
  const size_t kept = cache_->GetUsage() - before;
  EXPECT_GT(kept, size_t{kRecords} * 60);
  EXPECT_LT(past, kept / 50);
}

TEST_F(RocksDbWalk, AReadLeavesTheBlocksOfLargeRecordsInTheCache) {
  const auto get = [&](int number, size_t kept_from) {
    const auto record =
        GetRecord(*database_, database_->DefaultColumnFamily(), nullptr, KeyOf(number), kept_from);
    ASSERT_THAT(record.status(), test_support::IsOk());
    EXPECT_TRUE(record->has_value());
  };
  get(0, 1000);  // the index may stay
  const size_t before = cache_->GetUsage();
  for (int i = 0; i < kRecords; i += kRecords / 20) get(i, 1000);
  EXPECT_EQ(cache_->GetUsage(), before);
  for (int i = 0; i < kRecords; i += kRecords / 20) get(i, 50);
  EXPECT_GT(cache_->GetUsage(), before + 10 * 4096);
}

}  // namespace
}  // namespace strata::engines::rocks
