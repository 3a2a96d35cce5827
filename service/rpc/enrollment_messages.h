// What the messages of EnrollmentService have in common.
#pragma once

#include <string>

#include "schemas/base/status_macros.h"
#include "service/rpc/convert.h"
#include "service/rpc/resources.h"

namespace strata::rpc::enrollment_service {

inline std::string SetOr(const std::string& set) {
  return set.empty() ? std::string(enrollment::kDefaultSet) : set;
}

// EnrollRequest, UnenrollRequest or ApplyRequest; neither its deadline nor who waits for it.
template <typename Request>
absl::StatusOr<enrollment::ApplyRequest> ToApply(const Request& request,
                                                 enrollment::Operation operation,
                                                 const Services& services,
                                                 const server::CallInfo& info) {
  enrollment::ApplyRequest made;
  made.student = {std::string(CollectionOr(request.collection())), request.student_id()};
  made.message = {SetOr(request.set()), request.class_name(), request.sequence_number(), operation};
  ASSIGN_OR_RETURN(made.change,
                   ToChangeInfo(request.change(), made.student.collection, services.access, info));
  return made;
}

// The same of a unary call, which lives until the answer.
template <typename Request>
absl::StatusOr<enrollment::ApplyRequest> ToApply(const Request& request,
                                                 enrollment::Operation operation,
                                                 const Context& context) {
  ASSIGN_OR_RETURN(enrollment::ApplyRequest made,
                   ToApply(request, operation, context.services, context.call.info()));
  made.deadline = context.call.deadline();
  made.waiter = &context.call;
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
