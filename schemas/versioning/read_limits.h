// How far a read may go.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "schemas/base/stop.h"

namespace strata::versioning {

// What a read ends with that would pass a limit; for whoever set the limit, and for nobody else.
absl::Status TakesLong();
bool DoesTakeLong(const absl::Status& status);

struct ReadLimits {
  StopCheck stopped = {};  // asked while many records are gone through; then CANCELLED

  // For threads that others wait for: what takes longer ends with TakesLong, to be read again
  // elsewhere.
  size_t document_bytes_max = SIZE_MAX;  // of a head's record, or of the version that is asked for
  size_t rebuilt_bytes_max = SIZE_MAX;   // of contents that are rebuilt on the way to it
  // Versions are looked for by their time, which reads others on the way, of sizes that are not
  // known before.
  bool searches = true;
};

// About as much as others may wait for.
inline constexpr size_t kBriefDocumentBytesMax = size_t{64} << 10;
inline constexpr size_t kBriefRebuiltBytesMax = size_t{512} << 10;
inline constexpr size_t kBriefPatchBytesMax = size_t{4} << 20;   // as document::WorkBytes counts
inline constexpr size_t kBriefFilterBytesMax = size_t{1} << 20;  // as Filter::WorkBytes counts
inline constexpr std::chrono::milliseconds kBriefTimeMax{3};

}  // namespace strata::versioning
