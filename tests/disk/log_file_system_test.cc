// Logs as the file system under RocksDB keeps them: whatever is appended, synced and lost, a log
// begins with what was synced.
#include "service/engines/rocksdb/log_file_system.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "service/engines/rocksdb/log_ahead.h"
#include "tests/disk/fault_file_system.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"

namespace strata::engines::rocks {
namespace {

using rocksdb::IOStatus;
using testing::StartsWith;

constexpr char kLog[] = "/data/000007.log";
constexpr size_t kBlockBytes = 4096;

class LogFileSystemTest : public testing::Test {
 protected:
  void Open() {
    const IOStatus status = logs_.NewWritableFile(kLog, {}, &log_, nullptr);
    ASSERT_TRUE(status.ok()) << status.ToString();
    rocksdb::IODebugContext debug;
    ASSERT_TRUE(disk_->NewDirectory("/data", {}, &directory_, &debug).ok());
    ASSERT_TRUE(directory_->Fsync({}, &debug).ok());
  }
  void Append(const std::string& bytes) {
    const IOStatus status = log_->Append(bytes, {}, nullptr);
    ASSERT_TRUE(status.ok()) << status.ToString();
    appended_ += bytes;
  }
  void Sync() { ASSERT_TRUE(log_->Sync({}, nullptr).ok()); }
  std::string OnDisk() const { return disk_->Save().files.at(kLog); }
  // Neither empty nor zeros, as what is appended is not.
  std::string Draw(std::mt19937_64& chance) {
    const size_t reach = size_t{1} << (chance() % 16);
    std::string bytes(1 + chance() % reach, '\0');
    for (char& byte : bytes) byte = static_cast<char>(1 + chance() % 255);
    return bytes;
  }

  const std::shared_ptr<FaultFileSystem> disk_ = std::make_shared<FaultFileSystem>("/data");
  LogFileSystem logs_{disk_};
  std::unique_ptr<rocksdb::FSWritableFile> log_;
  std::unique_ptr<rocksdb::FSDirectory> directory_;
  std::string appended_;
};

TEST_F(LogFileSystemTest, ALogIsWrittenInWholeBlocksAndCutWhenItIsClosed) {
  std::mt19937_64 chance(test_support::TestSeed());
  STRATA_TRACE_SEED(test_support::TestSeed());
  ASSERT_NO_FATAL_FAILURE(Open());
  for (int i = 0; i < 300; ++i) {
    ASSERT_NO_FATAL_FAILURE(Append(Draw(chance)));
    const std::string on_disk = OnDisk();
    ASSERT_EQ(on_disk.size() % kBlockBytes, 0u);
    ASSERT_LT(on_disk.size() - appended_.size(), kBlockBytes + LogAhead::kBytesMax);
    ASSERT_EQ(on_disk.substr(0, appended_.size()), appended_);
    ASSERT_EQ(on_disk.find_first_not_of('\0', appended_.size()), std::string::npos);
    ASSERT_EQ(log_->GetFileSize({}, nullptr), appended_.size());
  }
  ASSERT_TRUE(log_->Close({}, nullptr).ok());
  EXPECT_EQ(OnDisk(), appended_);
}

TEST_F(LogFileSystemTest, WhatWasSyncedOutlivesTheAppendsAfterIt) {
  const uint64_t seed = test_support::TestSeed();
  for (uint64_t run = 0; run < 200; ++run) {
    STRATA_TRACE_SEED(seed + run);
    std::mt19937_64 chance(seed + run);
    appended_.clear();
    ASSERT_NO_FATAL_FAILURE(Open());
    for (uint64_t i = 0; i < 1 + run % 5; ++i) ASSERT_NO_FATAL_FAILURE(Append(Draw(chance)));
    ASSERT_NO_FATAL_FAILURE(Sync());
    const std::string synced = appended_;
    const uint64_t unsynced = chance() % 3;
    for (uint64_t i = 0; i < unsynced; ++i) ASSERT_NO_FATAL_FAILURE(Append(Draw(chance)));
    disk_->CutPower(chance());
    log_.reset();
    disk_->RestorePower();
    ASSERT_THAT(OnDisk(), StartsWith(synced));
  }
}

// Of one file: holds back its writes while it is told to, and says which one is held.
class HeldWrites final : public rocksdb::FileSystemWrapper {
 public:
  explicit HeldWrites(const std::shared_ptr<rocksdb::FileSystem>& target)
      : FileSystemWrapper(target) {}
  const char* Name() const override { return "HeldWrites"; }
  IOStatus NewRandomRWFile(const std::string& path, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSRandomRWFile>* result,
                           rocksdb::IODebugContext* debug) override {
    std::unique_ptr<rocksdb::FSRandomRWFile> file;
    const IOStatus status = target()->NewRandomRWFile(path, options, &file, debug);
    if (status.ok()) *result = std::make_unique<File>(std::move(file), *this);
    return status;
  }

