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
#include "schemas/base/status_macros.h"
#include "schemas/queue/queues.h"
#include "service/rpc/convert.h"

namespace strata::rpc {

using Strings = google::protobuf::RepeatedPtrField<std::string>;

// To the domain. What can be known to be wrong without looking at what is stored is refused here:
// INVALID_FIELD and INVALID_NAME, naming the proto field inside `field`; an empty one is the
// request itself.

// Errors name the field inside "settings".
absl::StatusOr<queue::QueueSettings> ToQueueSettings(const wire::QueueSettings& settings);
// Sets those members of queue `name` that `mask` names, as they are in `settings`; what it is
// called with may then be refused as queue::Validate says.
using SettingsChange = std::function<absl::Status(queue::QueueSettings& settings)>;
absl::StatusOr<SettingsChange> ToSettingsChange(const std::string& name,
                                                const wire::QueueSettings& settings,
                                                const google::protobuf::FieldMask& mask);

// MESSAGE_TOO_LARGE, INVALID_CONTENT too.
absl::StatusOr<document::Content> ToPayload(std::string_view field, const wire::Content& payload);
absl::StatusOr<queue::PushedMessage> ToPushedMessage(std::string_view field,
                                                     const wire::PushedMessage& message);
// One that is pushed again and again, and so says nothing of a single time.
absl::StatusOr<queue::PushedMessage> ToScheduledMessage(std::string_view field,
                                                        const wire::PushedMessage& message);
absl::StatusOr<queue::Headers> ToHeaders(
    std::string_view field, const google::protobuf::Map<std::string, std::string>& headers);

// 0 to queue::kDelayMax.
absl::StatusOr<std::chrono::microseconds> ToDelay(std::string_view field,
                                                  const google::protobuf::Duration& delay);
// How long messages are reserved.
absl::StatusOr<std::chrono::microseconds> ToTimeout(std::string_view field,
                                                    const google::protobuf::Duration& timeout);
// How long to wait for messages; 0 to queue::kWaitMax.
absl::StatusOr<std::chrono::microseconds> ToWait(std::string_view field,
                                                 const google::protobuf::Duration& wait);
// How many are asked for at most; 0: one.
absl::StatusOr<int32_t> ToCount(int32_t count);

// Tokens of one call, 1 to queue::kBatchMax. What they are the domain says, of each.
absl::StatusOr<std::vector<std::string>> ToTokens(std::string_view field, const Strings& tokens);
// At most queue::kBatchMax.
absl::StatusOr<std::vector<std::string>> ToMessageIds(std::string_view field, const Strings& ids);
absl::Status CheckMessageId(std::string_view field, std::string_view id);

// Nothing for "unspecified".
absl::StatusOr<std::optional<queue::State>> ToState(std::string_view field,
                                                    wire::MessageState state);
// Each once.
absl::StatusOr<std::vector<queue::State>> ToStates(
    const google::protobuf::RepeatedField<int>& states);
// Of what takes the one or the other.
absl::Status CheckEither(const std::vector<std::string>& message_ids,
                         const std::vector<queue::State>& states);

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

// For those templates.
absl::Status CheckRollback(std::string_view field, const queue::RollbackRequest& rollback);
std::string InsideField(std::string_view field, std::string_view name);

template <typename Request>
absl::StatusOr<queue::RollbackRequest> ToRollback(std::string_view field, const Request& request) {
  queue::RollbackRequest made;
  ASSIGN_OR_RETURN(made.tokens, ToTokens(InsideField(field, "tokens"), request.tokens()));
  if (request.has_delay()) {
    ASSIGN_OR_RETURN(made.delay, ToDelay(InsideField(field, "delay"), request.delay()));
  }
  made.not_counted = request.not_counted();
  made.dead = request.dead();
  made.reason = request.reason();
  RETURN_IF_ERROR(CheckRollback(field, made));
  return made;
}

}  // namespace strata::rpc
