// What the store does on a new disk, and with the beacon that tells a torn log from a damaged one.
#include <zlib.h>

#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schemas/base/error.h"
#include "service/engines/rocksdb/commit_beacon.h"
#include "tests/disk/disk_world.h"
#include "tests/support/status_matchers.h"

namespace strata::engines::rocks {
namespace {

using test_support::HasReason;
using test_support::IsOk;
using testing::HasSubstr;
using Image = FaultFileSystem::Image;

class FirstStartTest : public testing::Test {
 protected:
  FirstStartTest() { world_.options.beacon_behind_max = std::chrono::hours(1); }

  void Commit(int count) {
    for (int i = 0; i < count; ++i) world_.commits.CommitSome(*world_.store, 1, chance_);
    ASSERT_FALSE(world_.commits.failed());
  }
  std::optional<Durable> Beacon() {
    const auto beacon = ReadBeacon(*world_.files, world_.options.directory);
    EXPECT_THAT(beacon, IsOk());
    return beacon.ok() ? *beacon : std::nullopt;
  }
  // The last byte of the newest log is gone, as if the process had died while writing it.
  void TearLog(Image& image) {
    std::string* log = nullptr;
    for (auto& [path, bytes] : image.files) {
      if (path.ends_with(".log") && !bytes.empty()) log = &bytes;
    }
    ASSERT_NE(log, nullptr);
    log->resize(log->size() - 1);
  }

