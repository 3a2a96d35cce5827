// EnrollmentService of a few lines: the rule on a map, and the ways in which a stream goes wrong.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "strata/v1/enrollment_service.grpc.pb.h"

namespace strata::cli {

// Thread-safe, but what is set and recorded is for use while no call is under way.
class FakeEnrollments : public v1::EnrollmentService::Service {
 public:
  // The requests received last; for Apply, all of them that got an answer.
  v1::EnrollRequest last_enroll;
  v1::UnenrollRequest last_unenroll;
  v1::GetEnrollmentsRequest last_get_enrollments;
  v1::ListRosterRequest last_list_roster;
  v1::PurgeTombstonesRequest last_purge;
  std::vector<v1::ApplyRequest> applied;

  // How many streams were opened, and which one carried each student's messages.
  int streams = 0;
  std::map<std::string, std::set<int>> streams_of_student;

  // Each of the next streams ends after so many answers, before it answers what it has read.
  std::vector<int> break_after;
  grpc::Status break_status{grpc::StatusCode::UNAVAILABLE, "broken"};
  // The next so many messages are answered with this error.
  int errors = 0;
  v1::ApplyError error;
  // Nothing is answered; `unanswered` counts what was read of a stream.
  bool mute = false;
  int unanswered = 0;
  // Students whose documents do not have the shape.
  std::set<std::string> shapeless;
  int64_t purged_through = 0;
  // Pages have at most so many entries.
  int roster_page_max = 2;

  using Context = grpc::ServerContext;
  grpc::Status Enroll(Context*, const v1::EnrollRequest*, v1::EnrollResponse*) override;
  grpc::Status Unenroll(Context*, const v1::UnenrollRequest*, v1::UnenrollResponse*) override;
  grpc::Status GetEnrollments(Context*, const v1::GetEnrollmentsRequest*,
                              v1::GetEnrollmentsResponse*) override;
  grpc::Status ListRoster(Context*, const v1::ListRosterRequest*, v1::ListRosterResponse*) override;
  grpc::Status Apply(Context*,
                     grpc::ServerReaderWriter<v1::ApplyResponse, v1::ApplyRequest>*) override;
  grpc::Status PurgeTombstones(Context*, const v1::PurgeTombstonesRequest*,
                               v1::PurgeTombstonesResponse*) override;

 private:
  struct Student {
    std::map<std::string, v1::Enrollment> classes;
    int64_t version = 0;
  };

  v1::ApplyResponse Decide(const std::string& student_id, const std::string& class_name,
                           int64_t number, bool enroll);
  v1::ApplyResponse Answer(const v1::ApplyRequest& request);
  int Purge(Student& student, int64_t through);

  std::mutex mutex_;
  std::map<std::string, Student> students_;
};

}  // namespace strata::cli
