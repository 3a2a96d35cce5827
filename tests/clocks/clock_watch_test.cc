// Which steps of the wall clock are logged, and how.
#include "service/observability/clock_watch.h"

#include <chrono>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "service/observability/log.h"
#include "tests/support/manual_clock.h"

namespace strata::observability {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

class ClockWatchTest : public testing::Test {
 protected:
  // A second passes, and the wall clock jumps within it: what the log says.
  std::string LookAfter(microseconds jump) {
    clock_.Advance(seconds(1));
    clock_.SetNow(clock_.Now() + jump.count());
    testing::internal::CaptureStderr();
    EXPECT_EQ(watch_.Look(), jump);
    return testing::internal::GetCapturedStderr();
  }

  test_support::ManualClock clock_;
  ClockWatch watch_{clock_};
};

TEST_F(ClockWatchTest, AJumpOfMoreThanTenSecondsIsLoggedOnceWithItsDirection) {
  EXPECT_THAT(LookAfter(seconds(11)), AllOf(HasSubstr("warning"), HasSubstr("wall clock jumped"),
                                            HasSubstr("forward"), HasSubstr("11000")));
  EXPECT_THAT(LookAfter(seconds(0)), IsEmpty());
  EXPECT_THAT(LookAfter(seconds(-3600)), AllOf(HasSubstr("back"), HasSubstr("3600000")));
  EXPECT_THAT(LookAfter(seconds(0)), IsEmpty());
  EXPECT_EQ(watch_.jumps(), 2);
}

TEST_F(ClockWatchTest, SmallStepsAndDriftAreNot) {
  EXPECT_THAT(LookAfter(seconds(10)), IsEmpty());
  EXPECT_THAT(LookAfter(seconds(-10)), IsEmpty());
  for (int i = 0; i < 100; ++i) EXPECT_THAT(LookAfter(seconds(1)), IsEmpty());
  EXPECT_EQ(watch_.jumps(), 0);
}

}  // namespace
}  // namespace strata::observability
