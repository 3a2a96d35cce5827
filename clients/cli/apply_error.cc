#include "clients/cli/apply_error.h"

namespace strata::cli {

client::Refusal RefusalOfError(const v1::ApplyError& error) {
  client::Refusal refusal;
  refusal.code = static_cast<grpc::StatusCode>(error.code());
  refusal.reason = error.reason();
  refusal.message = error.message();
  refusal.metadata.insert(error.metadata().begin(), error.metadata().end());
  return refusal;
}

bool MayBeRepeated(const client::Refusal& refusal) { return refusal.IsRetryablePart(); }

}  // namespace strata::cli
