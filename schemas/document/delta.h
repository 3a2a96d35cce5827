// Deltas: how the next version of a document is stored as its difference from the one before.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "schemas/document/content.h"

namespace strata::document {

// A BSON document, readable for a person, with ApplyDelta(base, EncodeDelta(base, next)) == next to
// the byte: same members, same order, same types. It holds the changed members with their new
// values, down to the member that changed, and the names of the removed ones; array changes as
// splices, reordered members by name. Never larger than `next` by more than 8 bytes. O(n log n).
// Its grammar stands in delta.cc.
std::string EncodeDelta(const Content& base, const Content& next);

// RECORD_CORRUPT if `delta` is no delta of `base`, or leads past Limits::kBytesCeiling. Safe on any
// bytes; costs as much as reading base and delta once.
absl::StatusOr<Content> ApplyDelta(const Content& base, std::string_view delta);

}  // namespace strata::document
