// When a nearly full disk ends writes, and when they are taken again.
#include "service/engines/rocksdb/disk_guard.h"

#include <atomic>
#include <cstdint>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schemas/base/error.h"
#include "tests/support/status_matchers.h"

namespace strata::engines::rocks {
namespace {

using test_support::HasReason;
using test_support::IsOk;

constexpr uint64_t kMiB = uint64_t{1} << 20;

class DiskGuardTest : public testing::Test {
 protected:
  absl::StatusOr<uint64_t> free_ = 1000 * kMiB;
  std::atomic<uint64_t> owed_ = 0;
  DiskGuard guard_{100 * kMiB, [this] { return free_; }, [this] { return owed_.load(); }};

  void LookAt(uint64_t free_bytes) {
    free_ = free_bytes;
    guard_.Look();
  }
  // A write that is done at once.
  absl::Status Write(size_t bytes, bool removal = false) {
    absl::Status admitted = guard_.Admit(bytes, removal);
    if (admitted.ok()) guard_.Written(bytes);
    return admitted;
  }
};

TEST_F(DiskGuardTest, BelowTheReserveWritesAreRefusedWithWhatIsFree) {
  EXPECT_THAT(Write(1), IsOk());
  LookAt(100 * kMiB);
  EXPECT_THAT(guard_.Ready(), IsOk());
  LookAt(100 * kMiB - 1);
  const absl::Status refused = Write(1);
  EXPECT_THAT(refused, HasReason(ErrorReason::kDiskFull));
  EXPECT_EQ(MetadataOf(refused, "free"), std::to_string(100 * kMiB - 1));
  EXPECT_EQ(MetadataOf(refused, "reserve"), std::to_string(100 * kMiB));
  EXPECT_THAT(guard_.Ready(), HasReason(ErrorReason::kDiskFull));
}

TEST_F(DiskGuardTest, WritesAreTakenAgainAtATenthAboveTheReserve) {
  LookAt(50 * kMiB);
  LookAt(110 * kMiB - 1);
  EXPECT_THAT(Write(1), HasReason(ErrorReason::kDiskFull));
  LookAt(110 * kMiB);
  EXPECT_THAT(Write(1), IsOk());
  EXPECT_THAT(guard_.Ready(), IsOk());
  LookAt(100 * kMiB);
  EXPECT_THAT(Write(0), IsOk());
}

TEST_F(DiskGuardTest, RemovalsGoOnDownToHalfOfTheReserve) {
  LookAt(60 * kMiB);
  EXPECT_THAT(Write(1), HasReason(ErrorReason::kDiskFull));
  EXPECT_THAT(Write(10 * kMiB, /*removal=*/true), IsOk());
  EXPECT_THAT(Write(1, /*removal=*/true), HasReason(ErrorReason::kDiskFull));
  EXPECT_THAT(Write(1), HasReason(ErrorReason::kDiskFull));
}

TEST_F(DiskGuardTest, ABurstBetweenTwoLooksStopsAtTheReserve) {
  LookAt(150 * kMiB);
  int admitted = 0;
  while (Write(kMiB).ok()) ++admitted;
  EXPECT_EQ(admitted, 50);
  EXPECT_THAT(guard_.Ready(), HasReason(ErrorReason::kDiskFull));
  LookAt(150 * kMiB);  // the disk had more to give than was thought: the log takes space ahead
  EXPECT_THAT(Write(kMiB), IsOk());
}

TEST_F(DiskGuardTest, WhatIsAdmittedAndNotWrittenYetCountsAfterTheNextLook) {
  LookAt(150 * kMiB);
  EXPECT_THAT(guard_.Admit(40 * kMiB, false), IsOk());
  LookAt(150 * kMiB);
  EXPECT_THAT(Write(20 * kMiB), HasReason(ErrorReason::kDiskFull));
  guard_.Written(40 * kMiB);
  LookAt(110 * kMiB);
  EXPECT_THAT(Write(10 * kMiB), IsOk());
}

TEST_F(DiskGuardTest, WhatIsOwedCountsAsTakenAtOnceAndUntilTheNextLook) {
  LookAt(150 * kMiB);
  owed_ = 40 * kMiB;
  EXPECT_THAT(Write(11 * kMiB), HasReason(ErrorReason::kDiskFull));
  LookAt(150 * kMiB);
  EXPECT_THAT(Write(1), IsOk());
  owed_ = 0;  // it is written, so less is free than was
  EXPECT_THAT(Write(10 * kMiB), HasReason(ErrorReason::kDiskFull));
  LookAt(150 * kMiB);
  EXPECT_THAT(Write(10 * kMiB), IsOk());
}

TEST_F(DiskGuardTest, NearItIsToBeLookedAtMoreOften) {
  LookAt(400 * kMiB);
  EXPECT_FALSE(guard_.IsNear());
  LookAt(399 * kMiB);
  EXPECT_TRUE(guard_.IsNear());
}

TEST_F(DiskGuardTest, ALookThatFailsChangesNothing) {
  free_ = Error(ErrorReason::kStoreUnavailable, "by the test");
  guard_.Look();
  EXPECT_THAT(Write(1), IsOk());
  LookAt(1);
  free_ = Error(ErrorReason::kStoreUnavailable, "by the test");
  guard_.Look();
  EXPECT_THAT(Write(1), HasReason(ErrorReason::kDiskFull));
}

TEST(DiskGuard, WithoutAReserveRefusesNothing) {
  DiskGuard guard(
      0, [] { return uint64_t{0}; }, [] { return uint64_t{1}; });
  EXPECT_THAT(guard.Admit(size_t{1} << 30, false), IsOk());
  EXPECT_THAT(guard.Ready(), IsOk());
}

TEST(DiskGuard, TheDefaultReserveIsATwentiethWithinBounds) {
  EXPECT_EQ(DefaultReserve(192 * kMiB), 256 * kMiB);
  EXPECT_EQ(DefaultReserve(20'000 * kMiB), 1000 * kMiB);
  EXPECT_EQ(DefaultReserve(uint64_t{1} << 50), 4096 * kMiB);
}

}  // namespace
}  // namespace strata::engines::rocks
