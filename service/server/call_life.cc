#include "service/server/call_life.h"

#include "schemas/base/status_macros.h"

namespace strata::server {

absl::Status CheckAhead(const LoopState& state, const Endpoint& endpoint, const Arrival& arrival) {
  const auto now = std::chrono::steady_clock::now();
  const Method& method = endpoint.method;
  absl::Status refusal = state.admission.Admit(method, arrival.recognized, arrival.reads_only);
  security::Quota* const quota = arrival.recognized.caller->quota();
  if (refusal.ok() && quota != nullptr && !method.operational) refusal = quota->Check(now);
  if (!refusal.ok()) state.Report({endpoint.log_name, refusal, now, now});
  return refusal;
}

void CallLife::Begin(Arrival arrival) {
  arrival_ = std::chrono::steady_clock::now();
  recognized_ = std::move(arrival.recognized);
  info_.method = endpoint_.log_name;
  info_.peer = std::move(arrival.peer);
  info_.caller = recognized_.caller;
  info_.identity = recognized_.identity;
  info_.reads_only = arrival.reads_only;
  info_.deadline = arrival.deadline;
  held_.BelongTo(info_.caller, method());
}

absl::Status CallLife::Admit(size_t own_bytes, size_t request_bytes) {
  request_bytes_ = request_bytes;
  RETURN_IF_ERROR(state_->admission.AdmitMessage(request_bytes));
  RETURN_IF_ERROR(state_->admission.Admit(method(), recognized_, info_.reads_only));
  RETURN_IF_ERROR(quota_.Begin(info_.caller, method(), request_bytes));
  return held_.Take(own_bytes + request_bytes);
}

absl::Status CallLife::AdmitMessage(size_t bytes, size_t most) {
  request_bytes_ += bytes;
  RETURN_IF_ERROR(state_->admission.AdmitMessage(bytes, most));
  RETURN_IF_ERROR(quota_.Take(bytes));
  return held_.Take(bytes);
}

void CallLife::Charge(size_t bytes) {
  response_bytes_ += bytes;
  quota_.Charge(bytes);
}

void CallLife::Report(const absl::Status& status) const {
  state_->Report({info_.method, status, arrival_, std::chrono::steady_clock::now(), request_bytes_,
                  response_bytes_});
}

}  // namespace strata::server
