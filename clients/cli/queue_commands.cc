// strata queue create, get, list, update, delete; strata schedule create, list, delete.
#include <algorithm>
#include <map>
#include <memory>

#include "clients/cli/arguments.h"
#include "clients/cli/commands.h"
#include "clients/cli/message_json.h"
#include "clients/cli/options.h"
#include "clients/cli/pages.h"
#include "clients/cli/queued_message.h"
#include "clients/cpp/printable.h"

namespace strata::cli {
namespace {

using v1::QueueService;

// An option for each setting. What was given goes into an update's mask.
struct SettingsOptions {
  std::string timeout;
  int32_t max_tries = 0;
  std::string dead_letter;
  std::string retry_delay;
  std::string retry_delay_max;
  std::string history;
  std::string lifetime;
  bool paused = false;
  std::string enrollments;
  std::string set;
  int32_t in_flight = 0;

  CLI::Option* paused_option = nullptr;
  CLI::Option* dead_letter_option = nullptr;

  void AddTo(CLI::App& command);
  // `given`: the fields of QueueSettings that were.
  absl::Status Fill(v1::QueueSettings& settings, std::vector<std::string>& given) const;

 private:
  absl::Status FillTimes(v1::QueueSettings& settings, std::vector<std::string>& given) const;
};

void SettingsOptions::AddTo(CLI::App& command) {
  const auto add_time = [&](const char* name, std::string& value, const char* text) {
    command.add_option(name, value, text)->type_name("TIME");
  };
  add_time("--timeout", timeout,
           "How long a message is reserved if the consumer gives no timeout; 30s unless given");
  command
      .add_option("--max-tries", max_tries,
                  "How often a message is handed out before it is dead; no limit unless given")
      ->check(WholeNumber(1))
      ->type_name("N");
  dead_letter_option =
      command
          .add_option("--dead-letter", dead_letter,
                      "The queue that takes dead messages; they stay, dead, unless given")
          ->type_name("QUEUE");
  add_time("--retry-delay", retry_delay,
           "How long a rolled back message waits, and twice as long each further time; "
           "1s unless given");
  add_time("--retry-delay-max", retry_delay_max, "The longest such wait; 1h unless given");
  add_time("--history", history,
           "How long finished messages are kept, to be replayed; not kept unless given");
  add_time("--lifetime", lifetime,
           "How long a message may wait before it expires; for ever unless given");
  paused_option = command.add_flag("--paused", paused, "Hand out no message; all other calls work");
  CLI::Option* const sink = command.add_option(
      "--enrollments", enrollments,
      "The server itself consumes the queue: enroll and unenroll messages, for this collection");
  sink->type_name("COLLECTION");
  command.add_option("--set", set, "The member that holds the set; classes unless given")
      ->needs(sink)
      ->type_name("NAME");
  command
      .add_option("--in-flight", in_flight, "Maximum number of these at a time; 64 unless given")
      ->needs(sink)
      ->check(WholeNumber(1, 1000))
      ->type_name("N");
}

absl::Status SettingsOptions::FillTimes(v1::QueueSettings& settings,
                                        std::vector<std::string>& given) const {
  absl::Status filled;
  const auto fill = [&](const char* option, const char* field, const std::string& text,
                        auto mutable_time) {
    if (!filled.ok() || text.empty()) return;
    filled = FillLongDuration(option, text, (settings.*mutable_time)());
    given.emplace_back(field);
  };
  using v1::QueueSettings;
  fill("--timeout", "reservation_timeout", timeout, &QueueSettings::mutable_reservation_timeout);
  fill("--retry-delay", "retry_delay", retry_delay, &QueueSettings::mutable_retry_delay);
  fill("--retry-delay-max", "retry_delay_max", retry_delay_max,
       &QueueSettings::mutable_retry_delay_max);
  fill("--history", "history_retention", history, &QueueSettings::mutable_history_retention);
  fill("--lifetime", "message_lifetime", lifetime, &QueueSettings::mutable_message_lifetime);
  return filled;
}

absl::Status SettingsOptions::Fill(v1::QueueSettings& settings,
                                   std::vector<std::string>& given) const {
  if (max_tries > 0) {
    settings.set_max_tries(max_tries);
    given.emplace_back("max_tries");
  }
  if (dead_letter_option->count() > 0) {
    settings.set_dead_letter_queue(dead_letter);
    given.emplace_back("dead_letter_queue");
  }
  if (paused_option->count() > 0) {
    settings.set_paused(paused);
    given.emplace_back("paused");
  }
  if (!enrollments.empty()) {
    settings.mutable_enrollments()->set_collection(enrollments);
    settings.mutable_enrollments()->set_set(set);
    settings.mutable_enrollments()->set_max_in_flight(in_flight);
    given.emplace_back("enrollments");
  }
  return FillTimes(settings, given);
}

std::string EnrollmentsCell(const v1::QueueSettings& settings) {
  if (!settings.has_enrollments()) return "-";
  const v1::EnrollmentSink& sink = settings.enrollments();
  std::string cell = "into " + sink.collection();
  if (!sink.set().empty()) cell += ", set " + sink.set();
  if (sink.max_in_flight() > 0) cell += ", " + std::to_string(sink.max_in_flight()) + " at a time";
  return cell;
}

// What is unset counts as the comments of QueueSettings say.
Table SettingsTable(const v1::QueueSettings& settings, const Palette& palette) {
  Table table({"SETTING", "VALUE"}, palette);
  const auto time_or = [](bool is_set, const google::protobuf::Duration& time, const char* other) {
    return is_set ? DurationCell(true, time) : std::string(other);
  };
  table.AddRow({"timeout", time_or(settings.has_reservation_timeout(),
                                   settings.reservation_timeout(), "30s")});
  table.AddRow(
      {"max-tries", settings.has_max_tries() ? std::to_string(settings.max_tries()) : "-"});
  table.AddRow({"dead-letter", OrDash(settings.dead_letter_queue())});
  table.AddRow({"retry-delay", time_or(settings.has_retry_delay(), settings.retry_delay(), "1s")});
  table.AddRow({"retry-delay-max",
                time_or(settings.has_retry_delay_max(), settings.retry_delay_max(), "1h")});
  table.AddRow(
      {"history", DurationCell(settings.has_history_retention(), settings.history_retention())});
  table.AddRow(
      {"lifetime", DurationCell(settings.has_message_lifetime(), settings.message_lifetime())});
  table.AddRow({"paused", settings.paused() ? "yes" : "no"});
  table.AddRow({"enrollments", EnrollmentsCell(settings)});
  return table;
}

Table QueueTable(const Session& session) {
  Table table({"NAME", "MADE", "MAX TRIES", "DEAD LETTER", "STATE"}, session.palette());
  table.AlignRight(2);
  return table;
}

void AddQueue(const v1::Queue& queue, Table& table) {
  const v1::QueueSettings& settings = queue.settings();
  std::string state = settings.paused() ? "paused" : "-";
  if (settings.has_enrollments()) {
    const std::string consumed = "enrolls " + EnrollmentsCell(settings);
    state = settings.paused() ? state + ", " + consumed : consumed;
  }
  table.AddRow({queue.name(), TimeCell(queue.has_create_time(), queue.create_time()),
                settings.has_max_tries() ? std::to_string(settings.max_tries()) : "-",
                OrDash(settings.dead_letter_queue()), state});
}

int PrintQueue(Session& session, const v1::Queue& queue) {
  if (session.json) {
    session.out() << MessageJson(queue) << "\n";
    return kExitOk;
  }
  Table table = QueueTable(session);
  AddQueue(queue, table);
  table.Flush(session.out());
  return kExitOk;
}

int RunGetQueue(Session& session, const std::string& name) {
  v1::GetQueueRequest request;
  request.set_name(name);
  v1::GetQueueResponse response;
  const grpc::Status status = session.Call(&QueueService::Stub::GetQueue, request, &response);
  if (!status.ok()) return session.Refuse(status);
  if (session.json) return PrintQueue(session, response.queue());
  SettingsTable(response.queue().settings(), session.palette()).Flush(session.out());
  session.out() << "\n";
  const v1::QueueStatistics& counts = response.queue().statistics();
  Table table(
      {"READY", "SCHEDULED", "RESERVED", "WAITING", "DEAD", "OLDEST READY", "LOW WATERMARK"},
      session.palette());
  for (const size_t numbers : {0, 1, 2, 3, 4, 5, 6}) table.AlignRight(numbers);
  table.AddRow({WithCommas(counts.ready()), WithCommas(counts.scheduled()),
                WithCommas(counts.reserved()), WithCommas(counts.waiting()),
                WithCommas(counts.dead()),
                DurationCell(counts.has_oldest_ready_age(), counts.oldest_ready_age()),
                counts.has_low_watermark() ? std::to_string(counts.low_watermark()) : "-"});
  if (!counts.exact()) table.AddNote({"(a count is under way)"});
  table.Flush(session.out());
  return kExitOk;
}

struct QueueOptions {
  std::string name;
  SettingsOptions settings;
  bool resumed = false;
  CLI::Option* resume = nullptr;
  std::vector<std::string> unset;
};

int RunCreateQueue(Session& session, const QueueOptions& options) {
  v1::CreateQueueRequest request;
  request.set_name(options.name);
  std::vector<std::string> given;
  const absl::Status filled = options.settings.Fill(*request.mutable_settings(), given);
  if (!filled.ok()) return session.Usage(filled);
  v1::CreateQueueResponse response;
  const grpc::Status status = session.Call(&QueueService::Stub::CreateQueue, request, &response);
  return status.ok() ? PrintQueue(session, response.queue()) : session.Refuse(status);
}

// The names of options, and the fields that they set.
const std::map<std::string, std::string>& FieldsOfSettings() {
  static const std::map<std::string, std::string> fields = {
      {"timeout", "reservation_timeout"},     {"max-tries", "max_tries"},
      {"dead-letter", "dead_letter_queue"},   {"retry-delay", "retry_delay"},
      {"retry-delay-max", "retry_delay_max"}, {"history", "history_retention"},
      {"lifetime", "message_lifetime"},       {"enrollments", "enrollments"}};
  return fields;
}

int RunUpdateQueue(Session& session, const QueueOptions& options) {
  v1::UpdateQueueRequest request;
  request.set_name(options.name);
  std::vector<std::string> given;
  const absl::Status filled = options.settings.Fill(*request.mutable_settings(), given);
  if (!filled.ok()) return session.Usage(filled);
  if (options.resume->count() > 0) given.emplace_back("paused");
  for (const std::string& name : options.unset) given.push_back(FieldsOfSettings().at(name));
  if (given.empty()) return session.Usage("nothing is to be changed: name a setting");
  std::sort(given.begin(), given.end());
  if (std::adjacent_find(given.begin(), given.end()) != given.end()) {
    return session.Usage("a setting is named twice");
  }
  for (const std::string& field : given) request.mutable_update_mask()->add_paths(field);
  v1::UpdateQueueResponse response;
  const grpc::Status status = session.Call(&QueueService::Stub::UpdateQueue, request, &response);
  return status.ok() ? PrintQueue(session, response.queue()) : session.Refuse(status);
}

constexpr char kSettingsFooter[] =
    "Lengths of time: 90, 30s, 250ms, 2m, 1h, 30d. A --timeout before `queue` is how long the call "
    "may\ntake.";

void AddCreateQueue(CLI::App& parent, Session& session) {
  CLI::App& command = *parent.add_subcommand("create", "Make a queue");
  auto options = std::make_shared<QueueOptions>();
  command.add_option("NAME", options->name, "The queue")->required();
  options->settings.AddTo(command);
  command.footer(std::string("Examples:\n"
                             "  strata queue create dead-mails\n"
                             "  strata queue create mails --max-tries 5 --dead-letter dead-mails\n"
                             "  strata queue create changes --enrollments students\n") +
                 kSettingsFooter);
  command.callback([&session, options] {
    session.run = [&session, options] { return RunCreateQueue(session, *options); };
  });
}

void AddUpdateQueue(CLI::App& parent, Session& session) {
  CLI::App& command =
      *parent.add_subcommand("update", "Change some settings of a queue; pause and resume it");
  auto options = std::make_shared<QueueOptions>();
  command.add_option("NAME", options->name, "The queue")->required();
  options->settings.AddTo(command);
  options->resume = command.add_flag("--resume", options->resumed, "Hand out again")
                        ->excludes(options->settings.paused_option);
  std::vector<std::string> names;
  for (const auto& [name, field] : FieldsOfSettings()) names.push_back(name);
  AddRepeated(command, "--unset", options->unset,
              "Return this setting to its default: timeout, max-tries, "
              "dead-letter, retry-delay, retry-delay-max, history, lifetime or enrollments; may be "
              "repeated")
      ->check(CLI::IsMember(names))
      ->type_name("SETTING");
  command.footer(
      std::string("Examples:\n"
                  "  strata queue update mails --paused\n"
                  "  strata queue update mails --resume --timeout 2m --unset history\n"
                  "A change applies to a message from its next hand-out or roll back. With\n"
                  "--enrollments, --set and --in-flight that are not given are unset.\n") +
      kSettingsFooter);
  command.callback([&session, options] {
    session.run = [&session, options] { return RunUpdateQueue(session, *options); };
  });
}

void AddGetQueue(CLI::App& parent, Session& session) {
  CLI::App& command = *parent.add_subcommand(
      "get", "Print the settings of a queue, and the numbers of its messages");
  auto name = std::make_shared<std::string>();
  command.add_option("NAME", *name, "The queue")->required();
  command.callback(
      [&session, name] { session.run = [&session, name] { return RunGetQueue(session, *name); }; });
}

void AddListQueues(CLI::App& parent, Session& session) {
  CLI::App& command = *parent.add_subcommand("list", "List queues");
  auto limit = std::make_shared<LimitOption>();
  limit->AddTo(command);
  command.callback([&session, limit] {
    session.run = [&session, limit] {
      v1::ListQueuesRequest request;
      return PrintPages<v1::ListQueuesResponse>(
          session, request, &QueueService::Stub::ListQueues, *limit, QueueTable(session),
          [](const auto& response) -> const auto& { return response.queues(); }, AddQueue);
    };
  });
}

struct DeleteOptions {
  std::string name;
  bool force = false;
};

int RunDeleteQueue(Session& session, const DeleteOptions& options) {
  v1::DeleteQueueRequest request;
  request.set_name(options.name);
  request.set_force(options.force);
  v1::DeleteQueueResponse response;
  const grpc::Status status = session.Call(&QueueService::Stub::DeleteQueue, request, &response);
  if (!status.ok()) return session.Refuse(status);
  if (session.json) {
    session.out() << MessageJson(response) << "\n";
  } else {
    session.out() << client::Printable("deleted queue " + options.name) << "\n";
  }
  return kExitOk;
}

void AddDeleteQueue(CLI::App& parent, Session& session) {
  CLI::App& command = *parent.add_subcommand("delete", "Delete a queue, with its schedules");
  auto options = std::make_shared<DeleteOptions>();
  command.add_option("NAME", options->name, "The queue")->required();
  command.add_flag("--force", options->force, "With its messages, in any state");
  command.callback([&session, options] {
    session.run = [&session, options] { return RunDeleteQueue(session, *options); };
  });
}

// Schedules.

Table ScheduleTable(const Session& session) {
  return Table({"NAME", "WHEN", "NEXT", "PAYLOAD"}, session.palette());
}

void AddSchedule(const v1::Schedule& schedule, Table& table) {
  table.AddRow(
      {schedule.name(),
       schedule.has_cron() ? schedule.cron() : "every " + DurationCell(true, schedule.every()),
       TimeCell(schedule.has_next_time(), schedule.next_time()),
       ContentText(schedule.message().payload())});
}

struct ScheduleOptions {
  std::string queue;
  std::string name;
  std::string payload;
  std::string cron;
  std::string every;
  PushedOptions pushed;
};

int RunCreateSchedule(Session& session, const ScheduleOptions& options) {
  if (options.cron.empty() == options.every.empty()) {
    return session.Usage("--cron and --every: name one of them");
  }
  v1::CreateScheduleRequest request;
  request.set_queue(options.queue);
  request.set_name(options.name);
  request.set_encoding(v1::ENCODING_BSON);
  absl::Status filled = options.pushed.Fill(*request.mutable_message());
  if (filled.ok() && !options.payload.empty()) {
    absl::StatusOr<v1::Content> payload = ContentArgument(options.payload, session.in());
    filled = payload.status();
    if (filled.ok()) *request.mutable_message()->mutable_payload() = *std::move(payload);
  }
  if (!options.cron.empty()) request.set_cron(options.cron);
  if (filled.ok() && !options.every.empty()) {
    filled = FillLongDuration("--every", options.every, request.mutable_every());
  }
  if (!filled.ok()) return session.Usage(filled);
  v1::CreateScheduleResponse response;
  const grpc::Status status = session.Call(&QueueService::Stub::CreateSchedule, request, &response);
  if (!status.ok()) return session.Refuse(status);
  if (session.json) {
    session.out() << MessageJson(response.schedule()) << "\n";
    return kExitOk;
  }
  Table table = ScheduleTable(session);
  AddSchedule(response.schedule(), table);
  table.Flush(session.out());
  return kExitOk;
}

void AddCreateSchedule(CLI::App& parent, Session& session) {
  CLI::App& command =
      *parent.add_subcommand("create", "Make a schedule; one of the same name is replaced");
  auto options = std::make_shared<ScheduleOptions>();
  command.add_option("QUEUE", options->queue, "The queue")->required();
  command.add_option("NAME", options->name, "The schedule")->required();
  command.add_option("PAYLOAD", options->payload, "The message: JSON, @FILE or -; {} unless given");
  command
      .add_option("--cron", options->cron,
                  "When, in UTC: minute, hour, day of the month, month, day of the week")
      ->type_name("'M H D M W'");
  command.add_option("--every", options->every, "The interval; 1s to 30d")->type_name("TIME");
  options->pushed.AddTo(command);
  command.footer(
      "Examples:\n"
      "  strata schedule create mails newsletter '{\"to\": \"all\"}' --cron '0 6 * * 1-5'\n"
      "  strata schedule create jobs sweep --every 10m\n"
      "At each time one message is pushed, with any number of servers; of the times that passed "
      "while\nnone ran, only the newest.");
  command.callback([&session, options] {
    session.run = [&session, options] { return RunCreateSchedule(session, *options); };
  });
}

void AddListSchedules(CLI::App& parent, Session& session) {
  CLI::App& command = *parent.add_subcommand("list", "List the schedules of a queue");
  auto queue = std::make_shared<std::string>();
  command.add_option("QUEUE", *queue, "The queue")->required();
  command.callback([&session, queue] {
    session.run = [&session, queue] {
      v1::ListSchedulesRequest request;
      request.set_queue(*queue);
      request.set_encoding(v1::ENCODING_BSON);
      return PrintPages<v1::ListSchedulesResponse>(
          session, request, &QueueService::Stub::ListSchedules, {}, ScheduleTable(session),
          [](const auto& response) -> const auto& { return response.schedules(); }, AddSchedule);
    };
  });
}

void AddDeleteSchedule(CLI::App& parent, Session& session) {
  CLI::App& command = *parent.add_subcommand("delete", "Delete a schedule");
  auto options = std::make_shared<ScheduleOptions>();
  command.add_option("QUEUE", options->queue, "The queue")->required();
  command.add_option("NAME", options->name, "The schedule")->required();
  command.callback([&session, options] {
    session.run = [&session, options] {
      v1::DeleteScheduleRequest request;
      request.set_queue(options->queue);
      request.set_name(options->name);
      v1::DeleteScheduleResponse response;
      const grpc::Status status =
          session.Call(&QueueService::Stub::DeleteSchedule, request, &response);
      if (!status.ok()) return session.Refuse(status);
      if (session.json) {
        session.out() << MessageJson(response) << "\n";
      } else {
        session.out() << client::Printable("deleted schedule " + options->name) << "\n";
      }
      return kExitOk;
    };
  });
}

}  // namespace

void AddQueueCommands(CLI::App& app, Session& session) {
  CLI::App& queue = *app.add_subcommand(
      "queue", "Queues of messages; strata push fills them, strata work empties them");
  queue.require_subcommand(1);
  AddCreateQueue(queue, session);
  AddGetQueue(queue, session);
  AddListQueues(queue, session);
  AddUpdateQueue(queue, session);
  AddDeleteQueue(queue, session);
  queue.footer(
      "Examples:\n"
      "  strata queue create mails --max-tries 5\n"
      "  strata push mails '{\"to\": \"ann\"}'\n"
      "  strata work mails -- ./send-mail\n"
      "  strata queue get mails\n"
      "  strata messages mails --state dead");

  CLI::App& schedule = *app.add_subcommand("schedule", "Messages that are pushed again and again");
  schedule.require_subcommand(1);
  AddCreateSchedule(schedule, session);
  AddListSchedules(schedule, session);
  AddDeleteSchedule(schedule, session);
}

}  // namespace strata::cli
