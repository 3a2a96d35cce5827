#include "schemas/enrollment/enrollments.h"

#include <charconv>
#include <mutex>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/field_checks.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"
#include "schemas/document/bson_view.h"
#include "schemas/versioning/document_errors.h"

namespace strata::enrollment {
namespace {

using document::Content;
using versioning::CurrentState;
using versioning::Mutation;
using versioning::Mutator;
using versioning::VersionKind;

// A message has to take effect, so it tries as often as any write may.
constexpr int kAttemptsMax = 100;

// A student's id is a document's, by another name; collection and change are the documents' to
// check.
absl::Status CheckStudentId(std::string_view id) { return ValidateName("student_id", id); }

// The same refusal, naming the student.
absl::Status OfStudent(const absl::Status& status, const DocumentName& student) {
  const std::optional<ErrorReason> reason = ReasonOf(status);
  if (reason != ErrorReason::kEnrollmentShape) return status;
  Error error(*reason, ToStd(status.message()));
  for (const auto& [key, value] : MetadataOf(status)) error.With(key, value);
  return std::move(error).With("collection", student.collection).With("id", student.id);
}

absl::Status Deleted(const DocumentName& student, int64_t version) {
  return Error(ErrorReason::kDocumentDeleted,
               "the student was deleted by version " + std::to_string(version) +
                   "; a message does not bring it back, Restore or Create does")
      .With("collection", student.collection)
      .With("id", student.id)
      .With("version", version)
      .As(absl::StatusCode::kFailedPrecondition);
}

versioning::WriteRequest ToWrite(const DocumentName& student, const versioning::ChangeInfo& change,
                                 std::chrono::steady_clock::time_point deadline,
                                 const Waiter* waiter) {
  versioning::WriteRequest write;
  write.name = student;
  write.change = change;
  write.max_attempts = kAttemptsMax;
  write.deadline = deadline;
  write.waiter = waiter;
  write.brief = true;
  return write;
}

// {"$or": [{set: {"$elemMatch": {"name": class}}}, {set: class}]}: entries of either shape.
absl::StatusOr<document::Filter> InClass(const std::string& set, const std::string& class_name) {
  using document::BeginDocument;
  using document::EndDocument;
  std::string out;
  const auto open = [&](uint8_t type, std::string_view name) {
    document::AppendMemberHead(type, name, out);
    return BeginDocument(out);
  };
  const auto text = [&](std::string_view name) {
    document::AppendMemberHead(document::kBsonString, name, out);
    document::AppendStringValue(class_name, out);
  };
  const size_t root = BeginDocument(out);
  const size_t any = open(document::kBsonArray, "$or");
  const size_t entry = open(document::kBsonObject, "0");
  const size_t condition = open(document::kBsonObject, set);
  const size_t element = open(document::kBsonObject, "$elemMatch");
  text("name");
  EndDocument(element, out);
  EndDocument(condition, out);
  EndDocument(entry, out);
  const size_t plain = open(document::kBsonObject, "1");
  text(set);
  EndDocument(plain, out);
  EndDocument(any, out);
  EndDocument(root, out);
  return document::Filter::Compile(Content::FromTrusted(std::move(out)));
}

absl::StatusOr<versioning::ListQuery> ToListQuery(const RosterQuery& query) {
  RETURN_IF_ERROR(ValidateName("class_name", query.class_name));
  RETURN_IF_ERROR(ValidateSet(query.set));
  versioning::ListQuery list;
  list.collection = query.collection;
  list.after_id = query.after_id;
  list.incarnation = query.incarnation;
  list.at_time = query.at_time;
  list.stopped = query.stopped;
  ASSIGN_OR_RETURN(list.filter, InClass(query.set, query.class_name));
  return list;
}

}  // namespace

absl::Status ValidateMessage(std::string_view student_id, const Message& message) {
  RETURN_IF_ERROR(CheckStudentId(student_id));
  RETURN_IF_ERROR(ValidateName("class_name", message.class_name));
  RETURN_IF_ERROR(CheckLeast("sequence_number", message.sequence_number, 1));
  return ValidateSet(message.set);
}

versioning::Mutator MessageMutator(DocumentName student, Message message,
                                   const document::Limits& limits,
                                   std::shared_ptr<MessageOutcome> outcome) {
  return [student = std::move(student), message = std::move(message), limits,
          outcome = std::move(outcome)](const CurrentState& current) -> absl::StatusOr<Mutation> {
    if (current.version != nullptr && current.version->deleted()) {
      return Deleted(student, current.version->header.version);
    }
    const bool known = current.version != nullptr;
    absl::StatusOr<Decision> decided =
        ApplyMessage(known ? *current.version->content : Content(), student.id, message, limits);
    if (!decided.ok()) return OfStudent(decided.status(), student);
    if (outcome != nullptr) *outcome = {decided->result, decided->enrolled};
    return Mutation{known ? VersionKind::kUpdated : VersionKind::kCreated,
                    std::move(decided->content), static_cast<int32_t>(decided->result)};
  };
}

void Enrollments::Apply(ApplyRequest request, ApplyCallback done) {
  absl::Status status = ValidateMessage(request.student.id, request.message);
  if (!status.ok()) return done(std::move(status));
  versioning::WriteRequest write =
      ToWrite(request.student, request.change, request.deadline, request.waiter);
  // What was decided last, on the version that the write is then answered with.
  const auto outcome = std::make_shared<MessageOutcome>();
  Mutator mutate = MessageMutator(std::move(request.student), std::move(request.message),
                                  documents_.limits(), outcome);
  documents_.Modify(
      std::move(write), std::move(mutate),
      [outcome, done = std::move(done)](const absl::StatusOr<versioning::WriteResult>& result) {
        if (!result.ok()) return done(result.status());
        done(Applied{outcome->result, outcome->enrolled, result->version.header.version});
      });
}

absl::StatusOr<StudentEnrollments> Enrollments::Get(const DocumentName& student,
                                                    const std::string& set,
                                                    const versioning::ReadLimits& limits) const {
  RETURN_IF_ERROR(CheckStudentId(student.id));
  RETURN_IF_ERROR(ValidateSet(set));
  const absl::StatusOr<versioning::StoredVersion> version = documents_.Get(student, {}, limits);
  StudentEnrollments found;
  if (ReasonOf(version.status()) == ErrorReason::kDocumentNotFound) return found;
  if (ReasonOf(version.status()) == ErrorReason::kDocumentDeleted) {
    const std::string number = MetadataOf(version.status(), "version").value_or("0");
    std::from_chars(number.data(), number.data() + number.size(), found.version);
    return found;
  }
  RETURN_IF_ERROR(version.status());
  absl::StatusOr<EnrollmentSet> enrollments = ReadEnrollments(*version->content, set);
  if (!enrollments.ok()) return OfStudent(enrollments.status(), student);
  found.all = std::move(enrollments->all);
  found.version = version->header.version;
  return found;
}

RosterCursor::RosterCursor(const versioning::Documents& documents, const RosterQuery& query)
    : RosterCursor(documents, query, ToListQuery(query)) {}

RosterCursor::RosterCursor(const versioning::Documents& documents, const RosterQuery& query,
                           absl::StatusOr<versioning::ListQuery> list)
    : refusal_(list.status()),
      set_(query.set),
      class_name_(query.class_name),
      students_(documents.List(list.ok() ? *std::move(list) : versioning::ListQuery())) {}

bool RosterCursor::Next() {
  if (!refusal_.ok()) return false;
  while (students_.Next()) {
    enrollment_ = FindEnrollment(*students_.version().content, set_, class_name_);
    if (enrollment_) return true;
  }
  return false;
}

void Enrollments::PurgeStudent(const PurgeRequest& request, const std::string& student_id,
                               std::function<void(absl::StatusOr<int64_t>)> done) {
  const DocumentName student{request.collection, student_id};
  const auto tombstones = std::make_shared<int64_t>(0);
  auto mutate = [student, set = request.set, through = request.through,
                 limits = documents_.limits(),
                 tombstones](const CurrentState& current) -> absl::StatusOr<Mutation> {
    if (!current.live()) return versioning::NotLive(student, current.version);
    absl::StatusOr<enrollment::Purge> purge =
        PurgeTombstones(*current.version->content, set, through, limits);
    if (!purge.ok()) return OfStudent(purge.status(), student);
    *tombstones = purge->tombstones;
    return Mutation{VersionKind::kUpdated, std::move(purge->content)};
  };
  versioning::WriteRequest write =
      ToWrite(student, request.change, request.deadline, request.waiter);
  write.removal = true;
  documents_.Modify(
      std::move(write), std::move(mutate),
      [tombstones, done = std::move(done)](const absl::StatusOr<versioning::WriteResult>& result) {
        if (!result.ok()) return done(result.status());
        done(*tombstones);
      });
}

// The writes of one call: under way together, answered when the last one is through.
class Enrollments::CollectionPurge {
 public:
  // `affected` are to be purged, the first of them after `after_id`.
  CollectionPurge(Purged found, std::string after_id, std::vector<std::string> affected,
                  PurgeCallback done)
      : after_id_(std::move(after_id)),
        affected_(std::move(affected)),
        first_failed_(affected_.size()),
        purged_(std::move(found)),
        done_(std::move(done)) {}

