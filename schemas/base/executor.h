// Where work goes that must not run on the caller's thread, or not yet.
#pragma once

#include <chrono>
#include <functional>

namespace strata {

// Runs functions later, on threads of its own. Thread-safe. `schemas/` has no threads; whoever
// builds its objects hands them an executor.
class Executor {
 public:
  virtual ~Executor() = default;
  // Runs `work` once, `delay` from now at the earliest. A negative delay counts as none.
  virtual void Schedule(std::chrono::microseconds delay, std::function<void()> work) = 0;

  void Schedule(std::function<void()> work) {
    Schedule(std::chrono::microseconds(0), std::move(work));
  }
};

}  // namespace strata
