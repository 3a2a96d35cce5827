// Time and chance as the code sees them, so that a test can own both.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace strata {

// Microseconds since 1970-01-01T00:00:00Z: the resolution of every time that Strata stores.
using UnixMicros = int64_t;

// Clocks that agree to this count as one, and one that is set back by less was adjusted.
inline constexpr std::chrono::microseconds kClockTolerance = std::chrono::seconds(1);

// Where "now" comes from. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // The wall clock. It may jump. What was stored when is told by it, and so is what depends on such
  // times: `at_time`, and (by age_clock.h) for how long request ids are remembered; never which
  // version is which, nor whether a write may take effect.
  virtual UnixMicros Now() const = 0;
  // For deadlines and delays; never goes back.
  virtual std::chrono::steady_clock::time_point SteadyNow() const = 0;

  // The machine's clock; lives for ever.
  static const Clock& System();
};

// Where random bytes come from (salts, ids, jitter). Thread-safe.
class Entropy {
 public:
  virtual ~Entropy() = default;
  // `count` random bytes.
  virtual std::string Bytes(size_t count) = 0;

  // The machine's generator, fit for salts and ids; lives for ever.
  static Entropy& System();
};

}  // namespace strata
