#include "tests/support/seeded_entropy.h"

#include <cstdlib>

namespace strata::test_support {

uint64_t TestSeed() {
  const char* text = std::getenv("STRATA_SEED");
  if (text != nullptr) return std::strtoull(text, nullptr, 10);
  return std::random_device{}();
}

}  // namespace strata::test_support
