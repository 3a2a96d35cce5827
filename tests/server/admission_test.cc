// How much all calls, and those of one caller, may hold.
#include "service/server/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "schemas/base/error.h"
#include "tests/support/status_matchers.h"

namespace strata::server {
namespace {

using test_support::IsOk;

constexpr size_t kLimit = 1000;

class AdmissionTest : public testing::Test {
 protected:
  InFlight& NewCall(const std::shared_ptr<Caller>& caller, const Method& method = {}) {
    calls_.emplace_back(admission_).BelongTo(caller, method);
    return calls_.back();
  }

  security::Access access_;
  Admission admission_{10'000, kLimit, access_};
  const std::shared_ptr<Caller> one_ = std::make_shared<Caller>("one");
  const std::shared_ptr<Caller> other_ = std::make_shared<Caller>("other");
  std::deque<InFlight> calls_;
};

std::optional<std::string> ShareOf(const absl::Status& status) {
  return MetadataOf(status, "share");
}

TEST_F(AdmissionTest, WhoeverHoldsMoreThanAQuarterIsRefusedFirst) {
  EXPECT_THAT(NewCall(one_).Take(500), IsOk());  // up to a half it is everybody's
  const absl::Status refused = NewCall(one_).Take(1);
  EXPECT_EQ(ReasonOf(refused), ErrorReason::kOverloaded);
  EXPECT_EQ(ShareOf(refused), "250");
  EXPECT_THAT(NewCall(other_).Take(250), IsOk());
  EXPECT_EQ(ShareOf(NewCall(other_).Take(1)), "250");
  EXPECT_EQ(admission_.bytes_in_flight(), 750u);
}

TEST_F(AdmissionTest, NobodyGetsMoreThanThereIs) {
  std::vector<std::shared_ptr<Caller>> callers;
  for (int i = 0; i < 10; ++i) callers.push_back(std::make_shared<Caller>(std::to_string(i)));
  for (const auto& caller : callers) EXPECT_THAT(NewCall(caller).Take(100), IsOk());
  const absl::Status refused = NewCall(other_).Take(1);
  EXPECT_EQ(ReasonOf(refused), ErrorReason::kOverloaded);
  EXPECT_EQ(ShareOf(refused), std::nullopt);
  EXPECT_EQ(MetadataOf(refused, "limit"), "1000");
}

TEST_F(AdmissionTest, WhatIsRefusedTakesNothingAndWhatIsOverGivesAllBack) {
  InFlight& call = NewCall(one_);
  EXPECT_THAT(call.Take(400), IsOk());
  EXPECT_THAT(NewCall(other_).Take(100), IsOk());
  EXPECT_EQ(ReasonOf(call.Take(1)), ErrorReason::kOverloaded);
  EXPECT_EQ(call.bytes(), 400u);
  EXPECT_EQ(one_->bytes_in_flight, 400u);
  call.SetTo(2000);  // what is there is there
  EXPECT_EQ(admission_.bytes_in_flight(), 2100u);
  EXPECT_EQ(ReasonOf(NewCall(other_).Take(1)), ErrorReason::kOverloaded);
  calls_.clear();
  EXPECT_EQ(admission_.bytes_in_flight(), 0u);
  EXPECT_EQ(one_->bytes_in_flight, 0u);
  EXPECT_EQ(other_->bytes_in_flight, 0u);
}

// Nor do others find the server full of what one has of those.
TEST_F(AdmissionTest, OperationalCallsAreServedUpToTheirCallersShare) {
  Method operational;
  operational.operational = true;
  EXPECT_THAT(NewCall(one_).Take(500), IsOk());
  EXPECT_THAT(NewCall(other_, operational).Take(250), IsOk());
  EXPECT_EQ(ShareOf(NewCall(other_, operational).Take(1)), "250");
  EXPECT_THAT(NewCall(other_).Take(250), IsOk());
  EXPECT_THAT(NewCall(one_, operational).Take(250), IsOk());  // however much there is
  EXPECT_EQ(ShareOf(NewCall(one_, operational).Take(1)), "250");
  calls_.clear();
  EXPECT_EQ(admission_.bytes_in_flight(), 0u);
  EXPECT_EQ(one_->operational_bytes_in_flight, 0u);
  EXPECT_EQ(other_->operational_bytes_in_flight, 0u);
}

// However little may be in flight, the server serves.
TEST_F(AdmissionTest, WhoeverIsAloneIsNeverRefused) {
  InFlight& call = NewCall(one_);
  EXPECT_THAT(call.Take(5000), IsOk());
  EXPECT_THAT(call.Take(5000), IsOk());
  EXPECT_EQ(ReasonOf(NewCall(other_).Take(1)), ErrorReason::kOverloaded);
}

TEST_F(AdmissionTest, OfManyAtOnceNoneFindsRoomThatAnotherTook) {
  NewCall(other_).SetTo(1);  // nobody is alone
  std::atomic<size_t> taken = 0;
  std::atomic<int> times = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const auto caller = std::make_shared<Caller>("");
      for (int round = 0; round < 20'000; ++round) {
        InFlight call(admission_);
        call.BelongTo(caller, {});
        if (!call.Take(200).ok()) continue;
        EXPECT_LT(taken += 200, kLimit);
        ++times;
        taken -= 200;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(times, 0);
  EXPECT_EQ(admission_.bytes_in_flight(), 1u);
}

}  // namespace
}  // namespace strata::server
