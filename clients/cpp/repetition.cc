// RetryDelayMs with a clock and chance, so that callers that failed together do not return
// together.
#include "clients/cpp/repetition.h"

namespace strata::client {

std::optional<Repetition::Clock::time_point> Repetition::Next(const Refusal& refusal, int attempts,
                                                              Clock::time_point first) {
  using std::chrono::milliseconds;
  const double random = std::uniform_real_distribution<double>(0, 1)(random_);
  const auto next = Clock::now() + milliseconds(RetryDelayMs(refusal, attempts, random));
  if (next - first > milliseconds(retry_ms_)) return std::nullopt;
  return next;
}

}  // namespace strata::client
