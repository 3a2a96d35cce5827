// Entries of the ledger between two times, in either direction. Internal to this folder.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/store/ledger_block.h"
#include "schemas/store/store.h"

namespace strata::versioning {

// What the ledger surely does not hold outside: entries within may still be of other times, since
// times follow positions only roughly.
struct LedgerSpan {
  std::optional<UnixMicros> start_time;
  std::optional<UnixMicros> end_time;  // exclusive
};

// Not thread-safe; must not outlive its reader.
//
//   while (entries->Next()) …
//   check entries->status()
class LedgerEntries {
 public:
  virtual ~LedgerEntries() = default;

  virtual bool Next() = 0;
  // Why the walk ended: RECORD_CORRUPT, STORE_UNAVAILABLE.
  virtual absl::Status status() const = 0;

  // Of the entry moved to; the views live until Next.
  virtual const store::LedgerEntryView& entry() const = 0;
  virtual store::CommitPosition position() const = 0;
  virtual uint32_t index() const = 0;
};

// From the entry `index` of the commit at `position` on, or the first one after it.
absl::StatusOr<std::unique_ptr<LedgerEntries>> LedgerUpward(const store::Reader& reader,
                                                            store::CommitPosition position,
                                                            uint32_t index, const LedgerSpan& span);

// From the entry `index` of the commit at `position` down to those of the commit at `lowest`, or
// the first one before it; position 0: from the newest entry.
absl::StatusOr<std::unique_ptr<LedgerEntries>> LedgerDownward(const store::Reader& reader,
                                                              store::CommitPosition position,
                                                              uint32_t index,
                                                              store::CommitPosition lowest,
                                                              const LedgerSpan& span);

}  // namespace strata::versioning
