// What the messages of queues have in common.
#pragma once

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/field_mask.pb.h>
#include <strata/wire/v1/queue_service.pb.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/field_checks.h"
#include "schemas/base/status_macros.h"
#include "schemas/queue/queues.h"
#include "service/rpc/lease_messages.h"

namespace strata::rpc {

using Strings = google::protobuf::RepeatedPtrField<std::string>;

// To the domain. INVALID_FIELD for what has no form there, naming the proto field inside `field`;
// an empty one is the request itself. What the values may be the domain says.

// Errors name the field inside "settings".
absl::StatusOr<queue::QueueSettings> ToQueueSettings(const wire::QueueSettings& settings);
// Sets those members that `mask` names as they are in `settings`.
using SettingsChange = std::function<void(queue::QueueSettings& settings)>;
absl::StatusOr<SettingsChange> ToSettingsChange(const wire::QueueSettings& settings,
                                                const google::protobuf::FieldMask& mask);

// MESSAGE_TOO_LARGE, INVALID_CONTENT too.
absl::StatusOr<document::Content> ToPayload(std::string_view field, const wire::Content& payload);
absl::StatusOr<queue::PushedMessage> ToPushedMessage(std::string_view field,
                                                     const wire::PushedMessage& message);
// Tokens of one call, 1 to queue::kBatchMax. What they are the domain says, of each.
absl::StatusOr<std::vector<std::string>> ToTokens(std::string_view field, const Strings& tokens);
// At most queue::kBatchMax.
absl::StatusOr<std::vector<std::string>> ToMessageIds(std::string_view field, const Strings& ids);

// Nothing for "unspecified".
absl::StatusOr<std::optional<queue::State>> ToState(std::string_view field,
                                                    wire::MessageState state);
// Each once.
absl::StatusOr<std::vector<queue::State>> ToStates(
    const google::protobuf::RepeatedField<int>& states);
// RollbackRequest, or that of a stream; without its deadline.
template <typename Request>
absl::StatusOr<queue::RollbackRequest> ToRollback(std::string_view field, const Request& request);

// From the domain.
void FillQueue(const queue::Queue& queue, wire::Queue& filled);
void FillStatistics(const queue::QueueStatistics& statistics, wire::QueueStatistics& filled);
void FillCounts(const queue::QueueCounts& counts, wire::QueueCounts& filled);
// RECORD_CORRUPT.
absl::Status FillMessage(const queue::MessageView& message, wire::Encoding encoding,
                         wire::QueueMessage& filled);
void FillSchedule(const queue::Schedule& schedule, wire::Encoding encoding, wire::Schedule& filled);
void FillTokenResult(const absl::StatusOr<bool>& replayed, wire::TokenResult& filled);

// Answers with what became of each token.
template <typename Response>
queue::TokensCallback AnswerTokens(Reply<Response> reply) {
  return [reply = std::move(reply)](const std::vector<absl::StatusOr<bool>>& replayed) {
    for (const absl::StatusOr<bool>& each : replayed) {
      FillTokenResult(each, *reply.response().add_results());
    }
    reply.Ok();
  };
}

// Answers with the queue as it stands.
template <typename Response>
queue::QueueCallback AnswerQueue(Reply<Response> reply) {
  return [reply = std::move(reply)](const absl::StatusOr<queue::Queue>& queue) {
    if (!queue.ok()) return reply.Fail(queue.status());
    FillQueue(*queue, *reply.response().mutable_queue());
    reply.Ok();
  };
}

// Answers with how many messages it took.
template <typename Response>
queue::SweptCallback AnswerSwept(Reply<Response> reply) {
  return [reply = std::move(reply)](const absl::StatusOr<queue::Swept>& swept) {
    if (!swept.ok()) return reply.Fail(swept.status());
    reply.response().set_messages(swept->messages);
    reply.response().set_more(swept->more);
    reply.Ok();
  };
}

template <typename Request>
absl::StatusOr<queue::RollbackRequest> ToRollback(std::string_view field, const Request& request) {
  queue::RollbackRequest made;
  ASSIGN_OR_RETURN(made.tokens, ToTokens(Inside(field, "tokens"), request.tokens()));
  if (request.has_delay()) {
    ASSIGN_OR_RETURN(made.delay, ToDuration(Inside(field, "delay"), request.delay()));
  }
  made.not_counted = request.not_counted();
  made.dead = request.dead();
  made.reason = request.reason();
  return made;
}

}  // namespace strata::rpc