  void Hold() {
    const absl::MutexLock lock(&mutex_);
    hold_ = true;
  }
  void Release() {
    const absl::MutexLock lock(&mutex_);
    hold_ = false;
  }
  // Whether a write is held within ten seconds, and where it begins.
  std::optional<uint64_t> Held() {
    const absl::MutexLock lock(&mutex_);
    const auto is_held = [this] { return held_.has_value(); };
    mutex_.AwaitWithTimeout(absl::Condition(&is_held), absl::Seconds(10));
    return held_;
  }
  // Waits ten seconds at most for so many syncs of what was written.
  bool Synced(int syncs) {
    const absl::MutexLock lock(&mutex_);
    const auto are_done = [&] { return syncs_ >= syncs; };
    return mutex_.AwaitWithTimeout(absl::Condition(&are_done), absl::Seconds(10));
  }
  int syncs() {
    const absl::MutexLock lock(&mutex_);
    return syncs_;
  }

 private:
  class File final : public rocksdb::FSRandomRWFileOwnerWrapper {
   public:
    File(std::unique_ptr<rocksdb::FSRandomRWFile>&& file, HeldWrites& files)
        : FSRandomRWFileOwnerWrapper(std::move(file)), files_(files) {}
    IOStatus Write(uint64_t offset, const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                   rocksdb::IODebugContext* debug) override {
      {
        const absl::MutexLock lock(&files_.mutex_);
        files_.held_ = offset;
        const auto may_go = [this] { return !files_.hold_; };
        files_.mutex_.Await(absl::Condition(&may_go));
        files_.held_.reset();
      }
      return FSRandomRWFileOwnerWrapper::Write(offset, data, options, debug);
    }
    IOStatus Sync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override {
      const IOStatus status = FSRandomRWFileOwnerWrapper::Sync(options, debug);
      const absl::MutexLock lock(&files_.mutex_);
      ++files_.syncs_;
      return status;
    }

   private:
    HeldWrites& files_;
  };

  absl::Mutex mutex_;
  bool hold_ = false;
  std::optional<uint64_t> held_;
  int syncs_ = 0;
};

class LogAheadTest : public testing::Test {
 protected:
  LogAheadTest() {
    std::unique_ptr<rocksdb::FSWritableFile> made;
    EXPECT_TRUE(disk_->NewWritableFile(kLog, {}, &made, nullptr).ok());
  }
  size_t SizeOnDisk() const { return disk_->Save().files.at(kLog).size(); }

