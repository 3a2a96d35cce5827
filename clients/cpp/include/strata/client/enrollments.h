// Enrollments: sets inside documents. They end right although messages arrive in any order.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "strata/client/documents.h"
#include "strata/client/range.h"

namespace strata::client {

enum class EnrollmentResult {
  kUnspecified = 0,  // see ApplyResult::status
  kApplied = 1,
  kSuperseded = 2,
  kDuplicate = 3,
  kConflict = 4,
  kBelowFloor = 5,
};

enum class EnrollmentOperation { kUnspecified = 0, kEnroll = 1, kUnenroll = 2 };

// Of Enroll and Unenroll. `collection` empty: "students"; `set` empty: "classes".
struct EnrollOptions {
  std::string collection = {};
  std::string set = {};
  std::string actor = {};
  std::string on_behalf_of = {};
  std::string reason = {};
  std::map<std::string, std::string> labels = {};
};

struct Enrolled {
  EnrollmentResult result = EnrollmentResult::kUnspecified;
  bool enrolled = false;  // in the class, now
  int64_t version = 0;    // of the document
};

struct Enrollment {
  std::string class_name = {};
  int64_t sequence_number = 0;
  bool enrolled = false;
};

struct StudentEnrollments {
  std::vector<Enrollment> enrollments = {};
  int64_t version = 0;  // 0: there is no document
};

struct GetEnrollmentsOptions {
  std::string collection = {};
  std::string set = {};
  bool include_tombstones = false;
};

struct RosterEntry {
  std::string student_id = {};
  int64_t sequence_number = 0;
  int64_t version = 0;
};

struct RosterOptions {
  std::string collection = {};
  std::string set = {};
  std::optional<absl::Time> at_time = {};
  int32_t page_size = 0;
};

// One message of a producer.
struct EnrollmentMessage {
  std::string student_id = {};
  std::string class_name = {};
  int64_t sequence_number = 0;
  EnrollmentOperation operation = EnrollmentOperation::kUnspecified;
  std::string collection = {};
  std::string set = {};
  ChangeInfo change = {};
};

// The result of one message.
struct ApplyResult {
  EnrollmentResult result = EnrollmentResult::kUnspecified;
  bool enrolled = false;
  int64_t version = 0;
  absl::Status status = {};  // not OK: the message was refused
};

// A stream of messages, answered in their order. At most 1,000 messages are on their way. After a
// broken connection, unanswered messages are sent again. One thread may send while another one
// takes results. One thread may also do both, in any order: results are kept until they are taken.
class ApplyStream {
 public:
  explicit ApplyStream(std::shared_ptr<Core> core);
  ApplyStream(ApplyStream&&) noexcept;
  ApplyStream& operator=(ApplyStream&&) noexcept;
  // Gives up messages under way.
  ~ApplyStream();

  // Waits while 1,000 messages are not answered. Not OK: the stream has failed.
  absl::Status Send(const EnrollmentMessage& message);
  // There will be no more messages.
  void Finish();
  // The result of the next message, waited for. Nothing: all are answered after Finish, or the
  // stream has failed (status()).
  std::optional<ApplyResult> Next();
  absl::Status status() const;

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

struct PurgeOptions {
  std::string collection = {};
  std::string student_id = {};  // empty: all
  std::string set = {};
  std::vector<std::string> queues = {};
  std::string actor = {};
  std::string on_behalf_of = {};
  std::string reason = {};
  std::map<std::string, std::string> labels = {};
};

struct Purged {
  int64_t examined = 0;
  int64_t purged_students = 0;
  int64_t purged_tombstones = 0;
  std::vector<std::string> refused_student_ids = {};
  int64_t through_sequence_number = 0;
};

// Thread-safe. All of these may be repeated at will, and the client repeats them.
class Enrollments {
 public:
  explicit Enrollments(std::shared_ptr<Core> core) : core_(std::move(core)) {}

  absl::StatusOr<Enrolled> Enroll(const std::string& student_id, const std::string& class_name,
                                  int64_t sequence_number, const EnrollOptions& options = {}) const;
  absl::StatusOr<Enrolled> Unenroll(const std::string& student_id, const std::string& class_name,
                                    int64_t sequence_number,
                                    const EnrollOptions& options = {}) const;
  absl::StatusOr<StudentEnrollments> Get(const std::string& student_id,
                                         const GetEnrollmentsOptions& options = {}) const;
  Range<RosterEntry> Roster(const std::string& class_name, const RosterOptions& options = {}) const;
  ApplyStream Apply() const;
  // Page after page, until all students were looked at.
  absl::StatusOr<Purged> PurgeTombstones(int64_t through_sequence_number,
                                         const PurgeOptions& options = {}) const;

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace strata::client
