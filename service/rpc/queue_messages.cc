#include "service/rpc/queue_messages.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "schemas/base/error.h"
#include "schemas/base/names.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"
#include "schemas/enrollment/enrollments.h"
#include "service/rpc/lease_messages.h"

namespace strata::rpc {
namespace {

using queue::QueueSettings;
using std::chrono::microseconds;

constexpr size_t kHeaderNameBytesMax = kLabelNameBytesMax;
constexpr size_t kHeaderValueBytesMax = kNameBytesMax;

std::string Element(std::string_view field, int index) {
  return std::string(field) + "[" + std::to_string(index) + "]";
}

std::string Text(microseconds duration) { return absl::FormatDuration(absl::FromChrono(duration)); }

absl::StatusOr<microseconds> ToDurationWithin(std::string_view field,
                                              const google::protobuf::Duration& duration,
                                              microseconds least, microseconds most) {
  ASSIGN_OR_RETURN(const microseconds made, ToDuration(field, duration));
  if (made >= least && made <= most) return made;
  return Error(ErrorReason::kInvalidField,
               absl::StrCat(ToAbsl(field), " is ", Text(made), ", but has to be ", Text(least),
                            " to ", Text(most)))
      .With("field", field)
      .With("limit", Text(made < least ? least : most));
}

// A member of the settings by its name in the proto, and how it goes from one to the other.
struct SettingsMember {
  std::string_view name;
  void (*copy)(const QueueSettings& from, QueueSettings& to);
};

template <auto member>
constexpr SettingsMember Named(std::string_view name) {
  return {name, [](const QueueSettings& from, QueueSettings& to) { to.*member = from.*member; }};
}

constexpr SettingsMember kSettingsMembers[] = {
    Named<&QueueSettings::reservation_timeout>("reservation_timeout"),
    Named<&QueueSettings::max_tries>("max_tries"),
    Named<&QueueSettings::dead_letter_queue>("dead_letter_queue"),
    Named<&QueueSettings::retry_delay>("retry_delay"),
    Named<&QueueSettings::retry_delay_max>("retry_delay_max"),
    Named<&QueueSettings::history_retention>("history_retention"),
    Named<&QueueSettings::message_lifetime>("message_lifetime"),
    Named<&QueueSettings::paused>("paused"),
    Named<&QueueSettings::enrollments>("enrollments"),
};

absl::StatusOr<const SettingsMember*> FindMember(const google::protobuf::FieldMask& mask, int i) {
  const std::string field = Element("update_mask.paths", i);
  const std::string& path = mask.paths(i);
  const auto* const found =
      std::find_if(std::begin(kSettingsMembers), std::end(kSettingsMembers),
                   [&](const SettingsMember& member) { return member.name == path; });
  if (found == std::end(kSettingsMembers)) {
    return FieldError(field, "is no member of settings, such as paused or max_tries");
  }
  if (std::find(mask.paths().begin(), mask.paths().begin() + i, path) != mask.paths().begin() + i) {
    return FieldError(field, "is named before");
  }
  return found;
}

absl::StatusOr<queue::EnrollmentSink> ToSink(const wire::EnrollmentSink& sink) {
  queue::EnrollmentSink made;
  made.collection = sink.collection();
  made.set = sink.set().empty() ? std::string(enrollment::kDefaultSet) : sink.set();
  if (sink.max_in_flight() != 0) made.max_in_flight = sink.max_in_flight();
  if (made.max_in_flight < 1 || made.max_in_flight > queue::EnrollmentSink::kInFlightMax) {
    return FieldOutOfRange("settings.enrollments.max_in_flight", made.max_in_flight, 1,
                           queue::EnrollmentSink::kInFlightMax);
  }
  return made;
}

// What a header's name or value may be. A zero byte would end a name where it is stored.
absl::Status CheckHeaderText(std::string_view field, std::string_view what, std::string_view text,
                             size_t bytes_max) {
  if (text.size() > bytes_max) {
    return Error(ErrorReason::kInvalidField,
                 absl::StrCat(ToAbsl(field), " has a ", ToAbsl(what), " of ", text.size(),
                              " bytes, at most ", bytes_max, " are allowed"))
        .With("field", field)
        .With("limit", static_cast<int64_t>(bytes_max));
  }
  if (text.find('\0') == std::string_view::npos) return absl::OkStatus();
  return FieldError(field, absl::StrCat("has a ", ToAbsl(what), " with a zero byte"));
}

absl::Status FillTimes(std::string_view field, const wire::PushedMessage& message,
                       queue::PushedMessage& made) {
  if (message.has_delay() && message.has_deliver_time()) {
    return FieldError(InsideField(field, "deliver_time"),
                      "is set beside delay, and only one of the two can say when");
  }
  if (message.has_delay()) {
    ASSIGN_OR_RETURN(made.delay, ToDelay(InsideField(field, "delay"), message.delay()));
  }
  if (message.has_deliver_time()) {
    ASSIGN_OR_RETURN(made.deliver_time, ToMicros(InsideField(field, "deliver_time"),
                                                 message.deliver_time(), Round::kUp));
  }
  if (message.has_expire_time()) {
    ASSIGN_OR_RETURN(made.expire_time, ToMicros(InsideField(field, "expire_time"),
                                                message.expire_time(), Round::kDown));
  }
  if (made.deliver_time && made.expire_time && *made.expire_time <= *made.deliver_time) {
    return FieldError(InsideField(field, "expire_time"),
                      "is not after deliver_time, so the message would never be handed out");
  }
  return absl::OkStatus();
}

void FillSettings(const QueueSettings& settings, wire::QueueSettings& filled) {
  constexpr microseconds kNone{0};
  FillDuration(settings.reservation_timeout, *filled.mutable_reservation_timeout());
  if (settings.max_tries != 0) filled.set_max_tries(settings.max_tries);
  filled.set_dead_letter_queue(settings.dead_letter_queue);
  FillDuration(settings.retry_delay, *filled.mutable_retry_delay());
  FillDuration(settings.retry_delay_max, *filled.mutable_retry_delay_max());
  if (settings.history_retention != kNone) {
    FillDuration(settings.history_retention, *filled.mutable_history_retention());
  }
  if (settings.message_lifetime != kNone) {
    FillDuration(settings.message_lifetime, *filled.mutable_message_lifetime());
  }
  filled.set_paused(settings.paused);
  if (!settings.enrollments) return;
  wire::EnrollmentSink& sink = *filled.mutable_enrollments();
  sink.set_collection(settings.enrollments->collection);
  sink.set_set(settings.enrollments->set);
  sink.set_max_in_flight(settings.enrollments->max_in_flight);
}

}  // namespace

std::string InsideField(std::string_view field, std::string_view name) {
  if (field.empty()) return std::string(name);
  return std::string(field) + "." + std::string(name);
}

absl::StatusOr<QueueSettings> ToQueueSettings(const wire::QueueSettings& settings) {
  constexpr microseconds kNone{0};
  QueueSettings made;
  const auto take = [](bool has, std::string_view name, const google::protobuf::Duration& duration,
                       microseconds least, microseconds most, microseconds& to) -> absl::Status {
    if (!has) return absl::OkStatus();
    ASSIGN_OR_RETURN(to, ToDurationWithin(InsideField("settings", name), duration, least, most));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(take(settings.has_reservation_timeout(), "reservation_timeout",
                       settings.reservation_timeout(), queue::kTimeoutMin, queue::kTimeoutMax,
                       made.reservation_timeout));
  if (settings.has_max_tries()) {
    if (settings.max_tries() < 1) {
      return Error(ErrorReason::kInvalidField,
                   absl::StrCat("settings.max_tries is ", settings.max_tries(),
                                ", at least 1 is required; leave it unset for no limit"))
          .With("field", "settings.max_tries")
          .With("limit", int64_t{1});
    }
    made.max_tries = settings.max_tries();
  }
  made.dead_letter_queue = settings.dead_letter_queue();
  RETURN_IF_ERROR(take(settings.has_retry_delay(), "retry_delay", settings.retry_delay(), kNone,
                       queue::kRetryDelayMax, made.retry_delay));
  RETURN_IF_ERROR(take(settings.has_retry_delay_max(), "retry_delay_max",
                       settings.retry_delay_max(), kNone, queue::kRetryDelayMax,
                       made.retry_delay_max));
  RETURN_IF_ERROR(take(settings.has_history_retention(), "history_retention",
                       settings.history_retention(), queue::kRetentionMin, queue::kRetentionMax,
                       made.history_retention));
  RETURN_IF_ERROR(take(settings.has_message_lifetime(), "message_lifetime",
                       settings.message_lifetime(), queue::kTimeoutMin, queue::kRetentionMax,
                       made.message_lifetime));
  made.paused = settings.paused();
  if (settings.has_enrollments()) {
    ASSIGN_OR_RETURN(made.enrollments, ToSink(settings.enrollments()));
  }
  return made;
}

absl::StatusOr<SettingsChange> ToSettingsChange(const std::string& name,
                                                const wire::QueueSettings& settings,
                                                const google::protobuf::FieldMask& mask) {
  if (mask.paths().empty()) {
    return FieldError("update_mask", "is required: the members of settings to change");
  }
  if (mask.paths_size() > static_cast<int>(std::size(kSettingsMembers))) {
    return TooManyElements("update_mask.paths", mask.paths_size(), std::size(kSettingsMembers));
  }
  std::vector<const SettingsMember*> members;
  for (int i = 0; i < mask.paths_size(); ++i) {
    ASSIGN_OR_RETURN(const SettingsMember* const member, FindMember(mask, i));
    members.push_back(member);
  }
  ASSIGN_OR_RETURN(QueueSettings wanted, ToQueueSettings(settings));
  return [name, wanted = std::move(wanted),
          members = std::move(members)](QueueSettings& changed) -> absl::Status {
    for (const SettingsMember* const member : members) member->copy(wanted, changed);
    return queue::Validate(name, changed);
  };
}

absl::StatusOr<document::Content> ToPayload(std::string_view field, const wire::Content& payload) {
  if (payload.body_case() == wire::Content::BODY_NOT_SET) return document::Content();
  auto made = ToContent(field, payload, {.bytes_max = queue::kPayloadBytesMax});
  if (ReasonOf(made.status()) != ErrorReason::kDocumentTooLarge) return made;
  Error error(ErrorReason::kMessageTooLarge, ToStd(made.status().message()));
  for (const auto& [key, value] : MetadataOf(made.status())) error.With(key, value);
  return error;
}

absl::StatusOr<queue::PushedMessage> ToPushedMessage(std::string_view field,
                                                     const wire::PushedMessage& message) {
  queue::PushedMessage made;
  ASSIGN_OR_RETURN(made.payload, ToPayload(InsideField(field, "payload"), message.payload()));
  ASSIGN_OR_RETURN(made.headers, ToHeaders(InsideField(field, "headers"), message.headers()));
  if (message.priority() < 0 || message.priority() > queue::kPriorityMax) {
    return FieldOutOfRange(InsideField(field, "priority"), message.priority(), 0,
                           queue::kPriorityMax);
  }
  made.priority = message.priority();
  if (!message.ordering_key().empty()) {
    RETURN_IF_ERROR(ValidateName(InsideField(field, "ordering_key"), message.ordering_key()));
  }
  made.ordering_key = message.ordering_key();
  if (message.has_sequence_number()) {
    if (message.sequence_number() < 1) {
      return Error(ErrorReason::kInvalidField,
                   absl::StrCat(InsideField(field, "sequence_number"), " is ",
                                message.sequence_number(), ", at least 1 is required"))
          .With("field", InsideField(field, "sequence_number"))
          .With("limit", int64_t{1});
    }
    made.sequence_number = message.sequence_number();
  }
  RETURN_IF_ERROR(FillTimes(field, message, made));
  if (absl::Status valid = ValidateRequestId(message.request_id()); !valid.ok()) {
    return field.empty() ? valid : InField(valid, field);
  }
  made.request_id = message.request_id();
  return made;
}

absl::StatusOr<queue::PushedMessage> ToScheduledMessage(std::string_view field,
                                                        const wire::PushedMessage& message) {
  const auto refuse = [&](std::string_view name) {
    return FieldError(InsideField(field, name), "is of one push, and a schedule pushes many times");
  };
  if (message.has_delay()) return refuse("delay");
  if (message.has_deliver_time()) return refuse("deliver_time");
  if (message.has_expire_time()) return refuse("expire_time");
  if (!message.request_id().empty()) return refuse("request_id");
  return ToPushedMessage(field, message);
}

absl::StatusOr<queue::Headers> ToHeaders(
    std::string_view field, const google::protobuf::Map<std::string, std::string>& headers) {
  if (headers.size() > queue::kHeadersMax) {
    return TooManyElements(field, static_cast<int64_t>(headers.size()), queue::kHeadersMax);
  }
  for (const auto& [name, value] : headers) {
    if (name.empty()) return FieldError(field, "has an entry without a name");
    RETURN_IF_ERROR(CheckHeaderText(field, "name", name, kHeaderNameBytesMax));
    RETURN_IF_ERROR(CheckHeaderText(field, "value", value, kHeaderValueBytesMax));
  }
  return queue::Headers(headers.begin(), headers.end());
}

absl::StatusOr<microseconds> ToDelay(std::string_view field,
                                     const google::protobuf::Duration& delay) {
  return ToDurationWithin(field, delay, microseconds(0), queue::kDelayMax);
}

absl::StatusOr<microseconds> ToTimeout(std::string_view field,
                                       const google::protobuf::Duration& timeout) {
  return ToDurationWithin(field, timeout, queue::kTimeoutMin, queue::kTimeoutMax);
}

absl::StatusOr<microseconds> ToWait(std::string_view field,
                                    const google::protobuf::Duration& wait) {
  return ToDurationWithin(field, wait, microseconds(0), queue::kWaitMax);
}

absl::StatusOr<int32_t> ToCount(int32_t count) {
  if (count == 0) return 1;
  constexpr auto kCountMax = static_cast<int32_t>(queue::kBatchMax);
  if (count < 1 || count > kCountMax) return FieldOutOfRange("count", count, 1, kCountMax);
  return count;
}

absl::StatusOr<std::vector<std::string>> ToTokens(std::string_view field, const Strings& tokens) {
  if (tokens.empty()) {
    return FieldError(field, absl::StrCat("is required: 1 to ", queue::kBatchMax, " tokens"));
  }
  if (tokens.size() > static_cast<int>(queue::kBatchMax)) {
    return TooManyElements(field, tokens.size(), queue::kBatchMax);
  }
  return std::vector<std::string>(tokens.begin(), tokens.end());
}

absl::Status CheckMessageId(std::string_view field, std::string_view id) {
  if (queue::MessageId::FromText(id)) return absl::OkStatus();
  return FieldError(field, id.empty() ? "is required: the id of a message"
                                      : "is no id of a message: 32 hexadecimal digits, in lower "
                                        "case");
}

absl::StatusOr<std::vector<std::string>> ToMessageIds(std::string_view field, const Strings& ids) {
  if (ids.size() > static_cast<int>(queue::kBatchMax)) {
    return TooManyElements(field, ids.size(), queue::kBatchMax);
  }
  for (int i = 0; i < ids.size(); ++i) RETURN_IF_ERROR(CheckMessageId(Element(field, i), ids[i]));
  return std::vector<std::string>(ids.begin(), ids.end());
}

absl::StatusOr<std::optional<queue::State>> ToState(std::string_view field,
                                                    wire::MessageState state) {
  if (state == wire::MESSAGE_STATE_UNSPECIFIED) return std::nullopt;
  if (!wire::MessageState_IsValid(state)) {
    return FieldError(
        field, absl::StrCat("is ", static_cast<int>(state), ", which is no state of a message"));
  }
  return static_cast<queue::State>(state - 1);
}

absl::StatusOr<std::vector<queue::State>> ToStates(
    const google::protobuf::RepeatedField<int>& states) {
  constexpr int kStates = wire::MessageState_ARRAYSIZE - 1;
  if (states.size() > kStates) return TooManyElements("states", states.size(), kStates);
  std::vector<queue::State> made;
  for (int i = 0; i < states.size(); ++i) {
    const std::string field = Element("states", i);
    ASSIGN_OR_RETURN(const std::optional<queue::State> state,
                     ToState(field, static_cast<wire::MessageState>(states[i])));
    if (!state) return FieldError(field, "is MESSAGE_STATE_UNSPECIFIED; name a state");
    if (std::find(made.begin(), made.end(), *state) != made.end()) {
      return FieldError(field, "is named before");
    }
    made.push_back(*state);
  }
  return made;
}

absl::Status CheckEither(const std::vector<std::string>& message_ids,
                         const std::vector<queue::State>& states) {
  if (message_ids.empty() && states.empty()) {
    return FieldError("message_ids", "is required, or states");
  }
  if (message_ids.empty() || states.empty()) return absl::OkStatus();
  return FieldError("states", "is set beside message_ids, and only one of the two can say which");
}

absl::Status CheckRollback(std::string_view field, const queue::RollbackRequest& rollback) {
  if (rollback.dead && rollback.delay) {
    return FieldError(InsideField(field, "delay"), "is set beside dead, which ends the message");
  }
  if (rollback.dead && rollback.not_counted) {
    return FieldError(InsideField(field, "not_counted"),
                      "is set beside dead, which ends the message");
  }
  if (rollback.reason.size() <= kReasonBytesMax) return absl::OkStatus();
  return Error(ErrorReason::kInvalidField,
               absl::StrCat(InsideField(field, "reason"), " has ", rollback.reason.size(),
                            " bytes, at most ", kReasonBytesMax, " are allowed"))
      .With("field", InsideField(field, "reason"))
      .With("limit", static_cast<int64_t>(kReasonBytesMax));
}

void FillQueue(const queue::Queue& queue, wire::Queue& filled) {
  filled.set_name(queue.name);
  FillSettings(queue.settings, *filled.mutable_settings());
  FillTimestamp(queue.create_time, *filled.mutable_create_time());
}

void FillStatistics(const queue::QueueStatistics& statistics, wire::QueueStatistics& filled) {
  filled.set_ready(statistics.ready);
  filled.set_scheduled(statistics.scheduled);
  filled.set_reserved(statistics.reserved);
  filled.set_waiting(statistics.waiting);
  filled.set_dead(statistics.dead);
  if (statistics.oldest_ready_age != microseconds(0)) {
    FillDuration(statistics.oldest_ready_age, *filled.mutable_oldest_ready_age());
  }
  if (statistics.low_watermark) filled.set_low_watermark(*statistics.low_watermark);
  filled.set_exact(statistics.exact);
}

void FillCounts(const queue::QueueCounts& counts, wire::QueueCounts& filled) {
  filled.set_pushed(counts.pushed);
  filled.set_handed_out(counts.handed_out);
  filled.set_acknowledged(counts.acknowledged);
  filled.set_rolled_back(counts.rolled_back);
  filled.set_died(counts.died);
  filled.set_races_lost(counts.races_lost);
  filled.set_commits(counts.commits);
  filled.set_operations(counts.operations);
}

absl::Status FillMessage(const queue::MessageView& message, wire::Encoding encoding,
                         wire::QueueMessage& filled) {
  const queue::Message& record = message.message;
  ASSIGN_OR_RETURN(const queue::Headers headers, queue::ToHeaders(record.headers));
  filled.set_message_id(message.id.ToText());
  filled.set_queue(message.queue);
  FillContent(record.payload, encoding, *filled.mutable_payload());
  filled.mutable_headers()->insert(headers.begin(), headers.end());
  filled.set_priority(record.priority);
  filled.set_ordering_key(record.ordering_key);
  if (record.sequence_number) filled.set_sequence_number(*record.sequence_number);
  FillTimestamp(record.push_time, *filled.mutable_push_time());
  FillTimestamp(record.time, *filled.mutable_due());
  if (record.expire_time != 0) FillTimestamp(record.expire_time, *filled.mutable_expire_time());
  filled.set_tries(record.tries);
  filled.set_delivery(record.delivery);
  filled.set_state(static_cast<wire::MessageState>(static_cast<int>(message.state) + 1));
  filled.set_token(message.token);
  filled.set_reason(record.reason);
  return absl::OkStatus();
}

void FillSchedule(const queue::Schedule& schedule, wire::Encoding encoding,
                  wire::Schedule& filled) {
  filled.set_queue(schedule.queue);
  filled.set_name(schedule.name);
  if (schedule.cron.empty()) {
    FillDuration(schedule.every, *filled.mutable_every());
  } else {
    filled.set_cron(schedule.cron);
  }
  wire::PushedMessage& message = *filled.mutable_message();
  FillContent(schedule.message.payload, encoding, *message.mutable_payload());
  message.mutable_headers()->insert(schedule.message.headers.begin(),
                                    schedule.message.headers.end());
  message.set_priority(schedule.message.priority);
  message.set_ordering_key(schedule.message.ordering_key);
  if (schedule.message.sequence_number) {
    message.set_sequence_number(*schedule.message.sequence_number);
  }
  FillTimestamp(schedule.next_time, *filled.mutable_next_time());
}

void FillTokenResult(const absl::StatusOr<bool>& replayed, wire::TokenResult& filled) {
  if (replayed.ok()) {
    filled.set_replayed(*replayed);
  } else {
    FillApplyError(replayed.status(), *filled.mutable_error());
  }
}

}  // namespace strata::rpc
