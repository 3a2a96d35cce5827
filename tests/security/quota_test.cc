// Quotas: as much as they say, and to the microsecond when they say.
#include "service/security/quota.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <random>
#include <string>

#include "service/security/quotas.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"
#include "tests/support/volume.h"

namespace strata::security {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using test_support::HasReason;
using test_support::IsOk;

constexpr Quota::Time kStart{std::chrono::hours(1)};
constexpr double kMiB = 1 << 20;

QuotaLimits Calls(double per_second) { return {.calls_per_second = per_second}; }
QuotaLimits Bytes(double per_second) { return {.bytes_per_second = per_second}; }

// How many of the calls that come each `step` are taken until `end`.
int64_t TakenAt(Quota& quota, nanoseconds step, Quota::Time begin, Quota::Time end) {
  int64_t taken = 0;
  for (Quota::Time now = begin; now < end; now += step) taken += quota.Take(100, now).ok() ? 1 : 0;
  return taken;
}

TEST(QuotaTest, ACallerAtTenTimesItsRateGetsItsQuota) {
  for (const double rate : {0.5, 1.0, 3.3, 100.0, 2000.0, 33'333.3}) {
    SCOPED_TRACE(rate);
    Quota quota;
    quota.Limit(Calls(rate), kStart);
    const auto step = nanoseconds(static_cast<int64_t>(1e9 / rate / 10));
    const double capacity = std::max(rate, 1.0);
    // What idle times left comes on top, once.
    int64_t burst = 0;
    while (quota.Take(100, kStart).ok()) ++burst;
    EXPECT_EQ(burst, static_cast<int64_t>(capacity));
    const double span = std::max(2000 / rate, 2.0);
    const Quota::Time end = kStart + nanoseconds(static_cast<int64_t>(span * 1e9));
    const auto taken = static_cast<double>(TakenAt(quota, step, kStart, end));
    EXPECT_NEAR(taken, rate * span, 0.01 * rate * span);
  }
}

TEST(QuotaTest, BytesAreAsManyAsItSaysHoweverLargeTheCalls) {
  constexpr seconds kTime{test_support::Sampled(100, 10)};
  for (const size_t size : {100u, 64u << 10, 4u << 20}) {
    SCOPED_TRACE(size);
    Quota quota;
    quota.Limit(Bytes(20 * kMiB), kStart);
    double bytes = 0;
    for (Quota::Time now = kStart; now < kStart + kTime; now += microseconds(997)) {
      for (int i = 0; i < 10 && quota.Take(size / 2, now).ok(); ++i) {
        quota.Charge(size - size / 2, now);
        bytes += static_cast<double>(size);
      }
    }
    const double allowed =
        20 * kMiB * static_cast<double>(kTime.count() + 1);  // a second's worth was there
    if (size == 100) {
      EXPECT_NEAR(bytes, static_cast<double>(kTime.count()) * 10 * 100 / 997e-6,
                  10'000);  // it did not ask for more
    } else {
      EXPECT_NEAR(bytes, allowed, 0.01 * allowed + static_cast<double>(size));
    }
  }
}

// The highest rate below in calls a second, so as many as a full quota has.
constexpr int kMostCalls = 100'000;

// Takes until refused, then waits as told and asks a microsecond too early and in time.
void ExpectExactWait(Quota& quota, Quota::Time& now, std::mt19937_64& random) {
  absl::Status refused;
  for (int i = 0; i <= kMostCalls && refused.ok(); ++i) {
    refused = quota.Take(random() % 5000, now);
    if (refused.ok() && random() % 4 == 0) quota.Charge(random() % 100'000, now);
  }
  ASSERT_THAT(refused, HasReason(ErrorReason::kQuotaExceeded));
  const auto wait = RetryAfterOf(refused);
  ASSERT_TRUE(wait.has_value());
  ASSERT_GT(wait->count(), 0);
  // Whoever asks meanwhile changes nothing by being refused, and hears of the same moment.
  const auto part =
      microseconds(static_cast<int64_t>(random() % static_cast<uint64_t>(wait->count())));
  const absl::Status meanwhile = quota.Take(1000, now + part);
  ASSERT_THAT(meanwhile, HasReason(ErrorReason::kQuotaExceeded));
  EXPECT_EQ(RetryAfterOf(meanwhile), *wait - part);
  EXPECT_FALSE(quota.Take(1, now + *wait - microseconds(1)).ok());
  EXPECT_THAT(quota.Take(1, now + *wait), IsOk());
  now += *wait;
}

TEST(QuotaTest, WaitingAsToldIsEnoughAndAMicrosecondLessIsNot) {
  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < test_support::Sampled(2000, 200) && !testing::Test::HasFailure(); ++i) {
    // From one call in 1000 s to 100,000 a second, few of them round in binary.
    const double rate = std::pow(10, static_cast<double>(random() % 8001) / 1000 - 3);
    const double bytes = std::pow(10, static_cast<double>(random() % 5001) / 1000 + 4);
    Quota quota;
    Quota::Time now = kStart + nanoseconds(random() % 1'000'000'000);
    const QuotaLimits limits = i % 3 == 0   ? Calls(rate)
                               : i % 3 == 1 ? Bytes(bytes)
                                            : QuotaLimits{rate, bytes, 0};
    SCOPED_TRACE(testing::Message()
                 << limits.calls_per_second << " calls, " << limits.bytes_per_second << " bytes");
    quota.Limit(limits, now);
    for (int j = 0; j < 3 && !testing::Test::HasFailure(); ++j) {
      ExpectExactWait(quota, now, random);
      now += nanoseconds(random() % 10'000'000);
    }
  }
}

TEST(QuotaTest, WhatASecondLeftIsLost) {
  Quota quota;
  quota.Limit(Calls(10), kStart);
  EXPECT_EQ(TakenAt(quota, nanoseconds(1), kStart, kStart + microseconds(1)), 10);
  const Quota::Time later = kStart + seconds(3600);
  EXPECT_EQ(TakenAt(quota, nanoseconds(1), later, later + microseconds(1)), 10);
}

TEST(QuotaTest, OneCallFitsHoweverLowTheRate) {
  Quota quota;
  quota.Limit(Calls(0.01), kStart);
  EXPECT_THAT(quota.Take(0, kStart), IsOk());
  EXPECT_EQ(RetryAfterOf(quota.Take(0, kStart)), seconds(100));
  EXPECT_THAT(quota.Take(0, kStart + seconds(100)), IsOk());
}

TEST(QuotaTest, ACallThatIsRefusedTakesNothing) {
  Quota quota;
  quota.Limit({2, 1000, 0}, kStart);
  ASSERT_THAT(quota.Take(1500, kStart), IsOk());
  // For its bytes, so that the other call stays.
  EXPECT_EQ(RetryAfterOf(quota.Take(500, kStart)), milliseconds(500));
  ASSERT_THAT(quota.Take(0, kStart + milliseconds(500)), IsOk());
  ASSERT_THAT(quota.Take(1, kStart + milliseconds(500)), IsOk());
  // For its number, so that no bytes go.
  const absl::Status refused = quota.Take(1'000'000, kStart + milliseconds(600));
  EXPECT_EQ(MetadataOf(refused, "quota"), "calls_per_second");
  EXPECT_THAT(quota.Take(1, kStart + milliseconds(1500)), IsOk());
}

TEST(QuotaTest, TheLongerOfTwoWaitsIsTold) {
  Quota quota;
  quota.Limit({2, 1000, 0}, kStart);
  ASSERT_THAT(quota.Take(0, kStart), IsOk());
  ASSERT_THAT(quota.Take(0, kStart), IsOk());
  quota.Charge(3000, kStart);
  absl::Status refused = quota.Take(0, kStart);
  EXPECT_EQ(RetryAfterOf(refused), seconds(2));
  EXPECT_EQ(MetadataOf(refused, "quota"), "mib_per_second");
  refused = quota.Take(0, kStart + milliseconds(1900));
  EXPECT_EQ(RetryAfterOf(refused), milliseconds(100));
  EXPECT_THAT(quota.Take(0, kStart + seconds(2)), IsOk());
}

TEST(QuotaTest, ErrorsTellTheLimitAsThePolicyHasIt) {
  const auto told = [](const QuotaLimits& limits) {
    Quota quota;
    quota.Limit(limits, kStart);
    quota.Charge(100'000'000, kStart);
    absl::Status status;
    for (int i = 0; i < 3'000'000 && status.ok(); ++i) {
      status = quota.Take(0, kStart);
      if (status.ok()) status = quota.Enter();
    }
    EXPECT_THAT(status, HasReason(ErrorReason::kQuotaExceeded));
    return *MetadataOf(status, "quota") + " " + *MetadataOf(status, "limit") + ": " +
           std::string(status.message().data(), status.message().size());
  };
  EXPECT_EQ(told(Calls(2000)),
            "calls_per_second 2000: the quota of 2000 calls a second is used up");
  EXPECT_EQ(told(Calls(0.1)), "calls_per_second 0.1: the quota of 0.1 calls a second is used up");
  EXPECT_EQ(told(Calls(2'000'000)),
            "calls_per_second 2000000: the quota of 2000000 calls a second is used up");
  EXPECT_EQ(told(Bytes(1.7 * kMiB)),
            "mib_per_second 1.7: the quota of 1.7 MiB a second is used up");
  EXPECT_EQ(told({.calls_in_flight = 64}),
            "calls_in_flight 64: the quota of 64 calls at the same time is used up");
}

TEST(QuotaTest, CallsUnderWayAreCountedWhateverTheLimitWasWhenTheyCame) {
  Quota quota;
  for (int i = 0; i < 3; ++i) EXPECT_THAT(quota.Enter(), IsOk());
  quota.Limit({.calls_in_flight = 2}, kStart);
  EXPECT_THAT(quota.Enter(), HasReason(ErrorReason::kQuotaExceeded));
  quota.Leave();
  EXPECT_THAT(quota.Enter(), HasReason(ErrorReason::kQuotaExceeded));
  EXPECT_EQ(RetryAfterOf(quota.Enter()), std::nullopt);
  quota.Leave();
  EXPECT_THAT(quota.Enter(), IsOk());
  EXPECT_THAT(quota.Enter(), HasReason(ErrorReason::kQuotaExceeded));
  quota.Limit({}, kStart);
  EXPECT_THAT(quota.Enter(), IsOk());
}

TEST(QuotaTest, AnotherLimitKeepsWhatIsLeft) {
  Quota quota;
  quota.Limit(Calls(10), kStart);
  for (int i = 0; i < 10; ++i) ASSERT_THAT(quota.Take(0, kStart), IsOk());
  quota.Limit(Calls(10), kStart);
  EXPECT_EQ(RetryAfterOf(quota.Take(0, kStart)), milliseconds(100));
  quota.Limit(Calls(1000), kStart);
  EXPECT_EQ(RetryAfterOf(quota.Take(0, kStart)), milliseconds(1));
  quota.Limit(Calls(2), kStart + seconds(10));
  EXPECT_EQ(
      TakenAt(quota, nanoseconds(1), kStart + seconds(10), kStart + seconds(10) + microseconds(1)),
      2);
  quota.Limit({}, kStart + seconds(10));
  EXPECT_THAT(quota.Take(0, kStart + seconds(10)), IsOk());
  // As if it had never been limited.
  quota.Limit(Calls(2), kStart + seconds(10));
  EXPECT_THAT(quota.Take(0, kStart + seconds(10)), IsOk());
}

TEST(QuotaTest, ATimeThatWentBackGivesNothing) {
  Quota quota;
  quota.Limit(Calls(1), kStart);
  EXPECT_THAT(quota.Take(0, kStart), IsOk());
  EXPECT_FALSE(quota.Take(0, kStart - seconds(100)).ok());
  EXPECT_FALSE(quota.Take(0, kStart + milliseconds(500)).ok());
  EXPECT_THAT(quota.Take(0, kStart + seconds(1)), IsOk());
}

TEST(QuotaTest, ItIsFullWhenNothingIsMissing) {
  Quota quota;
  EXPECT_TRUE(quota.IsFull(kStart));
  quota.Limit({2, 1000, 5}, kStart);
  EXPECT_TRUE(quota.IsFull(kStart));
  ASSERT_THAT(quota.Take(2000, kStart), IsOk());
  EXPECT_FALSE(quota.IsFull(kStart + milliseconds(500)));
  EXPECT_FALSE(quota.IsFull(kStart + milliseconds(1999)));
  EXPECT_TRUE(quota.IsFull(kStart + milliseconds(2000)));
  ASSERT_THAT(quota.Enter(), IsOk());
  EXPECT_FALSE(quota.IsFull(kStart + seconds(100)));
  quota.Leave();
  EXPECT_TRUE(quota.IsFull(kStart + seconds(100)));
}

std::shared_ptr<const Policy> Limiting(const std::string& calls_per_second) {
  auto policy = Policy::Parse(R"({"quotas": [{"principals": ["*"], "calls_per_second": )" +
                              calls_per_second + "}]}");
  EXPECT_TRUE(policy.ok()) << policy.status();
  return std::make_shared<Policy>(*std::move(policy));
}

TEST(QuotasTest, APrincipalHasOneAsLongAsAnythingIsMissing) {
  Quotas quotas;
  quotas.Use(Limiting("2"), kStart);
  Quota::Time now = kStart;
  const auto held = quotas.Of("user:held", now);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(held->Take(0, now), IsOk());
    EXPECT_THAT(quotas.Of("user:used", now)->Take(0, now), IsOk());
  }
  for (int i = 0; i < 5000; ++i) quotas.Of("user:" + std::to_string(i), now);
  EXPECT_EQ(quotas.Of("user:held", now), held);
  EXPECT_FALSE(held->Take(0, now).ok());
  EXPECT_FALSE(quotas.Of("user:used", now)->Take(0, now).ok());
}

TEST(QuotasTest, ThoseOfPrincipalsLongGoneAreForgotten) {
  Quotas quotas;
  quotas.Use(Limiting("2"), kStart);
  Quota::Time now = kStart;
  const auto held = quotas.Of("user:held", now);
  for (int i = 0; i < 100'000; ++i) {
    EXPECT_THAT(quotas.Of("user:" + std::to_string(i), now)->Take(0, now), IsOk());
    now += milliseconds(1);
    ASSERT_LE(quotas.size(), 2048u);
  }
  EXPECT_EQ(quotas.Of("user:held", now), held);
}

TEST(QuotasTest, AnotherPolicyLimitsThoseThatThereAre) {
  Quotas quotas;
  const auto quota = quotas.Of("user:a", kStart);
  for (int i = 0; i < 100; ++i) EXPECT_THAT(quota->Take(0, kStart), IsOk());
  quotas.Use(Limiting("1"), kStart);
  EXPECT_THAT(quota->Take(0, kStart), IsOk());
  EXPECT_FALSE(quota->Take(0, kStart).ok());
  quotas.Use(nullptr, kStart);
  EXPECT_THAT(quota->Take(0, kStart), IsOk());
}

}  // namespace
}  // namespace strata::security
