// Waiting for a lease: who gets it when, and that nobody waits for longer than they may, is
// forgotten, or touches what is gone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/documents/held_commits.h"
#include "tests/lease/leases_world.h"
#include "tests/support/seeded_entropy.h"

namespace strata::lease::testing {
namespace {

using std::chrono::milliseconds;

// Somebody who may go away.
class Caller final : public Waiter {
 public:
  bool gone() const override { return gone_; }
  absl::Status Defer(std::function<void()>) const override { return absl::OkStatus(); }
  const void* line() const override { return this; }
  void Go() { gone_ = true; }

 private:
  std::atomic<bool> gone_ = false;
};

class Waiting : public LeasesTest {
 protected:
  // Who waits, until it is answered.
  struct Call {
    LeaseAnswer answer;
    bool ready() const { return answer.ready(); }
    bool has() const { return answer.ready() && answer.get().ok(); }
    std::optional<ErrorReason> reason() const {
      return answer.ready() ? ReasonOf(answer.get().status()) : std::nullopt;
    }
  };
  using CallPtr = Call*;

  // Whoever still waits is answered then.
  ~Waiting() override { leases.Stop(); }

  CallPtr Wait(LeasingProcess& process, AcquireRequest request) {
    const CallPtr call = calls_.emplace_back(std::make_unique<Call>()).get();
    process->Acquire(std::move(request), call->answer.Callback());
    Settle(process);
    return call;
  }
  CallPtr Wait(const std::string& holder, microseconds wait = seconds(20)) {
    return Wait(leases, Wanted("jobs", holder, wait));
  }
  void Settle(LeasingProcess& process) {
    // What the engine's threads bring comes when it comes, and before what is committed after it.
    for (int round = 0; round < 3; ++round) {
      process.executor().RunDue();
      const auto marked = process.Acquire("mark", "test");
      ASSERT_THAT(marked, IsOk());
    }
  }
  // Time passes for this process, a little at a time.
  void Pass(microseconds time) {
    for (; time > microseconds(0); time -= milliseconds(10)) {
      world.clock().Advance(milliseconds(10));
      leases.executor().RunDue();
    }
    Settle(leases);
  }
  store::Stamp Hold(microseconds ttl = seconds(600)) {
    AcquireRequest request = Wanted("jobs", "holder");
    request.ttl = ttl;
    return leases.Acquire(request)->token;
  }