  // Answers unless a write is still under way; each one holds the purge.
  ~CollectionPurge() {
    if (!failure_.ok() && purged_.students == 0) {
      done_(failure_);
      return;
    }
    if (!failure_.ok()) {
      // What was done is answered, and the next call meets again what failed.
      purged_.resume_after = first_failed_ == 0 ? after_id_ : affected_[first_failed_ - 1];
    }
    done_(std::move(purged_));
  }

  const std::vector<std::string>& affected() const { return affected_; }

  void Count(size_t student, const absl::StatusOr<int64_t>& tombstones) {
    const std::lock_guard lock(mutex_);
    if (tombstones.ok()) {
      purged_.students += *tombstones > 0 ? 1 : 0;
      purged_.tombstones += *tombstones;
      return;
    }
    switch (ReasonOf(tombstones.status()).value_or(ErrorReason::kStoreUnavailable)) {
      case ErrorReason::kDocumentDeleted:
      case ErrorReason::kDocumentNotFound:
        return;
      case ErrorReason::kEnrollmentShape:
      case ErrorReason::kDocumentTooLarge:
      case ErrorReason::kInvalidContent:
      case ErrorReason::kLayoutLimit:
      case ErrorReason::kRecordCorrupt:
      case ErrorReason::kRetriesExhausted:
        if (purged_.refused.size() < kRefusedMax) purged_.refused.push_back(affected_[student]);
        return;
      default:
        if (student > first_failed_) return;
        first_failed_ = student;
        failure_ = tombstones.status();
    }
  }

