// The rule, as short as it can be said: the highest number counts; at equal numbers, unenroll.
#include "tests/cli/fake_enrollments.h"

#include <algorithm>
#include <climits>
#include <iterator>

#include "tests/cli/status_of.h"

namespace strata::cli {
namespace {

using grpc::Status;
using grpc::StatusCode;

Status NoShape() {
  return StatusOf(StatusCode::FAILED_PRECONDITION, "ENROLLMENT_SHAPE", "not a list of classes",
                  {{"path", "/classes"}});
}

template <typename Response>
void Copy(const v1::ApplyResponse& decided, Response* response) {
  response->set_result(decided.result());
  response->set_enrolled(decided.enrolled());
  response->set_version(decided.version());
}

}  // namespace

v1::ApplyResponse FakeEnrollments::Decide(const std::string& student_id,
                                          const std::string& class_name, int64_t number,
                                          bool enroll) {
  Student& student = students_[student_id];
  v1::ApplyResponse response;
  v1::EnrollmentResult result = v1::ENROLLMENT_RESULT_APPLIED;
  const auto known = student.classes.find(class_name);
  if (known == student.classes.end()) {
    if (number <= purged_through) result = v1::ENROLLMENT_RESULT_BELOW_FLOOR;
  } else if (number < known->second.sequence_number()) {
    result = v1::ENROLLMENT_RESULT_SUPERSEDED;
  } else if (number == known->second.sequence_number()) {
    const bool same = known->second.enrolled() == enroll;
    result = same ? v1::ENROLLMENT_RESULT_DUPLICATE : v1::ENROLLMENT_RESULT_CONFLICT;
    if (!same) known->second.set_enrolled(false);
  }
  if (result == v1::ENROLLMENT_RESULT_APPLIED) {
    v1::Enrollment& enrollment = student.classes[class_name];
    enrollment.set_class_name(class_name);
    enrollment.set_sequence_number(number);
    enrollment.set_enrolled(enroll);
    ++student.version;
  }
  response.set_result(result);
  response.set_enrolled(student.classes.contains(class_name) &&
                        student.classes[class_name].enrolled());
  response.set_version(student.version);
  return response;
}

Status FakeEnrollments::Enroll(Context*, const v1::EnrollRequest* request,
                               v1::EnrollResponse* response) {
  const std::lock_guard lock(mutex_);
  last_enroll = *request;
  if (shapeless.contains(request->student_id())) return NoShape();
  Copy(Decide(request->student_id(), request->class_name(), request->sequence_number(), true),
       response);
  return Status::OK;
}

Status FakeEnrollments::Unenroll(Context*, const v1::UnenrollRequest* request,
                                 v1::UnenrollResponse* response) {
  const std::lock_guard lock(mutex_);
  last_unenroll = *request;
  Copy(Decide(request->student_id(), request->class_name(), request->sequence_number(), false),
       response);
  return Status::OK;
}

Status FakeEnrollments::GetEnrollments(Context*, const v1::GetEnrollmentsRequest* request,
                                       v1::GetEnrollmentsResponse* response) {
  const std::lock_guard lock(mutex_);
  last_get_enrollments = *request;
  const Student& student = students_[request->student_id()];
  response->set_version(student.version);
  for (const auto& [name, enrollment] : student.classes) {
    if (!enrollment.enrolled() && !request->include_tombstones()) continue;
    *response->add_enrollments() = enrollment;
  }
  return Status::OK;
}

Status FakeEnrollments::ListRoster(Context*, const v1::ListRosterRequest* request,
                                   v1::ListRosterResponse* response) {
  const std::lock_guard lock(mutex_);
  last_list_roster = *request;
  const int size = std::min(roster_page_max, request->page_size());
  for (const auto& [id, student] : students_) {
    const auto found = student.classes.find(request->class_name());
    if (id <= request->page_token() || found == student.classes.end()) continue;
    if (!found->second.enrolled()) continue;
    if (response->students_size() == size) {
      response->set_next_page_token(response->students().rbegin()->student_id());
      break;
    }
    v1::RosterEntry& entry = *response->add_students();
    entry.set_student_id(id);
    entry.set_sequence_number(found->second.sequence_number());
    entry.set_version(student.version);
  }
  return Status::OK;
}

v1::ApplyResponse FakeEnrollments::Answer(const v1::ApplyRequest& request) {
  v1::ApplyResponse response;
  if (errors > 0) {
    --errors;
    *response.mutable_error() = error;
    return response;
  }
  if (shapeless.contains(request.student_id())) {
    response.mutable_error()->set_code(StatusCode::FAILED_PRECONDITION);
    response.mutable_error()->set_reason("ENROLLMENT_SHAPE");
    response.mutable_error()->set_message("not a list of classes");
    return response;
  }
  applied.push_back(request);
  return Decide(request.student_id(), request.class_name(), request.sequence_number(),
                request.operation() == v1::ENROLLMENT_OPERATION_ENROLL);
}

Status FakeEnrollments::Apply(
    Context*, grpc::ServerReaderWriter<v1::ApplyResponse, v1::ApplyRequest>* stream) {
  int number = 0;
  int answers_left = INT_MAX;
  {
    const std::lock_guard lock(mutex_);
    number = streams++;
    if (static_cast<size_t>(number) < break_after.size()) {
      answers_left = break_after[static_cast<size_t>(number)];
    }
  }
  v1::ApplyRequest request;
  while (stream->Read(&request)) {
    v1::ApplyResponse response;
    {
      const std::lock_guard lock(mutex_);
      streams_of_student[request.student_id()].insert(number);
      if (mute) {
        ++unanswered;
        continue;
      }
      if (answers_left-- == 0) return break_status;
      response = Answer(request);
    }
    stream->Write(response);
  }
  return Status::OK;
}

int FakeEnrollments::Purge(Student& student, int64_t through) {
  const auto gone = std::erase_if(student.classes, [&](const auto& entry) {
    return !entry.second.enrolled() && entry.second.sequence_number() <= through;
  });
  if (gone > 0) purged_through = std::max(purged_through, through);
  return static_cast<int>(gone);
}

// One student a page.
Status FakeEnrollments::PurgeTombstones(Context*, const v1::PurgeTombstonesRequest* request,
                                        v1::PurgeTombstonesResponse* response) {
  const std::lock_guard lock(mutex_);
  last_purge = *request;
  const bool one = !request->student_id().empty();
  const auto at =
      one ? students_.find(request->student_id()) : students_.upper_bound(request->page_token());
  if (one && at == students_.end()) {
    return StatusOf(StatusCode::NOT_FOUND, "DOCUMENT_NOT_FOUND", "no such document");
  }
  if (at == students_.end()) return Status::OK;
  response->set_examined(1);
  if (shapeless.contains(at->first)) {
    response->add_refused_student_ids(at->first);
  } else {
    const int gone = Purge(at->second, request->through_sequence_number());
    response->set_purged_students(gone > 0 ? 1 : 0);
    response->set_purged_tombstones(gone);
  }
  if (!one && std::next(at) != students_.end()) response->set_next_page_token(at->first);
  return Status::OK;
}

}  // namespace strata::cli
