// What the messages of EnrollmentService have in common.
#pragma once

#include <string>

#include "service/rpc/convert.h"

namespace strata::rpc::enrollment_service {

inline std::string CollectionOr(const std::string& collection) {
  return collection.empty() ? std::string(enrollment::kDefaultCollection) : collection;
}

inline std::string SetOr(const std::string& set) {
  return set.empty() ? std::string(enrollment::kDefaultSet) : set;
}

// EnrollRequest, UnenrollRequest or ApplyRequest. The call, if there is one, lives until the
// answer.
template <typename Request>
enrollment::ApplyRequest ToApply(const Request& request, enrollment::Operation operation,
                                 std::chrono::steady_clock::time_point deadline,
                                 const Waiter* waiter) {
  enrollment::ApplyRequest made;
  made.student = {CollectionOr(request.collection()), request.student_id()};
  made.message = {SetOr(request.set()), request.class_name(), request.sequence_number(), operation};
  made.change = ToChangeInfo(request.change());
  made.deadline = deadline;
  made.waiter = waiter;
  return made;
}

// EnrollResponse, UnenrollResponse or ApplyResponse.
template <typename Response>
void FillApplied(const enrollment::Applied& applied, Response& response) {
  response.set_result(static_cast<wire::EnrollmentResult>(applied.result));
  response.set_enrolled(applied.enrolled);
  response.set_version(applied.version);
}

template <typename Response>
enrollment::ApplyCallback AnswerApplied(Reply<Response> reply) {
  return [reply = std::move(reply)](const absl::StatusOr<enrollment::Applied>& applied) {
    if (!applied.ok()) return reply.Fail(applied.status());
    FillApplied(*applied, reply.response());
    reply.Ok();
  };
}

}  // namespace strata::rpc::enrollment_service
