// The rule by which messages with sequence numbers, in any order and several times each, lead to
// the same enrollments: a pure function from a student's content and a message to the next content.
//
// Kept for each class is the highest number seen and the operation that came with it; a student is
// enrolled iff that was enroll. Of two messages about one class the higher number counts, and at
// equal numbers unenroll. The maximum of such pairs does not depend on order or repetition, so for
// every permutation and every duplication of a set of messages the content is the same (member
// order aside, where messages are about several sets of one document: each stands where it was
// first written).
//
//   content = { student_id: string, <set>: [ entry … ], deleted_<set>: [ entry … ],
//               purged_through: int64 (absent: 0), … whatever else … }
//   entry   = { name: string, seq: int64 }       sorted by the bytes of the names, no name twice
//
// An entry of <set> is an enrollment, one of deleted_<set> a tombstone. Read besides: a mere string
// in place of an entry, as sequence 0; integers of either width; another order. For another set
// than "classes" the floor is in purged_through_<set>.
//
// Source: the article "Data consistency with asynchronous queues", whose update by filter this rule
// replaces: its filter loses enrollments when an older unenroll comes last.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/document/content.h"

namespace strata::enrollment {

inline constexpr std::string_view kDefaultSet = "classes";

enum class Operation { kEnroll, kUnenroll };

// The numbers equal strata.v1.EnrollmentResult.
enum class Result {
  kApplied = 1,     // the newest of its class: recorded, even where the visible state stays
  kSuperseded = 2,  // older than what is recorded
  kDuplicate = 3,   // what is recorded
  kConflict = 4,    // as old as what is recorded, but the other operation: unenroll counts
  kBelowFloor = 5,  // not above the floor, and the class is not known any more: refused
};

struct Message {
  std::string set{kDefaultSet};
  std::string class_name;
  int64_t sequence_number = 0;
  Operation operation = Operation::kEnroll;
};

struct Enrollment {
  std::string class_name;
  int64_t sequence_number = 0;
  bool enrolled = false;

  friend bool operator==(const Enrollment&, const Enrollment&) = default;
};

// What a student's content says about one set.
struct EnrollmentSet {
  std::vector<Enrollment> all;  // tombstones too, sorted by name
  int64_t purged_through = 0;
};

// ENROLLMENT_SHAPE with metadata "path" if a member is not what it has to be.
absl::StatusOr<EnrollmentSet> ReadEnrollments(const document::Content& student,
                                              std::string_view set);

// The enrollment in one class, whatever is wrong with other entries; nothing if there is none.
std::optional<Enrollment> FindEnrollment(const document::Content& student, std::string_view set,
                                         std::string_view class_name);

struct Decision {
  Result result = Result::kApplied;
  bool enrolled = false;
  document::Content content;  // the same as before unless the message took effect
};

// Applies one message. A content without student_id gets it. ENROLLMENT_SHAPE as above;
// INVALID_CONTENT or DOCUMENT_TOO_LARGE if the result passes `limits`.
absl::StatusOr<Decision> ApplyMessage(const document::Content& student, std::string_view student_id,
                                      const Message& message, const document::Limits& limits);

struct Purge {
  int64_t tombstones = 0;     // that are gone
  document::Content content;  // the same as before if none is
};

// Removes the tombstones of `set` up to `through` and, if there were any, keeps the floor. Errors
// as of ApplyMessage: entries that were mere strings grow.
absl::StatusOr<Purge> PurgeTombstones(const document::Content& student, std::string_view set,
                                      int64_t through, const document::Limits& limits);

// INVALID_FIELD unless a set may have this name: 1 to 64 letters, digits, "_" and "-", no name of
// the members that are kept beside a set.
absl::Status ValidateSet(std::string_view set);

}  // namespace strata::enrollment
