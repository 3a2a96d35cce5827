// The pool of threads with a timer queue.
#include "service/app/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

namespace strata::app {
namespace {

using testing::ElementsAre;

TEST(ThreadPoolTest, RunsWorkWhenItIsDue) {
  ThreadPool pool(1);
  std::promise<void> done;
  std::vector<int> order;
  std::promise<void> go;
  pool.Schedule([&] { go.get_future().wait(); });
  pool.Schedule(std::chrono::milliseconds(20), [&] {
    order.push_back(3);
    done.set_value();
  });
  pool.Schedule([&] { order.push_back(1); });
  pool.Schedule(std::chrono::microseconds(-5), [&] { order.push_back(2); });
  go.set_value();
  done.get_future().wait();
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

TEST(ThreadPoolTest, DropsWhatIsLeftWhenItStops) {
  auto held = std::make_shared<int>(1);
  ThreadPool pool(2);
  pool.Schedule(std::chrono::hours(1), [held] { FAIL(); });
  EXPECT_EQ(held.use_count(), 2);
  pool.Stop();
  EXPECT_EQ(held.use_count(), 1);
  pool.Schedule([] { FAIL(); });
  pool.Stop();
}

// Work schedules work, now and later, from all threads at once.
TEST(ThreadPoolTest, ACrowdsWorkRunsOnceEach) {
  constexpr int kCallers = 4;
  constexpr int kWork = 200;
  std::atomic<int> ran = 0;
  std::promise<void> all;
  ThreadPool pool(3);
  const auto run = [&] {
    if (++ran == kCallers * kWork * 2) all.set_value();
  };
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&] {
      for (int i = 0; i < kWork; ++i) {
        pool.Schedule([&, i] {
          run();
          pool.Schedule(std::chrono::microseconds(i % 3 * 50), run);
        });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  all.get_future().wait();
  pool.Stop();
  EXPECT_EQ(ran, kCallers * kWork * 2);
}

// Whoever took one work must not leave the rest to nobody, however many wake-ups met one thread.
TEST(ThreadPoolTest, WorkMayWaitForOtherWorkWhileAThreadIsFree) {
  for (int round = 0; round < 200; ++round) {
    ThreadPool pool(3);
    std::promise<void> first;
    std::promise<void> second;
    std::promise<void> done;
    const auto delay = std::chrono::microseconds(round % 5 * 50);
    pool.Schedule(delay, [&] {
      EXPECT_EQ(first.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
      done.set_value();
    });
    pool.Schedule(delay, [&] {
      EXPECT_EQ(second.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
      first.set_value();
    });
    pool.Schedule(delay + std::chrono::microseconds(round % 3 * 100), [&] { second.set_value(); });
    done.get_future().wait();
  }
}

TEST(ThreadPoolTest, StopsWhileOthersSchedule) {
  for (int round = 0; round < 20; ++round) {
    auto held = std::make_shared<int>(1);
    ThreadPool pool(2);
    std::atomic<bool> stopped = false;
    std::promise<void> first;
    std::thread caller([&] {
      pool.Schedule([&] { first.set_value(); });
      while (!stopped) pool.Schedule(std::chrono::microseconds(10), [held] {});
    });
    first.get_future().wait();
    pool.Stop();
    stopped = true;
    caller.join();
    EXPECT_EQ(held.use_count(), 1);
  }
}

}  // namespace
}  // namespace strata::app
