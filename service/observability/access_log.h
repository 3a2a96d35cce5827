// One line of the log for a call: every failed one, and all at level debug.
#pragma once

#include "service/observability/call_observer.h"

namespace strata::observability {

class AccessLog final : public CallObserver {
 public:
  // Failures that the server is to blame for are warnings, those of the caller's making
  // information.
  void OnEnd(const CallEnd& end) override;
};

}  // namespace strata::observability
