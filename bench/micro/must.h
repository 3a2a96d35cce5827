// For benchmarks: what must not fail ends the program if it does, as there is nothing to measure.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace strata::bench {

inline void Must(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "strata_micro: %s\n", status.ToString().c_str());
  std::exit(1);
}

template <typename T>
T Must(absl::StatusOr<T> result) {
  Must(result.status());
  return *std::move(result);
}

}  // namespace strata::bench
