// How the handlers of writes answer.
#pragma once

#include <utility>

#include "service/rpc/convert.h"

namespace strata::rpc {

// Answers with the document as it was written, without its content.
template <typename Response>
versioning::WriteCallback AnswerWrite(Reply<Response> reply) {
  return [reply = std::move(reply)](absl::StatusOr<versioning::WriteResult> result) {
    if (!result.ok()) return reply.Fail(result.status());
    FillWriteResponse(*result, reply.response());
    reply.Ok();
  };
}

// As AnswerWrite, with the content in `encoding` unless it is to be left out.
template <typename Response>
versioning::WriteCallback AnswerWriteWithContent(Reply<Response> reply, wire::Encoding encoding,
                                                 bool omit_content) {
  return [reply = std::move(reply), encoding,
          omit_content](absl::StatusOr<versioning::WriteResult> result) {
    if (!result.ok()) return reply.Fail(result.status());
    FillWriteResponse(*result, reply.response());
    if (result->version.content && !omit_content) {
      FillContent(*result->version.content, encoding,
                  *reply.response().mutable_document()->mutable_content());
    }
    reply.Ok();
  };
}

}  // namespace strata::rpc
