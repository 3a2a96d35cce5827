// Where the ledger begins, once it was trimmed, and who keeps it from being trimmed farther.
//
//   feed record "floor"   = { position: int64, trimmed: int64, latest: int64, hash: binary }
//   feed record "holders" = {}     written anew whenever there is somebody more to ask
//   feed record "events"  = {}     the ledger has entries of what is no version: builds that know
//                                  none stumble over this keyspace instead of misreading them
//
// The floor is raised in one commit, and only then are the blocks below it deleted. So whoever
// reads the ledger scans first and reads the floor then: what lies at or above that floor was
// there. (Read in the other order, blocks that go in between would be missed.)
//
// Who is not to miss anything joins AddFloorHolder to the commit that writes down from where on.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/base/sha256.h"
#include "schemas/store/ledger_block.h"
#include "schemas/store/store.h"

namespace strata::versioning {

struct LedgerFloor {
  // Of the first block that is kept; 0: none was ever trimmed. Every entry from here on is there,
  // the others are gone or about to go.
  store::CommitPosition position = 0;
  // The last position in the blocks below: the oldest position to resume after.
  store::CommitPosition trimmed = 0;
  UnixMicros latest = 0;       // no entry below is of a later time
  Hash hash = store::kNoHash;  // the running hash that the first block stands on
  store::Stamp stamp = 0;      // as read; not part of the value; 0: there is no record

  std::string Encode() const;
};

// RECORD_CORRUPT, STORE_UNAVAILABLE.
absl::StatusOr<LedgerFloor> ReadLedgerFloor(const store::Reader& reader);

// POSITION_TRIMMED if the floor lies above the position in the request's `field` that a reader
// wants to resume after.
absl::Status CheckKept(const LedgerFloor& floor, std::string_view field,
                       store::CommitPosition place);
// The same of a time: entries of that time or later are gone.
absl::Status CheckTimeKept(const LedgerFloor& floor, std::string_view field, UnixMicros time);

// Somebody who is still to see every entry from `position` on.
struct FloorHolder {
  store::CommitPosition position = 0;
  std::string name;  // for people, such as "subscription/mail"
};

// Whom to ask before the ledger is trimmed. Not thread-safe while one is added.
class FloorHolders {
 public:
  // Answers the lowest of many, as `reader` shows them; nothing: nobody needs anything.
  using Ask =
      std::function<absl::StatusOr<std::optional<FloorHolder>>(const store::Reader& reader)>;

  void Add(Ask ask) { asks_.push_back(std::move(ask)); }
  // The lowest of all. What any of them failed with.
  absl::StatusOr<std::optional<FloorHolder>> Lowest(const store::Reader& reader) const;

 private:
  std::vector<Ask> asks_;
};

// Adds to the batch that writes a new holder down what keeps it and the floor from passing each
// other: it does not commit if the floor was raised since `floor` was read, and a floor that was
// chosen without the holder is not raised any more. Holders that move upward need it not. REQUIRES:
// atomic batches; once a batch.
void AddFloorHolder(const LedgerFloor& floor, store::WriteBatch& batch);

inline constexpr std::string_view kLedgerFloorKey = "floor";
inline constexpr std::string_view kFloorHoldersKey = "holders";
inline constexpr std::string_view kLedgerEventsKey = "events";

}  // namespace strata::versioning
