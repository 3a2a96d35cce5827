// What Pop and Reserve have in common.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "schemas/base/status_macros.h"
#include "service/rpc/answer_size.h"
#include "service/rpc/queue_messages.h"

namespace strata::rpc::queue_service {

// PopRequest or ReserveRequest.
template <typename Request>
absl::StatusOr<queue::ReserveRequest> ToReserve(const Context& context, const Request& request) {
  RETURN_IF_ERROR(CheckEncoding(request.encoding()));
  queue::ReserveRequest made;
  made.queue = request.queue();
  made.as_structs = request.encoding() != wire::ENCODING_BSON;
  if (request.count() != 0) made.count = request.count();
  if constexpr (requires { request.timeout(); }) {
    if (request.has_timeout()) {
      ASSIGN_OR_RETURN(made.timeout, ToDuration("timeout", request.timeout()));
    }
  } else {
    made.pop = true;
  }
  if (request.has_wait()) {
    ASSIGN_OR_RETURN(made.wait, ToDuration("wait", request.wait()));
  }
  made.deadline = context.call.deadline();
  made.waiter = &context.call;
  return made;
}

// Fills an answer with messages while they fit: how many did.
template <typename Response>
absl::StatusOr<size_t> FillHandedOut(const std::vector<queue::MessageView>& messages,
                                     wire::Encoding encoding, Response& response) {
  size_t bytes = 0;
  for (size_t i = 0; i < messages.size(); ++i) {
    wire::QueueMessage& filled = *response.add_messages();
    RETURN_IF_ERROR(FillMessage(messages[i], encoding, filled));
    bytes += filled.ByteSizeLong();
    if (i == 0 || bytes <= kPageBytesMax) continue;
    response.mutable_messages()->RemoveLast();
    return i;
  }
  return messages.size();
}

// What has been handed out is answered whether there is room kept for it or not: it is held
// already.
inline void KeepRoom(const Call& call, size_t answer_bytes) {
  if (answer_bytes > kSmallAnswerBytes) call.Reserve(answer_bytes).IgnoreError();
}

}  // namespace strata::rpc::queue_service
