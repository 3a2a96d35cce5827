// Logs as the file system under RocksDB keeps them: whatever is appended, synced and lost, a log
// begins with what was synced.
#include "service/engines/rocksdb/log_file_system.h"

#include <cstdint>
#include <memory>
#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/disk/fault_file_system.h"
#include "tests/support/seeded_entropy.h"

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
    ASSERT_LT(on_disk.size() - appended_.size(), kBlockBytes);
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
