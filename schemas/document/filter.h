// MongoDB's query filters, evaluated on documents.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "schemas/base/stop.h"
#include "schemas/document/content.h"

namespace strata::document {

struct FilterTree;

// A filter that was checked and compiled. Copies share it. Thread-safe, as it never changes.
//
// Operators: $eq $ne $gt $gte $lt $lte $in $nin $exists $type $size $regex ($options) $elemMatch
// $all $not under a member name, $and $or $nor beside member names. They mean what they mean in
// MongoDB 6 and 7 without a collation; compare.h has the order of values. What may surprise:
//
// - $gt, $gte, $lt, $lte match values of their operand's type only; all numbers are one type and
//   compare by their exact value. $gte and $lte null match null and what is missing.
//   A minKey or maxKey as operand compares with values of every type.
// - A condition on an array holds if it holds for an element or for the array as a whole; $size and
//   $elemMatch ask the array only. $ne, $nin and $not hold exactly if $eq, $in and the condition
//   inside do not: they match what is missing, and an array only if no element is in the way.
// - {"a": null} also matches a missing member; {"a": {"$type": "null"}} does not.
// - Two objects are equal only if their members stand in the same order. (What comes as JSON has
//   them sorted, struct_codec.h.)
// - A bare regex matches strings, and a regex value that is the same; {"$eq": regex} the latter
//   only.
// - An object whose first member begins with "$" holds operators, unless it is a reference ($ref
//   with $id). {"$eq": object} compares with any object, whatever its names.
//
// A name is a dotted path; one that begins with "/" is a JSON Pointer, for members whose names have
// dots, are empty or begin with "$" or "/". Either way digits are an index in an array and a name
// in an object, and a name that meets an array goes on in each of its objects. (An element that an
// index names last is not searched for its own elements.)
//
// Otherwise than in MongoDB:
//
// - Regular expressions have RE2's syntax: no backreferences, no lookaround, no possessive
//   quantifiers; without the option m, "$" is the end of the text only, not also before a newline
//   there. Options are i, m and s.
// - An object that names an operator of the above after other members is refused, as it is likely
//   meant as one; {"$eq": object} says that it is not.
// - Paths with empty segments are refused.
class Filter {
 public:
  static constexpr size_t kBytesMax = size_t{64} << 10;  // of the filter's BSON
  static constexpr int kClausesMax = 1000;  // conditions, and values of $in/$nin/$all, together
  static constexpr int kDepthMax = 16;      // nested $and/$or/$nor/$not/$elemMatch
  static constexpr size_t kPathSegmentsMax = 64;
  static constexpr size_t kPatternBytesMax = 1024;  // of one regular expression
  static constexpr int kPatternsMax = 100;
  // Instructions of all compiled regular expressions: what one byte of text may cost at the worst.
  static constexpr int kPatternSizeMax = 2000;

  // INVALID_FILTER with metadata "path" (JSON Pointer into the filter), "problem" and perhaps
  // "limit", and a message that says what to write instead.
  static absl::StatusOr<Filter> Compile(const Content& filter);

  // Instructions of a compiled regular expression times bytes of the text that it is searched in:
  // some seconds' tenths at the worst, in which nothing can stop it.
  static constexpr size_t kSearchWorkMax = size_t{200} << 20;

  // REQUIRES: no text is too long for its regular expression, as below.
  bool Matches(const Content& content) const;
  // CANCELLED: it was stopped first. Asks `stopped` between conditions, now and then between array
  // elements, and before each search of a regular expression. INVALID_FILTER: a regular expression
  // would have to be searched in a text that is too long for it, kSearchWorkMax.
  absl::StatusOr<bool> Matches(const Content& content, const StopCheck& stopped) const;

  // What Matches costs at the worst on a document of that size, known before it begins: each
  // byte is looked at by each condition, and by each instruction of a regular expression.
  size_t WorkBytes(size_t document_bytes) const { return work_per_byte_ * document_bytes; }

  // The filter as it was given: equal bytes for equal filters.
  std::string_view bytes() const;

  // Whether it matches everything: the filter without members.
  bool empty() const;

 private:
  explicit Filter(std::shared_ptr<const FilterTree> tree);

  std::shared_ptr<const FilterTree> tree_;  // never null
  size_t work_per_byte_;
};

}  // namespace strata::document
