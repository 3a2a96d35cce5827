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
  EXPECT_THAT(NewCall(other_).Take(150), IsOk());  // which is not the other's fault
  EXPECT_EQ(ShareOf(NewCall(other_).Take(1)), "250");
  calls_.clear();
  EXPECT_EQ(admission_.bytes_in_flight(), 0u);
  EXPECT_EQ(one_->bytes_in_flight, 0u);
  EXPECT_EQ(other_->bytes_in_flight, 0u);
}

TEST_F(AdmissionTest, WhatOneHoldsBeyondItsShareIsNotTakenFromOthers) {
  InFlight& large = NewCall(one_);
  large.SetTo(100'000);
  std::vector<std::shared_ptr<Caller>> callers;
  for (int i = 0; i < 3; ++i) {
    callers.push_back(std::make_shared<Caller>(std::to_string(i)));
    EXPECT_THAT(NewCall(callers.back()).Take(250), IsOk());
  }
  // There is room for four shares, of which it has one.
  EXPECT_EQ(MetadataOf(NewCall(other_).Take(1), "limit"), "1000");
  large.SetTo(249);
  EXPECT_THAT(NewCall(other_).Take(1), IsOk());
  large.SetTo(100'000);
  EXPECT_EQ(ReasonOf(NewCall(callers[0]).Take(1)), ErrorReason::kOverloaded);
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
  EXPECT_THAT(NewCall(other_).Take(250), IsOk());
  EXPECT_EQ(ShareOf(call.Take(1)), "250");  // it is alone no more
}

// One that waits for room, and has as much as it takes when it is told.
class Waiting final : public RoomLine::Waiter {
 public:
  Waiting(RoomLine& line, const Caller& caller, std::string name, std::vector<std::string>& told)
      : line_(line), caller_(caller), name_(std::move(name)), told_(told) {
    line_.Enter(*this, caller_, 10);
  }
  ~Waiting() { line_.Leave(*this, caller_); }
  void Wake() override { told_.push_back(name_); }

 private:
  RoomLine& line_;
  const Caller& caller_;
  const std::string name_;
  std::vector<std::string>& told_;
};

TEST_F(AdmissionTest, RoomThatIsGivenBackIsOfferedToOneOfItsCallersAndOneOfAnothers) {
  InFlight& call = NewCall(one_);
  InFlight& others = NewCall(other_);
  call.SetTo(400);
  others.SetTo(260);
  RoomLine& line = admission_.room_line();
  std::vector<std::string> told;
  const Caller third("third");
  std::deque<Waiting> waiting;
  for (const char* name : {"1a", "1b", "1c"}) waiting.emplace_back(line, *one_, name, told);
  waiting.emplace_back(line, *other_, "2a", told);
  for (const char* name : {"3a", "3b", "3c"}) waiting.emplace_back(line, third, name, told);
  call.SetTo(300);  // too little for itself, and not what holds up the second
  EXPECT_THAT(told, testing::ElementsAre("3a"));
  call.SetTo(240);
  EXPECT_THAT(told, testing::ElementsAre("3a", "1a", "3b"));
  call.SetTo(240);  // nothing is given back
  call.SetTo(250);
  EXPECT_EQ(told.size(), 3u);
  call.SetTo(0);
  call.SetTo(0);
  EXPECT_THAT(told, testing::ElementsAre("3a", "1a", "3b", "1b", testing::AnyOf("2a", "3c")));
  // Whoever has left is not told.
  waiting.clear();
  line.OfferAll();
  EXPECT_EQ(told.size(), 5u);
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
