// What a parked document has to be delivered again. Internal to this folder.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/feed/event.h"
#include "schemas/feed/feed.h"
#include "schemas/feed/subscription.h"
#include "schemas/lease/place.h"
#include "schemas/store/store.h"

namespace strata::feed {

struct ReplayStep {
  std::optional<Event> event;  // nothing: none is wanted
  // The version to go on with when the event is taken, or now if there is none.
  int64_t next_version = 0;
  bool more = false;  // there may be more after that; else there is nothing up to the place
};

// The first wanted version of the document from its from_version on whose event lies at or before
// `up_to`, as an event where it stands in the ledger; at index 0 where the ledger was trimmed.
// Looks at a bounded number of versions, for a bounded time. RECORD_CORRUPT, STORE_UNAVAILABLE,
// CANCELLED.
absl::StatusOr<ReplayStep> FindReplay(store::Store& store, versioning::Collections& collections,
                                      const Clock& clock, const WatchQuery& query,
                                      const ParkedDocument& parked, const lease::Place& up_to,
                                      const StopCheck& stopped);

}  // namespace strata::feed