 private:
  std::vector<std::unique_ptr<Call>> calls_;
};
INSTANTIATE_TEST_SUITE_P(Engines, Waiting, ::testing::ValuesIn(kEngines), EngineName);

TEST_P(Waiting, EndsWhenTheLeaseIsReleasedHere) {
  const store::Stamp token = Hold();
  const CallPtr call = Wait("next");
  EXPECT_FALSE(call->ready());
  ASSERT_THAT(leases.Release("jobs", token), IsOk());
  Settle(leases);
  ASSERT_TRUE(call->has());
  EXPECT_GT(call->answer.get()->token, token);
  EXPECT_EQ(leases->Get("jobs")->holder, "next");
}

TEST_P(Waiting, EndsInTheOrderOfTheCalls) {
  store::Stamp token = Hold();
  std::vector<CallPtr> calls;
  for (int i = 0; i < 4; ++i) calls.push_back(Wait("next " + std::to_string(i)));
  for (size_t i = 0; i < calls.size(); ++i) {
    ASSERT_THAT(leases.Release("jobs", token), IsOk());
    Settle(leases);
    for (size_t j = 0; j < calls.size(); ++j) EXPECT_EQ(calls[j]->ready(), j <= i) << i << " " << j;
    ASSERT_TRUE(calls[i]->has());
    token = calls[i]->answer.get()->token;
  }
}

TEST_P(Waiting, EndsWhenTheLeaseExpires) {
  Hold(seconds(5));
  const CallPtr call = Wait("next");
  Pass(milliseconds(4'900));
  EXPECT_FALSE(call->ready());
  Pass(milliseconds(110));
  EXPECT_TRUE(call->has());
}

TEST_P(Waiting, NoticesWithinASecondWhatAnotherProcessDoes) {
  const store::Stamp token = Hold();
  const CallPtr call = Wait("next");
  LeasingProcess other(world->store(), world.clock());
  ASSERT_THAT(other.Release("jobs", token), IsOk());
  Settle(leases);
  EXPECT_FALSE(call->ready());
  Pass(milliseconds(1'010));
  EXPECT_TRUE(call->has());
}

TEST_P(Waiting, EndsAfterItsTime) {
  Hold();
  const CallPtr call = Wait("next", milliseconds(2'500));
  Pass(milliseconds(2'400));
  EXPECT_FALSE(call->ready());
  Pass(milliseconds(110));
  EXPECT_EQ(call->reason(), ErrorReason::kLeaseHeld);
}

TEST_P(Waiting, NeverGoesBeyondTheDeadline) {
  Hold();
  AcquireRequest request = Wanted("jobs", "next", seconds(20));
  request.deadline = world.clock().SteadyNow() + seconds(3);
  const CallPtr call = Wait(leases, request);
  Pass(milliseconds(2'900));
  EXPECT_FALSE(call->ready());
  Pass(milliseconds(110));
  EXPECT_EQ(call->reason(), ErrorReason::kLeaseHeld);
}

TEST_P(Waiting, KeepsNobodyWhoDoesNotWait) {
  Hold();
  const CallPtr waits = Wait("next");
  const CallPtr asks = Wait("other", microseconds(0));
  EXPECT_EQ(asks->reason(), ErrorReason::kLeaseHeld);
  EXPECT_FALSE(waits->ready());
}

// A restarted holder passes those who wait.
TEST_P(Waiting, IsNotForTheHolderItself) {
  Hold();
  const CallPtr next = Wait("next");
  const CallPtr again = Wait("holder");
  EXPECT_TRUE(again->has());
  EXPECT_FALSE(next->ready());
}

TEST_P(Waiting, WhoIsGoneGetsNoLease) {
  const store::Stamp token = Hold();
  Caller caller;
  AcquireRequest request = Wanted("jobs", "gone", seconds(20));
  request.waiter = &caller;
  const CallPtr gone = Wait(leases, request);
  const CallPtr next = Wait("next");
  caller.Go();
  ASSERT_THAT(leases.Release("jobs", token), IsOk());
  Settle(leases);
  EXPECT_EQ(gone->reason(), ErrorReason::kCancelled);
  EXPECT_TRUE(next->has());
}

TEST_P(Waiting, WhoIsGoneIsLetGoWithinASecond) {
  Hold();
  Caller caller;
  AcquireRequest request = Wanted("jobs", "gone", seconds(20));
  request.waiter = &caller;
  const CallPtr gone = Wait(leases, request);
  caller.Go();
  Pass(milliseconds(1'010));
  EXPECT_EQ(gone->reason(), ErrorReason::kCancelled);
}

TEST_P(Waiting, IsForSoManyAtOnce) {
  LeasingProcess few(world->store(), world.clock(), LeasesOptions{.waiting_max = 2});
  const store::Stamp token = Hold();
  const CallPtr first = Wait(few, Wanted("jobs", "a", seconds(5)));
  const CallPtr second = Wait(few, Wanted("jobs", "b", seconds(20)));
  const CallPtr third = Wait(few, Wanted("jobs", "c", seconds(20)));
  EXPECT_FALSE(first->ready() || second->ready());
  EXPECT_EQ(third->reason(), ErrorReason::kOverloaded);
  EXPECT_THAT(few.Acquire("free", "c"), IsOk());
  // Each who has an answer makes room.
  ASSERT_THAT(few.Release("jobs", token), IsOk());
  Settle(few);
  ASSERT_TRUE(first->has());
  const CallPtr fourth = Wait(few, Wanted("jobs", "d", seconds(1)));
  EXPECT_FALSE(fourth->ready());
  world.clock().Advance(seconds(2));
  Settle(few);
  EXPECT_EQ(fourth->reason(), ErrorReason::kLeaseHeld);
  const CallPtr fifth = Wait(few, Wanted("jobs", "e", seconds(20)));
  EXPECT_FALSE(fifth->ready());
  EXPECT_EQ(Wait(few, Wanted("jobs", "f", seconds(20)))->reason(), ErrorReason::kOverloaded);
  few.Stop();
}

TEST_P(Waiting, EndsWhenTheServerDrains) {
  Hold();
  const CallPtr call = Wait("next");
  leases->StopWaiting();
  EXPECT_EQ(call->reason(), ErrorReason::kDraining);
  EXPECT_EQ(Wait("other")->reason(), ErrorReason::kDraining);
  EXPECT_EQ(Wait("other", microseconds(0))->reason(), ErrorReason::kLeaseHeld);
  EXPECT_THAT(leases.Acquire("free", "other"), IsOk());
  leases.executor().RunAll(1'000);
}

TEST_P(Waiting, EndsWithWhatItWaitsIn) {
  Hold();
  const CallPtr call = Wait("next");
  leases.Stop();
  EXPECT_EQ(call->reason(), ErrorReason::kDraining);
  // Its timers find nothing.
  leases.executor().RunAll(1'000);
}

// Commits that a test ends: what comes after the end leaves what is gone alone.
class Late : public ::testing::Test {
 protected:
  World world;
  versioning::testing::HeldCommits held{world->store()};
  LeasingProcess leases{held, world.clock()};
};

TEST_F(Late, ACommitThatEndsAfterTheServerIsAnswered) {
  LeaseAnswer first;
  LeaseAnswer second;
  held.hold = true;
  leases->Acquire(Wanted("jobs", "a", seconds(20)), first.Callback());
  leases->Acquire(Wanted("jobs", "b", seconds(20)), second.Callback());
  ASSERT_EQ(held.held.size(), 1u);
  leases.Stop();
  EXPECT_FALSE(first.ready());
  EXPECT_THAT(second.get(), HasReason(ErrorReason::kDraining));
  held.LetGo();
  leases.executor().RunAll();
  ASSERT_TRUE(first.ready());
  EXPECT_THAT(first.get(), IsOk());
}

TEST_F(Late, ARaceThatIsLostAfterTheEndIsNotRunAgain) {
  LeaseAnswer acquire;
  LeaseAnswer renew;
  const auto lease = leases.Acquire("other", "a");
  ASSERT_THAT(lease, IsOk());
  held.hold = true;
  leases->Acquire(Wanted("jobs", "a", seconds(20)), acquire.Callback());
  RenewRequest request;
  request.name = "other";
  request.token = lease->token;
  leases->Renew(request, renew.Callback());
  leases.Stop();
  held.Lose();
  held.Lose();
  leases.executor().RunAll();
  EXPECT_THAT(acquire.get(), HasReason(ErrorReason::kDraining));
  EXPECT_THAT(renew.get(), HasReason(ErrorReason::kDraining));
  EXPECT_TRUE(held.held.empty());
}

TEST_F(Late, AnOutcomeThatNobodyKnowsIsToldAndTheNextGoesOn) {
  LeaseAnswer first;
  LeaseAnswer second;
  held.hold = true;
  leases->Acquire(Wanted("jobs", "a", seconds(20)), first.Callback());
  leases->Acquire(Wanted("jobs", "b", seconds(20)), second.Callback());
  held.Fail(versioning::testing::Unknown());
  EXPECT_THAT(first.get(), HasReason(ErrorReason::kOutcomeUnknown));
  leases.executor().RunDue();
  ASSERT_EQ(held.held.size(), 1u);
  held.LetGo();
  EXPECT_THAT(leases.Await(second), IsOk());
}

// Everybody is answered once, while threads come and go and the whole ends in the midst of it.
TEST(Crowd, OfThreadsIsAnswered) {
  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  World world;
  for (int round = 0; round < 10; ++round) {
    test_support::ThreadExecutor executor;
    auto leases = std::make_unique<Leases>(world->store(), Clock::System(), executor);
    std::atomic<int> answers = 0;
    std::atomic<int> turns = 0;
    constexpr int kThreads = 6;
    constexpr int kCalls = 30;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kCalls; ++i) {
          AcquireRequest request = Wanted("jobs", std::to_string(t), seconds(20));
          request.ttl = seconds(600);
          if (i % 5 == 4) request.wait = microseconds(0);
          leases->Acquire(request, [&, t](absl::StatusOr<Lease> lease) {
            ++answers;
            if (!lease.ok()) return;
            ++turns;
            EXPECT_EQ(lease->holder, std::to_string(t));
            leases->Release({"jobs", lease->token}, [](const absl::StatusOr<Lease>&) {});
          });
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    if (round % 2 == 0) {
      // Each who waits gets its turn.
      while (answers < kThreads * kCalls) std::this_thread::yield();
      EXPECT_GT(turns, 0);
    } else {
      leases->StopWaiting();
      while (answers < kThreads * kCalls) std::this_thread::yield();
    }
    executor.Stop();
    leases.reset();
    EXPECT_EQ(answers, kThreads * kCalls);
  }
}

}  // namespace
}  // namespace strata::lease::testing
