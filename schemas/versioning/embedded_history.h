// EMBEDDED_HISTORY with a limit of the caller's choice, for tests.
#pragma once

#include <cstddef>
#include <memory>

#include "schemas/versioning/strategy.h"

namespace strata::versioning {

// The size that a document's record may reach: below every engine's cap, MongoDB's 16 MB the least.
inline constexpr size_t kEmbeddedBytesMax = 12'000'000;

std::unique_ptr<Strategy> MakeEmbeddedHistory(size_t record_bytes_max);

}  // namespace strata::versioning
