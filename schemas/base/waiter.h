// Whoever waits for the answer to a piece of work, as far as the work concerns them.
#pragma once

#include <functional>

#include "absl/status/status.h"

namespace strata {

// Thread-safe.
class Waiter {
 public:
  // Nobody waits any more.
  virtual bool gone() const = 0;

  // Runs `work` later, where it may take long, when it is this one's turn. OVERLOADED, and it never
  // runs.
  virtual absl::Status Defer(std::function<void()> work) const = 0;

  // The same for all who share their turns, and nobody else's while anything that one of them
  // deferred has not run.
  virtual const void* line() const = 0;

 protected:
  Waiter() = default;
  ~Waiter() = default;
};

}  // namespace strata
