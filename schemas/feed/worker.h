// A lease with a place that this process holds, for as long as it can.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/feed/consumer_workshop.h"
#include "schemas/lease/leases.h"

namespace strata::feed {

// Renews its lease each third of the ttl and writes its state: one write is under way, the others
// wait for it in the order of their calls. What fails for a reason that passes is tried again until
// it succeeds or another has the lease. Thread-safe. Keep it in a shared_ptr: work in flight holds
// it.
//
// Callbacks come on the executor, with no lock held.
class Worker : public std::enable_shared_from_this<Worker> {
 public:
  // As of each renewal: what is to be written with it. On the executor, with no lock held.
  using Refresh = std::function<void(lease::State& state)>;
  // Another has the lease, or it was released by a write of which that was not known. Once, unless
  // Stop was called before.
  using Lost = std::function<void(absl::Status status)>;

  explicit Worker(std::shared_ptr<ConsumerWorkshop> workshop) : workshop_(std::move(workshop)) {}

  // Takes the lease, if nobody has it. As Leases::Acquire. REQUIRES: called once, first.
  void Acquire(lease::AcquireRequest request,
               std::function<void(absl::StatusOr<lease::Lease>)> done);
  // A renewal was stored, which was begun at that time.
  using Renewed = std::function<void(std::chrono::steady_clock::time_point begun)>;
  // Begins to renew it. REQUIRES: it was acquired.
  void Begin(Refresh refresh, Lost lost, Renewed renewed = nullptr);

  struct Write {
    // As of HeldWrite.
    std::function<bool(lease::State& state)> change;
    store::JoinedPlan joined;
    lease::HeldWrite::End end = lease::HeldWrite::End::kNone;
    // LEASE_LOST; what `joined` refuses with, for good; CANCELLED after a write that ends the
    // lease. Not after Stop.
    std::function<void(absl::StatusOr<lease::HeldState>)> done;
  };
  // A write that ends the lease is the last one.
  void Submit(Write write);

  // Does nothing from now on; what is under way may still come to its end.
  void Stop();

  store::Stamp token() const { return token_; }

 private:
  void Next();
  void Run(const std::shared_ptr<Write>& write);
  void End(const std::shared_ptr<Write>& write, absl::StatusOr<lease::HeldState> result);
  void RenewLater();
  void Renew();

  const std::shared_ptr<ConsumerWorkshop> workshop_;
  // Set before Begin, and constant from then on.
  std::string name_;
  std::chrono::microseconds ttl_{0};
  store::Stamp token_ = 0;

  std::mutex mutex_;  // guards what follows
  Refresh refresh_;
  Lost lost_;
  Renewed renewed_;
  std::deque<std::shared_ptr<Write>> writes_;  // the first is under way, if `writing_`
  bool writing_ = false;
  bool ended_ = false;     // nothing more is submitted
  bool renewing_ = false;  // a renewal is to come
};

}  // namespace strata::feed
