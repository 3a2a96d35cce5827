// The methods of strata.v1.EnrollmentService. The handler of each lies in the file of its name.
#include "service/rpc/convert.h"
#include "service/rpc/rows.h"

namespace strata::rpc::enrollment_service {

AnswersLater<wire::EnrollRequest, wire::EnrollResponse> Enroll;
AnswersLater<wire::UnenrollRequest, wire::UnenrollResponse> Unenroll;
AnswersLater<wire::GetEnrollmentsRequest, wire::GetEnrollmentsResponse> GetEnrollments;
Answers<wire::ListRosterRequest, wire::ListRosterResponse> ListRoster;
OpensStream<wire::ApplyRequest> OpenApply;
AnswersLater<wire::PurgeTombstonesRequest, wire::PurgeTombstonesResponse> PurgeTombstones;

std::vector<server::Method> Methods(Rows rows) {
  rows.Add(Enroll);
  rows.Add(Unenroll);
  rows.Add(GetEnrollments);
  rows.AddScan(ListRoster);
  rows.Add(OpenApply);
  rows.AddScan(PurgeTombstones);
  return rows.Take();
}

}  // namespace strata::rpc::enrollment_service
