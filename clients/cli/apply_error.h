// Errors that stand in an answer, each about one message of several.
#pragma once

#include "clients/cpp/refusal.h"
#include "strata/v1/enrollment_service.pb.h"

namespace strata::cli {

client::Refusal RefusalOfError(const v1::ApplyError& error);

// Whether another try may give the message a definite answer.
bool MayBeRepeated(const client::Refusal& refusal);

}  // namespace strata::cli
