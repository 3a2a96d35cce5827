// SHA-256, as FIPS 180-4 has it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

namespace strata {

using Hash = std::array<uint8_t, 32>;

inline std::string_view HashBytes(const Hash& hash) {
  return {reinterpret_cast<const char*>(hash.data()), hash.size()};
}

// The hash of bytes that come piece by piece; where a piece ends makes no difference.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  Sha256& Update(std::string_view bytes);
  // The hash of all bytes so far. REQUIRES: called once.
  Hash Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace strata
