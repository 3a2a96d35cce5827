// How much of a verification is done on one snapshot. Internal to this folder.
#pragma once

#include <chrono>
#include <cstdint>

#include "schemas/base/clock.h"

namespace strata::versioning {

class SnapshotBudget {
 public:
  SnapshotBudget(const Clock& clock, std::chrono::steady_clock::time_point until, int64_t items)
      : clock_(clock), until_(until), items_(items) {}

  // Takes one version, request or ledger entry.
  void Take(int64_t items = 1) { taken_ += items; }
  bool used_up() const { return taken_ >= items_ || clock_.SteadyNow() >= until_; }
  int64_t taken() const { return taken_; }
  UnixMicros now() const { return clock_.Now(); }

 private:
  const Clock& clock_;
  const std::chrono::steady_clock::time_point until_;
  const int64_t items_;
  int64_t taken_ = 0;
};

}  // namespace strata::versioning
