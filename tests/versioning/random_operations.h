// Long sequences of writes that a seed repeats.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "tests/versioning/operations.h"

namespace strata::versioning::checks {

class RandomOperations {
 public:
  explicit RandomOperations(uint64_t seed) : generator_(seed) {}

  // One that applies to a document with `versions` versions, the last of which is `live`.
  Operation Next(int64_t versions, bool live);

 private:
  uint64_t Below(uint64_t bound) { return generator_() % bound; }
  std::string Value(int depth);
  std::string Name(std::string_view what);

  std::mt19937_64 generator_;
  int made_ = 0;
};

}  // namespace strata::versioning::checks