  DiskWorld world_{StoredCommits(300)};
  std::mt19937_64 chance_{1};
};

// The directories above the data were made by this start, and so was the beacon.
TEST_F(FirstStartTest, WhatItAcknowledgedSurvivesAPowerLossThatLeavesNothingUnsynced) {
  world_.options.directory = world_.directory.Join("a/b/c/data/");
  ASSERT_THAT(world_.Open(), IsOk());
  Commit(3);
  world_.files->CutPowerLosingAll();
  world_.Close();
  world_.files->RestorePower();
  ASSERT_TRUE(Beacon());
  ASSERT_THAT(world_.Open(), IsOk());
  world_.commits.ExpectStored(*world_.store);
}

// A start that died between making its directories and making them durable.
TEST_F(FirstStartTest, ASecondStartMakesDurableWhatTheFirstDidNot) {
  const rocksdb::IOOptions options;
  ASSERT_TRUE(world_.files->CreateDir(world_.directory.Join("deep"), options, nullptr).ok());
  ASSERT_TRUE(world_.files->CreateDir(world_.options.directory, options, nullptr).ok());
  ASSERT_THAT(world_.Open(), IsOk());
  Commit(1);
  world_.files->CutPowerLosingAll();
  world_.Close();
  world_.files->RestorePower();
  ASSERT_THAT(world_.Open(), IsOk());
  world_.commits.ExpectStored(*world_.store);
}

TEST_F(FirstStartTest, TheBeaconsSlotsShareNoSector) {
  ASSERT_THAT(world_.Open(), IsOk());
  Commit(3);
  world_.Close();
  ASSERT_THAT(world_.Open(), IsOk());
  Commit(3);
  world_.Close();
  const std::string path = world_.PathOf("commit-beacon");
  const Image intact = world_.files->Save();
  const store::CommitPosition last = world_.commits.acknowledged();
  EXPECT_EQ(Beacon()->position, last);
  // Whatever a write of one sector does to it, the other slot is still there.
  for (size_t sector = 0; sector < 2; ++sector) {
    Image torn = intact;
    torn.files[path].replace(sector * 4096, 4096, 4096, '\xA5');
    world_.files->Load(torn);
    ASSERT_TRUE(Beacon());
    EXPECT_GT(Beacon()->position, 0);
  }
}

std::string OldSlot(uint64_t position) {
  std::string slot;
  for (int i = 0; i < 8; ++i) slot += static_cast<char>(position >> (8 * i));
  const uint64_t crc = crc32(crc32(0, nullptr, 0), reinterpret_cast<const Bytef*>(slot.data()), 8);
  for (int i = 0; i < 4; ++i) slot += static_cast<char>(crc >> (8 * i));
  slot.resize(512);
  return slot;
}

TEST_F(FirstStartTest, ABeaconOfTheOldLayoutIsReadAndItsSlotsOutliveTheFirstNewOne) {
  ASSERT_THAT(world_.Open(), IsOk());
  Commit(5);
  world_.Close();
  const std::string path = world_.PathOf("commit-beacon");
  const store::CommitPosition last = world_.commits.acknowledged();
  const auto write_one = [&](store::CommitPosition position) {
    ASSERT_THAT(CommitBeacon::Start(*world_.files, world_.options.directory, std::chrono::hours(1),
                                    [position] { return Durable{.position = position}; }),
                IsOk());
  };
  for (const bool second_is_newer : {false, true}) {
    const auto newer = static_cast<uint64_t>(last);
    const std::string old =
        second_is_newer ? OldSlot(newer - 1) + OldSlot(newer) : OldSlot(newer) + OldSlot(newer - 1);
    Image image = world_.files->Save();
    image.files[path] = old;
    world_.files->Load(image);
    EXPECT_EQ(Beacon()->position, last);
    write_one(last + 1);
    EXPECT_EQ(world_.files->Save().files[path].substr(0, old.size()), old);
    EXPECT_EQ(Beacon()->position, last + 1);
    write_one(last + 2);
    EXPECT_NE(world_.files->Save().files[path].substr(0, 512), old.substr(0, 512));
    EXPECT_EQ(Beacon()->position, last + 2);
    // The store itself.
    world_.files->Load(image);
    ASSERT_THAT(world_.Open(), IsOk());
    world_.commits.ExpectStored(*world_.store);
    world_.Close();
    EXPECT_EQ(Beacon()->position, last);
    EXPECT_GT(Beacon()->manifest, 0u);
  }
}

TEST_F(FirstStartTest, ADatabaseWithoutABeaconRefusesATornLogAndOpensAnIntactOne) {
  ASSERT_THAT(world_.Open(), IsOk());
  Commit(5);
  world_.Close();
  const Image intact = world_.files->Save();
  const std::string path = world_.PathOf("commit-beacon");
  enum class Lost { kMissing, kEmpty, kDamaged };
  for (const Lost lost : {Lost::kMissing, Lost::kEmpty, Lost::kDamaged}) {
    SCOPED_TRACE(static_cast<int>(lost));
    Image image = intact;
    if (lost == Lost::kMissing) image.files.erase(path);
    if (lost == Lost::kEmpty) image.files[path].clear();
    if (lost == Lost::kDamaged) image.files[path].replace(0, 8192, 8192, '\xA5');

    Image torn = image;
    TearLog(torn);
    world_.files->Load(torn);
    const absl::Status refused = world_.Open();
    EXPECT_THAT(refused, HasReason(ErrorReason::kRecordCorrupt));
    EXPECT_THAT(std::string(refused.message()), HasSubstr("commit-beacon"));
    EXPECT_EQ(world_.files->Save().files.contains(path), lost != Lost::kMissing);

    world_.files->Load(image);
    ASSERT_THAT(world_.Open(), IsOk());
    world_.commits.ExpectStored(*world_.store);
    ASSERT_TRUE(Beacon());
    EXPECT_EQ(Beacon()->position, world_.commits.acknowledged());
    world_.Close();
  }
}

TEST_F(FirstStartTest, ABeaconWithoutItsDatabaseIsRefused) {
  ASSERT_THAT(world_.Open(), IsOk());
  Commit(2);
  world_.Close();
  Image image = world_.files->Save();
  image.files.erase(world_.PathOf("CURRENT"));
  world_.files->Load(image);
  EXPECT_THAT(world_.Open(), HasReason(ErrorReason::kRecordCorrupt));
  EXPECT_EQ(world_.files->Save().files.size(), image.files.size());  // nothing was made or deleted
}

}  // namespace
}  // namespace strata::engines::rocks
