// Enrollments: messages with sequence numbers, applied to students' documents over the only write
// path.
//
// A message is one more function handed to Documents::Modify, so compare-and-swap, combining,
// history, diff, audit and the chain of hashes hold for it as for any update. There is no lock and
// no second mechanism: a message that is repeated, late or early finds in the document what it has
// to know (sequence_guard.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/enrollment/sequence_guard.h"
#include "schemas/versioning/documents.h"

namespace strata::enrollment {

inline constexpr std::string_view kDefaultCollection = "students";

struct ApplyRequest {
  DocumentName student;
  Message message;
  versioning::ChangeInfo change;
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  const Waiter* waiter = nullptr;  // as of a WriteRequest
};

// INVALID_NAME, INVALID_FIELD with the name that the field has in an EnrollRequest.
absl::Status ValidateMessage(std::string_view student_id, const Message& message);

struct MessageOutcome {
  Result result = Result::kApplied;
  bool enrolled = false;
};

// The change that applies one message to the student's document; its note is the Result. What was
// decided last is in `outcome` then, unless that is null. ENROLLMENT_SHAPE, DOCUMENT_DELETED,
// INVALID_CONTENT, DOCUMENT_TOO_LARGE.
versioning::Mutator MessageMutator(DocumentName student, Message message,
                                   const document::Limits& limits,
                                   std::shared_ptr<MessageOutcome> outcome);

struct Applied {
  Result result = Result::kApplied;
  bool enrolled = false;
  int64_t version = 0;  // that was written, or that it was decided on
};
using ApplyCallback = std::function<void(absl::StatusOr<Applied>)>;

struct StudentEnrollments {
  std::vector<Enrollment> all;  // tombstones too, sorted by name
  int64_t version = 0;          // 0: there is no document
};

struct RosterQuery {
  std::string collection;
  std::string set{kDefaultSet};
  std::string class_name;
  std::string after_id;
  int64_t incarnation = 0;  // as of a ListQuery
  std::optional<UnixMicros> at_time;
  StopCheck stopped = {};  // as of a ListQuery
};

// The students of a class in the byte order of their ids. As a ListCursor, also in how it goes on.
class RosterCursor {
 public:
  // Enrollments::Roster. The documents must outlive it.
  RosterCursor(const versioning::Documents& documents, const RosterQuery& query);

  bool Next();

  // Of the student moved to, until the next Next.
  const std::string& student_id() const { return students_.id(); }
  const Enrollment& enrollment() const { return *enrollment_; }
  int64_t version() { return students_.version().header.version; }

  std::optional<std::string> resume_after() const { return students_.resume_after(); }
  int64_t incarnation() const { return students_.incarnation(); }
  int64_t examined() const { return students_.examined(); }
  const absl::Status& status() const { return refusal_.ok() ? students_.status() : refusal_; }

 private:
  RosterCursor(const versioning::Documents& documents, const RosterQuery& query,
               absl::StatusOr<versioning::ListQuery> list);

  const absl::Status refusal_;
  const std::string set_;
  const std::string class_name_;
  versioning::ListCursor students_;
  std::optional<Enrollment> enrollment_;
};

struct PurgeRequest {
  std::string collection;
  std::string student_id;  // empty: every student
  std::string set{kDefaultSet};
  int64_t through = 0;
  versioning::ChangeInfo change;
  std::string after_id;     // every student: those after this one
  int64_t incarnation = 0;  // as of a ListQuery
  StopCheck stopped = {};   // every student: asked for each that is looked at; then CANCELLED
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  const Waiter* waiter = nullptr;  // as of a WriteRequest
};

struct Purged {
  int64_t examined = 0;
  int64_t students = 0;
  int64_t tombstones = 0;
  // The first kRefusedMax that could not be purged for what their own documents are.
  std::vector<std::string> refused;
  int64_t incarnation = 0;                  // of the collection
  std::optional<std::string> resume_after;  // set: there may be more after this student
};
using PurgeCallback = std::function<void(absl::StatusOr<Purged>)>;

// A purge of every student looks at no more than this many in one call.
inline constexpr int64_t kPurgeExaminedMax = 1000;
inline constexpr size_t kRefusedMax = 10;

// Thread-safe. All: COLLECTION_NOT_FOUND (but Apply makes the collection), INVALID_NAME and
// INVALID_FIELD naming the request's field, and what Documents answers.
class Enrollments {
 public:
  // Must outlive it and every write in flight.
  explicit Enrollments(versioning::Documents& documents) : documents_(documents) {}

  // Applies one message; makes the document of an unknown student. ENROLLMENT_SHAPE;
  // DOCUMENT_DELETED as FAILED_PRECONDITION. A message whose outcome is unknown may be applied
  // again.
  void Apply(ApplyRequest request, ApplyCallback done);

  // A student without document, or with a deleted one, has no enrollments. ENROLLMENT_SHAPE.
  // TakesLong past the limits.
  absl::StatusOr<StudentEnrollments> Get(const DocumentName& student, const std::string& set,
                                         const versioning::ReadLimits& limits = {}) const;

  RosterCursor Roster(const RosterQuery& query) const { return {documents_, query}; }

  // Removes tombstones. Of one student: DOCUMENT_NOT_FOUND, DOCUMENT_DELETED, ENROLLMENT_SHAPE. Of
  // every student: reads on the caller's thread, up to kPurgeExaminedMax documents; deleted ones
  // are passed over.
  void Purge(PurgeRequest request, PurgeCallback done);

 private:
  class CollectionPurge;

  absl::StatusOr<std::vector<std::string>> FindTombstones(const PurgeRequest& request,
                                                          Purged& found) const;
  void PurgeStudent(const PurgeRequest& request, const std::string& student_id,
                    std::function<void(absl::StatusOr<int64_t> tombstones)> done);

  versioning::Documents& documents_;
};

}  // namespace strata::enrollment
