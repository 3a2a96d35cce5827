// One line of the log for a call: the failed ones, and all at level debug.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>

#include "service/observability/call_observer.h"

namespace strata::observability {

class AccessLog final : public CallObserver {
 public:
  // Of the failed calls of one second no more are told: a caller must not fill the log. Before the
  // next line stands how many were not.
  static constexpr int kFailuresASecondMax = 100;

  // Failures that the server is to blame for are warnings, those of the caller's making
  // information.
  void OnEnd(const CallEnd& end) override;

 private:
  bool MayTell(CallEnd::Time now);

  std::mutex mutex_;  // guards what follows
  CallEnd::Time second_{};
  int told_ = 0;  // in that second
  int64_t untold_ = 0;
};

}  // namespace strata::observability
