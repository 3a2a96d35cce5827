// Deltas: how the next version of a document is stored as its difference from the one before.
//
// A delta is a BSON document; each member is one change. Its name says what is done and where, its
// value is the new value:
//
//   delta    = { edit } { place }
//   edit     = "=" pointer                 : value    the member or element becomes the value
//            | "-" pointer                 : null     the member is removed
//            | "~" pointer                 : delta    what changes inside an object or array
//            | "*" index ":" count pointer : array    in the array at `pointer`: so many elements,
//                                                     from `index` on, make room for the array's
//            | place whose pointer has a parent: it happens in the object that the parent names
//   place    = "+" [ index ] pointer       : value    a new member
//            | ">" [ index ] pointer       : null     a member of the base takes another place
//   pointer  = { "/" segment }                        RFC 6901; empty only in "=", and in "*"
//                                                     inside the delta of an array
//   index, count = digit { digit }
//
// Pointers are relative to the object or array that the delta belongs to; elements are named by
// their index in the base, and so are those of "*". Edits stand in the base's order and each begins
// with another segment. Places stand in the order of the result: with an index, the member becomes
// the one of that number in the resulting object; without, it comes after all others. Whatever is
// not mentioned stays, in the base's order. So
//
//   {"title": "Moby", "stock": 3, "tags": ["sea", "whale"], "by": {"first": "H.", "last": "M."}}
//   {"=/stock": 2, "*2:0/tags": ["classic"], "+/by/born": 1819}
//   {"title": "Moby", "stock": 2, "tags": ["sea", "whale", "classic"],
//    "by": {"first": "H.", "last": "M.", "born": 1819}}
//
// A delta that would be larger than the next version is {"=": the next version}.
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
std::string EncodeDelta(const Content& base, const Content& next);

// RECORD_CORRUPT if `delta` is no delta of `base`, or leads past Limits::kBytesCeiling. Safe on any
// bytes; costs as much as reading base and delta once.
absl::StatusOr<Content> ApplyDelta(const Content& base, std::string_view delta);

}  // namespace strata::document
