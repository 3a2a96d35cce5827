// What all consumers of a process work with. Internal to this folder.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "schemas/base/clock.h"
#include "schemas/base/doors.h"
#include "schemas/base/executor.h"
#include "schemas/feed/feed.h"
#include "schemas/feed/subscriptions.h"
#include "schemas/lease/leases.h"
#include "schemas/store/store.h"

namespace strata::feed {

// Of one subscription, on this server since it started.
struct ConsumerCounts {
  std::atomic<int64_t> events_acknowledged = 0;
  std::atomic<int64_t> acknowledging_commits = 0;
  std::atomic<int64_t> take_overs = 0;
};

// Everything but the doors may be gone once these are closed. Thread-safe. Keep it in a shared_ptr:
// work in flight holds it.
struct ConsumerWorkshop : std::enable_shared_from_this<ConsumerWorkshop> {
  ConsumerWorkshop(store::Store& its_store, Feed& its_feed, lease::Leases& its_leases,
                   const Clock& its_clock, Entropy& its_entropy, Executor& its_executor,
                   const SubscriptionsOptions& its_options)
      : store(its_store),
        feed(its_feed),
        leases(its_leases),
        clock(its_clock),
        entropy(its_entropy),
        executor(its_executor),
        options(its_options) {}

  // Runs `work` on the executor, unless the doors are closed by then; then it is dropped.
  template <typename Work>
  void Later(std::chrono::microseconds delay, Work work) {
    Later(delay, std::move(work), [] {});
  }
  template <typename Work>
  void Later(Work work) {
    Later(std::chrono::microseconds(0), std::move(work));
  }
  // The same; `otherwise` instead of dropping it.
  template <typename Work, typename Otherwise>
  void Later(std::chrono::microseconds delay, Work work, Otherwise otherwise) {
    ScheduleInside({shared_from_this(), &doors}, executor, delay, std::move(work),
                   std::move(otherwise));
  }

  store::Store& store;
  Feed& feed;
  lease::Leases& leases;
  const Clock& clock;
  Entropy& entropy;
  Executor& executor;
  const SubscriptionsOptions options;
  Doors doors;
};

}  // namespace strata::feed
