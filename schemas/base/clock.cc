#include "schemas/base/clock.h"

#include <openssl/rand.h>

#include <cstdlib>

namespace strata {
namespace {

class SystemClock final : public Clock {
 public:
  UnixMicros Now() const override {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  std::chrono::steady_clock::time_point SteadyNow() const override {
    return std::chrono::steady_clock::now();
  }
};

class SystemEntropy final : public Entropy {
 public:
  std::string Bytes(size_t count) override {
    std::string bytes(count, '\0');
    // Fails only where the machine has no randomness at all; a guessable salt would be worse than
    // no process.
    if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) != 1)
      std::abort();
    return bytes;
  }
};

}  // namespace

const Clock& Clock::System() {
  static const auto* const clock = new SystemClock();
  return *clock;
}

Entropy& Entropy::System() {
  static auto* const entropy = new SystemEntropy();
  return *entropy;
}

}  // namespace strata