  const std::shared_ptr<FaultFileSystem> disk_ = std::make_shared<FaultFileSystem>("/data");
  HeldWrites files_{disk_};
  const std::shared_ptr<std::atomic<bool>> wanted_ = std::make_shared<std::atomic<bool>>(true);
};

TEST_F(LogAheadTest, ZerosOutliveAPowerLossOnceTheirStepIsDone) {
  rocksdb::IODebugContext debug;
  std::unique_ptr<rocksdb::FSDirectory> directory;
  ASSERT_TRUE(disk_->NewDirectory("/data", {}, &directory, &debug).ok());
  ASSERT_TRUE(directory->Fsync({}, &debug).ok());
  LogAhead ahead(files_, kLog, wanted_);
  ahead.Reach(uint64_t{4} << 20);
  ASSERT_TRUE(files_.Synced(7));  // until less than a quarter is missing
  ahead.End();
  disk_->CutPowerLosingAll();
  disk_->RestorePower();
  EXPECT_EQ(SizeOnDisk(), size_t{11} << 20);
}

TEST_F(LogAheadTest, ALogThatMayNeverGrowIsNotWrittenAhead) {
  LogAhead ahead(files_, kLog, wanted_);
  ahead.Reach(LogAhead::kLogBytesMin - 1);
  ahead.End();
  EXPECT_EQ(files_.syncs(), 0);
}

TEST_F(LogAheadTest, NothingIsWrittenAheadWhereItIsNotWanted) {
  *wanted_ = false;
  LogAhead ahead(files_, kLog, wanted_);
  ahead.Reach(uint64_t{1} << 20);
  ahead.Reach(uint64_t{2} << 20);
  ahead.End();
  EXPECT_EQ(SizeOnDisk(), 0u);
}

TEST_F(LogAheadTest, ALogWaitsForTheZerosThatAreWrittenWhereItIsToWrite) {
  LogAhead ahead(files_, kLog, wanted_);
  files_.Hold();
  ahead.Reach(kBlockBytes * 256);
  const std::optional<uint64_t> held = files_.Held();
  ASSERT_EQ(held, kBlockBytes * 256);
  ahead.Reach(*held);  // up to it there are none
  std::atomic<bool> reached = false;
  std::thread log([&] {
    ahead.Reach(*held + kBlockBytes);
    reached = true;
    std::unique_ptr<rocksdb::FSRandomRWFile> file;
    EXPECT_TRUE(disk_->NewRandomRWFile(kLog, {}, &file, nullptr).ok());
    EXPECT_TRUE(file->Write(*held, std::string(kBlockBytes, 'x'), {}, nullptr).ok());
  });
  EXPECT_FALSE(reached);
  files_.Release();
  log.join();
  ahead.End();
  EXPECT_EQ(disk_->Save().files.at(kLog).substr(*held, kBlockBytes), std::string(kBlockBytes, 'x'));
}

TEST_F(LogAheadTest, WhereZerosCannotBeWrittenTheLogGoesOnWithoutThem) {
  disk_->SetFault([](const FaultFileSystem::Call& call) {
    return call.kind == FaultFileSystem::CallKind::kSync ? IOStatus::NoSpace("none left")
                                                         : IOStatus::OK();
  });
  LogAhead ahead(files_, kLog, wanted_);
  for (uint64_t end = 1; end < 100; ++end) ahead.Reach(end << 20);
  EXPECT_TRUE(files_.Synced(1));
  ahead.End();
  EXPECT_EQ(files_.syncs(), 1);
}

TEST_F(LogFileSystemTest, LittleIsAllocatedAheadHoweverMuchIsAskedFor) {
  ASSERT_NO_FATAL_FAILURE(Open());
  size_t block_bytes = 0;
  size_t last_block = 0;
  log_->SetPreallocationBlockSize(size_t{35} << 20);
  log_->GetPreallocationStatus(&block_bytes, &last_block);
  EXPECT_EQ(block_bytes, size_t{8} << 20);
  log_->SetPreallocationBlockSize(size_t{1} << 20);
  log_->GetPreallocationStatus(&block_bytes, &last_block);
  EXPECT_EQ(block_bytes, size_t{1} << 20);
}

TEST_F(LogFileSystemTest, WhereNoFileIsWrittenDirectlyALogIsWrittenAsAnyFile) {
  disk_->RefuseDirectWrites();
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Append("what comes"));
  EXPECT_EQ(OnDisk(), appended_);
}

TEST_F(LogFileSystemTest, WhereDirectWritesFailALogIsWrittenAsAnyFile) {
  bool refused = false;
  disk_->SetFault([&](const FaultFileSystem::Call& call) {
    if (refused || call.kind != FaultFileSystem::CallKind::kWrite) return IOStatus::OK();
    refused = true;
    return IOStatus::InvalidArgument("not so");
  });
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_TRUE(refused);
  ASSERT_NO_FATAL_FAILURE(Append("what comes"));
  EXPECT_EQ(OnDisk(), appended_);
}

}  // namespace
}  // namespace strata::engines::rocks
