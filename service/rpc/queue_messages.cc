#include "service/rpc/queue_messages.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"
#include "schemas/enrollment/enrollments.h"

namespace strata::rpc {
namespace {

using queue::QueueSettings;
using std::chrono::microseconds;

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
  const std::string field = Element("update_mask.paths", static_cast<size_t>(i));
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

queue::EnrollmentSink ToSink(const wire::EnrollmentSink& sink) {
  queue::EnrollmentSink made;
  made.collection = sink.collection();
  made.set = sink.set().empty() ? std::string(enrollment::kDefaultSet) : sink.set();
  if (sink.max_in_flight() != 0) made.max_in_flight = sink.max_in_flight();
  return made;
}

absl::Status FillTimes(std::string_view field, const wire::PushedMessage& message,
                       queue::PushedMessage& made) {
  if (message.has_delay()) {
    ASSIGN_OR_RETURN(made.delay, ToDuration(Inside(field, "delay"), message.delay()));
  }
  if (message.has_deliver_time()) {
    ASSIGN_OR_RETURN(made.deliver_time,
                     ToMicros(Inside(field, "deliver_time"), message.deliver_time(), Round::kUp));
  }
  if (message.has_expire_time()) {
    ASSIGN_OR_RETURN(made.expire_time,
                     ToMicros(Inside(field, "expire_time"), message.expire_time(), Round::kDown));
  }
  return absl::OkStatus();
}

// In the domain 0 stands for what is not set, so what a client sets to 0 is refused here.
absl::Status RefuseZeros(const wire::QueueSettings& settings, const QueueSettings& made) {
  constexpr microseconds kNone{0};
  if (settings.has_max_tries() && made.max_tries == 0) {
    RETURN_IF_ERROR(CheckLeast("settings.max_tries", 0, 1, "; leave it unset for no limit"));
  }
  if (settings.has_history_retention() && made.history_retention == kNone) {
    RETURN_IF_ERROR(CheckRange("settings.history_retention", kNone, queue::kRetentionMin,
                               queue::kRetentionMax));
  }
  if (!settings.has_message_lifetime() || made.message_lifetime != kNone) return absl::OkStatus();
  return CheckRange("settings.message_lifetime", kNone, queue::kTimeoutMin, queue::kRetentionMax);
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

absl::StatusOr<QueueSettings> ToQueueSettings(const wire::QueueSettings& settings) {
  QueueSettings made;
  const auto take = [](bool has, std::string_view name, const google::protobuf::Duration& duration,
                       microseconds& to) -> absl::Status {
    if (!has) return absl::OkStatus();
    ASSIGN_OR_RETURN(to, ToDuration(Inside("settings", name), duration));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(take(settings.has_reservation_timeout(), "reservation_timeout",
                       settings.reservation_timeout(), made.reservation_timeout));
  made.max_tries = settings.max_tries();
  made.dead_letter_queue = settings.dead_letter_queue();
  RETURN_IF_ERROR(
      take(settings.has_retry_delay(), "retry_delay", settings.retry_delay(), made.retry_delay));
  RETURN_IF_ERROR(take(settings.has_retry_delay_max(), "retry_delay_max",
                       settings.retry_delay_max(), made.retry_delay_max));
  RETURN_IF_ERROR(take(settings.has_history_retention(), "history_retention",
                       settings.history_retention(), made.history_retention));
  RETURN_IF_ERROR(take(settings.has_message_lifetime(), "message_lifetime",
                       settings.message_lifetime(), made.message_lifetime));
  made.paused = settings.paused();
  if (settings.has_enrollments()) made.enrollments = ToSink(settings.enrollments());
  RETURN_IF_ERROR(RefuseZeros(settings, made));
  return made;
}

absl::StatusOr<SettingsChange> ToSettingsChange(const wire::QueueSettings& settings,
                                                const google::protobuf::FieldMask& mask) {
  if (mask.paths().empty()) {
    return FieldError("update_mask", "is required: the members of settings to change");
  }
  RETURN_IF_ERROR(CheckLength("update_mask.paths", mask.paths(), std::size(kSettingsMembers)));
  std::vector<const SettingsMember*> members;
  for (int i = 0; i < mask.paths_size(); ++i) {
    ASSIGN_OR_RETURN(const SettingsMember* const member, FindMember(mask, i));
    members.push_back(member);
  }
  ASSIGN_OR_RETURN(QueueSettings wanted, ToQueueSettings(settings));
  // What the mask does not name is judged too.
  RETURN_IF_ERROR(queue::CheckRanges(wanted));
  return [wanted = std::move(wanted), members = std::move(members)](QueueSettings& changed) {
    for (const SettingsMember* const member : members) member->copy(wanted, changed);
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
  ASSIGN_OR_RETURN(made.payload, ToPayload(Inside(field, "payload"), message.payload()));
  made.headers.insert(message.headers().begin(), message.headers().end());
  made.priority = message.priority();
  made.ordering_key = message.ordering_key();
  if (message.has_sequence_number()) made.sequence_number = message.sequence_number();
  RETURN_IF_ERROR(FillTimes(field, message, made));
  made.request_id = message.request_id();
  return made;
}

absl::StatusOr<std::vector<std::string>> ToTokens(std::string_view field, const Strings& tokens) {
  if (tokens.empty()) {
    return FieldError(field, absl::StrCat("is required: 1 to ", queue::kBatchMax, " tokens"));
  }
  RETURN_IF_ERROR(CheckLength(field, tokens, queue::kBatchMax));
  return std::vector<std::string>(tokens.begin(), tokens.end());
}

absl::StatusOr<std::vector<std::string>> ToMessageIds(std::string_view field, const Strings& ids) {
  RETURN_IF_ERROR(CheckLength(field, ids, queue::kBatchMax));
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
  RETURN_IF_ERROR(CheckLength("states", states, kStates));
  std::vector<queue::State> made;
  for (int i = 0; i < states.size(); ++i) {
    const std::string field = Element("states", static_cast<size_t>(i));
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
