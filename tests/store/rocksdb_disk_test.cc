// The RocksDB store and the disk below it: room, ballast, a directory that is gone, descriptors.
#include <rocksdb/db.h>
#include <rocksdb/table.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schemas/base/error.h"
#include "service/engines/engines.h"
#include "service/engines/rocksdb/ballast.h"
#include "service/engines/rocksdb/rocksdb_store.h"
#include "tests/support/await_commit.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_directory.h"

namespace strata::engines::rocks {
namespace {

namespace fs = std::filesystem;

using store::Keyspace;
using store::WriteBatch;
using test_support::AwaitCommit;
using test_support::HasReason;
using test_support::IsOk;
using testing::HasSubstr;

constexpr uint64_t kMiB = uint64_t{1} << 20;

class RocksDbDiskTest : public testing::Test {
 protected:
  RocksDbDiskTest() {
    options_.directory = directory_.Join("data");
    options_.block_cache_bytes = 8 * kMiB;
    options_.disk_look_interval = std::chrono::milliseconds(1);
    options_.disk_space = [this] { return DiskSpace{free_bytes_, 1000 * kMiB}; };
    options_.disk_reserve_bytes = 100 * kMiB;
  }

  void Open() {
    auto opened = RocksDbStore::Open(options_);
    ASSERT_THAT(opened, IsOk());
    store_ = *std::move(opened);
  }

  // What becomes of a small write, or of a removal.
  absl::Status Put(const std::string& key, bool removal = false) {
    WriteBatch batch;
    batch.Put(Keyspace::kMeta, key, "1");
    if (removal) batch.MarkAsRemoval();
    return AwaitCommit(*store_, std::move(batch)).status;
  }
  bool Holds(const std::string& key) {
    const auto record = store_->Get(Keyspace::kMeta, key);
    return record.ok() && record->has_value();
  }

  // Until the store has looked.
  template <typename Condition>
  static ::testing::AssertionResult Eventually(Condition condition) {
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > patience) return ::testing::AssertionFailure();
      std::this_thread::yield();
    }
    return ::testing::AssertionSuccess();
  }
  ::testing::AssertionResult BecomesReady(bool ready) {
    return Eventually([&] { return store_->Ready().ok() == ready; });
  }

  std::string LogName() const {
    for (const auto& entry : fs::directory_iterator(options_.directory)) {
      if (entry.path().extension() == ".log") return entry.path().filename().string();
    }
    return "(none)";
  }
  Ballast ballast() const { return {options_.directory, options_.ballast_bytes}; }

  std::atomic<uint64_t> free_bytes_ = 1000 * kMiB;
  test_support::TemporaryDirectory directory_;
  RocksDbOptions options_;
  std::unique_ptr<RocksDbStore> store_;
};

TEST_F(RocksDbDiskTest, ANearlyFullDiskRefusesWritesAndTakesThemAgain) {
  Open();
  EXPECT_THAT(Put("a"), IsOk());
  free_bytes_ = 60 * kMiB;
  ASSERT_TRUE(BecomesReady(false));
  EXPECT_THAT(store_->Ready(), HasReason(ErrorReason::kDiskFull));
  EXPECT_THAT(Put("b"), HasReason(ErrorReason::kDiskFull));
  EXPECT_THAT(Put("c", /*removal=*/true), IsOk());
  EXPECT_TRUE(Holds("a"));
  EXPECT_FALSE(Holds("b"));
  EXPECT_TRUE(Holds("c"));

  free_bytes_ = 40 * kMiB;
  ASSERT_TRUE(Eventually([&] { return !Put("d", /*removal=*/true).ok(); }));
  free_bytes_ = 200 * kMiB;
  ASSERT_TRUE(BecomesReady(true));
  EXPECT_THAT(Put("b"), IsOk());
}

TEST_F(RocksDbDiskTest, ItOpensOnADiskThatIsNearlyFull) {
  Open();
  EXPECT_THAT(Put("a"), IsOk());
  store_.reset();
  free_bytes_ = 0;
  Open();
  EXPECT_THAT(store_->Ready(), HasReason(ErrorReason::kDiskFull));
  EXPECT_THAT(Put("b"), HasReason(ErrorReason::kDiskFull));
  EXPECT_TRUE(Holds("a"));
}

TEST_F(RocksDbDiskTest, ADeletedDirectoryRefusesWritesAndIsNamed) {
  Open();
  EXPECT_THAT(Put("a"), IsOk());
  fs::rename(options_.directory, directory_.Join("elsewhere"));
  ASSERT_TRUE(BecomesReady(false));
  EXPECT_THAT(Put("b"), HasReason(ErrorReason::kStoreUnavailable));
  EXPECT_THAT(std::string(store_->Ready().message()), HasSubstr(options_.directory));
  EXPECT_TRUE(Holds("a"));

  // Another in its place is no better.
  fs::create_directory(options_.directory);
  std::ofstream(options_.directory + "/strata.lock");
  EXPECT_TRUE(Eventually([&] {
    return std::string(store_->Ready().message()).find("replaced") != std::string::npos;
  }));
  EXPECT_THAT(Put("b"), HasReason(ErrorReason::kStoreUnavailable));
}

