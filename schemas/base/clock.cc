#include "schemas/base/clock.h"

#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <span>

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

// Fails only where the machine has no randomness at all; a guessable salt would be worse than no
// process.
void Fill(std::span<char> bytes) {
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size())) !=
      1) {
    std::abort();
  }
}

// A call of libcrypto costs a microsecond whether it is asked for 16 bytes or for a thousand, so
// each thread draws ahead. What was given out is wiped.
class SystemEntropy final : public Entropy {
 public:
  std::string Bytes(size_t count) override {
    thread_local std::array<char, 1024> ahead;
    thread_local size_t used = ahead.size();
    std::string bytes(count, '\0');
    if (count > ahead.size()) {
      Fill(bytes);
      return bytes;
    }
    if (count > ahead.size() - used) {
      Fill(ahead);
      used = 0;
    }
    const auto from = ahead.begin() + static_cast<std::ptrdiff_t>(used);
    const auto to = from + static_cast<std::ptrdiff_t>(count);
    std::copy(from, to, bytes.begin());
    std::fill(from, to, '\0');
    used += count;
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