 private:
  const std::string after_id_;
  const std::vector<std::string> affected_;
  std::mutex mutex_;  // guards what follows
  size_t first_failed_;
  Purged purged_;
  PurgeCallback done_;
  absl::Status failure_;
};

// The students who have something to purge, or a document that refuses it.
absl::StatusOr<std::vector<std::string>> Enrollments::FindTombstones(const PurgeRequest& request,
                                                                     Purged& found) const {
  versioning::ListQuery query;
  query.collection = request.collection;
  query.after_id = request.after_id;
  query.incarnation = request.incarnation;
  query.stopped = request.stopped;
  std::vector<std::string> affected;
  versioning::ListCursor students = documents_.List(std::move(query));
  while (students.Next() && found.examined < kPurgeExaminedMax) {
    ++found.examined;
    const auto purge = PurgeTombstones(*students.version().content, request.set, request.through,
                                       documents_.limits());
    if (!purge.ok() || purge->tombstones > 0) affected.push_back(students.id());
  }
  RETURN_IF_ERROR(students.status());
  found.resume_after = students.resume_after();
  found.incarnation = students.incarnation();
  return affected;
}

void Enrollments::Purge(PurgeRequest request, PurgeCallback done) {
  absl::Status valid = CheckLeast("through_sequence_number", request.through, 1);
  if (valid.ok()) valid = ValidateSet(request.set);
  if (valid.ok()) valid = versioning::ValidateChange(request.change);
  if (!valid.ok()) return done(std::move(valid));
  if (!request.student_id.empty()) {
    valid = CheckStudentId(request.student_id);
    if (!valid.ok()) return done(std::move(valid));
    return PurgeStudent(request, request.student_id,
                        [done = std::move(done)](const absl::StatusOr<int64_t>& tombstones) {
                          if (!tombstones.ok()) return done(tombstones.status());
                          Purged purged;
                          purged.examined = 1;
                          purged.students = *tombstones > 0 ? 1 : 0;
                          purged.tombstones = *tombstones;
                          done(std::move(purged));
                        });
  }
  Purged found;
  absl::StatusOr<std::vector<std::string>> affected = FindTombstones(request, found);
  if (!affected.ok()) return done(affected.status());
  const auto purge = std::make_shared<CollectionPurge>(std::move(found), request.after_id,
                                                       *std::move(affected), std::move(done));
  for (size_t i = 0; i < purge->affected().size(); ++i) {
    PurgeStudent(
        request, purge->affected()[i],
        [purge, i](const absl::StatusOr<int64_t>& tombstones) { purge->Count(i, tombstones); });
  }
}

}  // namespace strata::enrollment