TEST_F(RocksDbDiskTest, TheBallastIsMadeWhereThereIsRoomForItAndTwiceTheReserve) {
  options_.ballast_bytes = 16 * kMiB;
  free_bytes_ = 200 * kMiB - 1;
  Open();
  free_bytes_ = 50 * kMiB;
  ASSERT_TRUE(BecomesReady(false));  // it has looked
  EXPECT_FALSE(fs::exists(options_.directory + "/ballast"));
  free_bytes_ = 200 * kMiB;
  EXPECT_TRUE(Eventually([&] { return ballast().IsWhole(); }));
  struct stat info = {};
  ASSERT_EQ(stat((options_.directory + "/ballast").c_str(), &info), 0);
  EXPECT_GE(static_cast<uint64_t>(info.st_blocks) * 512, 16 * kMiB);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  store_.reset();

  options_.ballast_bytes = 0;
  Open();
  EXPECT_FALSE(fs::exists(options_.directory + "/ballast"));
}

TEST_F(RocksDbDiskTest, OfAnotherSizeItIsMadeAnew) {
  options_.ballast_bytes = 4 * kMiB;
  fs::create_directories(options_.directory);
  ASSERT_THAT(Ballast(options_.directory, 8 * kMiB).Make(), IsOk());
  Open();
  EXPECT_TRUE(Eventually([&] { return ballast().IsWhole(); }));
}

TEST_F(RocksDbDiskTest, TheBallastIsGivenUpWhenOpeningMayFindNoSpace) {
  options_.ballast_bytes = 16 * kMiB;
  Open();
  EXPECT_THAT(Put("a"), IsOk());
  ASSERT_TRUE(Eventually([&] { return ballast().IsWhole(); }));
  store_.reset();
  free_bytes_ = 60 * kMiB;
  Open();
  EXPECT_TRUE(ballast().IsWhole());
  store_.reset();

  // What the log holds has to be written into tables.
  fs::resize_file(options_.directory + "/" + LogName(), 50 * kMiB);
  Open();
  EXPECT_FALSE(fs::exists(options_.directory + "/ballast"));
  EXPECT_TRUE(Holds("a"));
  EXPECT_THAT(Put("b"), HasReason(ErrorReason::kDiskFull));
}

// Descriptors of this process that are of a file with that ending.
int OpenFiles(const std::string& ending) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    if (fs::read_symlink(entry.path(), error).string().ends_with(ending)) ++count;
  }
  return count;
}

// Leaves a database of about 200 tables behind.
void MakeManyTables(const std::string& directory) {
  rocksdb::Options options;
  std::vector<std::string> names;
  ASSERT_TRUE(rocksdb::DB::ListColumnFamilies(options, directory, &names).ok());
  options.disable_auto_compactions = true;
  options.target_file_size_base = 4096;
  options.compression = rocksdb::kNoCompression;
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  for (const std::string& name : names) descriptors.emplace_back(name, options);
  std::vector<rocksdb::ColumnFamilyHandle*> families;
  rocksdb::DB* opened = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(options, directory, descriptors, &families, &opened).ok());
  const std::unique_ptr<rocksdb::DB> database(opened);
  std::mt19937 random(1);
  for (rocksdb::ColumnFamilyHandle* family : families) {
    if (family->GetName() == store::KeyspaceName(Keyspace::kVersions)) {
      for (int i = 0; i < 400; ++i) {
        std::string value(2500, ' ');
        for (char& c : value) c = static_cast<char>(random());
        // As record_format.h has it: no flags, position 1.
        ASSERT_TRUE(database
                        ->Put(rocksdb::WriteOptions(), family, std::to_string(1000 + i),
                              std::string("\0\1", 2) + value)
                        .ok());
      }
      // RocksDB 9 would else move the one table that a flush makes.
      rocksdb::CompactRangeOptions anew;
      anew.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
      ASSERT_TRUE(database->CompactRange(anew, family, nullptr, nullptr).ok());
    }
    EXPECT_TRUE(database->DestroyColumnFamilyHandle(family).ok());
  }
}

TEST_F(RocksDbDiskTest, TablesTakeAtMostAQuarterOfTheDescriptors) {
  Open();
  store_.reset();
  ASSERT_NO_FATAL_FAILURE(MakeManyTables(options_.directory));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = 256;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  OpenOptions options;
  options.directory = options_.directory;
  options.values["ballast-mib"] = "0";
  const auto store = OpenEngine("rocksdb", options);
  ASSERT_THAT(store, IsOk());
  int tables = 0;
  for (const auto& entry : fs::directory_iterator(options_.directory)) {
    if (entry.path().extension() == ".sst") ++tables;
  }
  ASSERT_GT(tables, 128);
  int read = 0;
  for (auto cursor = (*store)->Scan(Keyspace::kVersions, {}); cursor->Valid(); cursor->Next()) {
    ++read;
  }
  EXPECT_EQ(read, 400);
  EXPECT_LE(OpenFiles(".sst"), 64);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace strata::engines::rocks
