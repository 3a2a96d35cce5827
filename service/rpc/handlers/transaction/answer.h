// What CancelTransaction and ResumeTransaction answer.
#pragma once

#include <utility>

#include "service/rpc/handlers/transaction/permitted.h"

namespace strata::rpc::transaction_service {

template <typename Response>
transaction::TransactionCallback AnswerTransaction(Reply<Response> reply) {
  return [reply = std::move(reply)](const absl::StatusOr<transaction::Transaction>& settled) {
    if (!settled.ok()) return reply.Fail(settled.status());
    FillTransaction(*settled, *reply.response().mutable_transaction());
    reply.Ok();
  };
}

}  // namespace strata::rpc::transaction_service
