// strata pop, reserve, ack, rollback, extend, move, messages, replay, purge.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>

#include "clients/cli/apply_error.h"
#include "clients/cli/arguments.h"
#include "clients/cli/commands.h"
#include "clients/cli/message_json.h"
#include "clients/cli/options.h"
#include "clients/cli/pages.h"
#include "clients/cli/progress.h"
#include "clients/cli/queued_message.h"
#include "clients/cpp/printable.h"

namespace strata::cli {
namespace {

using v1::QueueService;

// Tokens, and ids, of one call.
constexpr int kBatchMax = 100;

std::string CountOf(int64_t number, const std::string& what) {
  return WithCommas(number) + " " + what + (number == 1 ? "" : "s");
}

void AddQueueArgument(CLI::App& command, std::string& queue) {
  command.add_option("QUEUE", queue, "The queue")->required();
}

// What is taken out.

struct TakeOptions {
  std::string queue;
  int32_t count = 1;
  std::string wait;
  std::string timeout;
};

// The payload of each message on a line; before it, with a tabulator behind, its token if it has
// one. Neither has a line end in it.
int PrintTaken(Session& session,
               const google::protobuf::RepeatedPtrField<v1::QueueMessage>& messages) {
  for (const v1::QueueMessage& message : messages) {
    if (session.json) {
      session.out() << MessageJson(message) << "\n";
      continue;
    }
    if (!message.token().empty()) session.out() << client::Printable(message.token()) << "\t";
    session.out() << ContentText(message.payload()) << "\n";
  }
  if (messages.empty() && !session.json) session.err() << "no message came\n";
  return kExitOk;
}

template <typename Response, typename Request, typename Method>
int RunTake(Session& session, const TakeOptions& options, Request& request, Method method) {
  request.set_queue(options.queue);
  request.set_count(options.count);
  request.set_encoding(v1::ENCODING_BSON);
  if (!options.wait.empty()) {
    const absl::Status filled = FillLongDuration("--wait", options.wait, request.mutable_wait());
    if (!filled.ok()) return session.Usage(filled);
  }
  Response response;
  const grpc::Status status = session.Call(method, request, &response);
  return status.ok() ? PrintTaken(session, response.messages()) : session.Refuse(status);
}

void AddTakeOptions(CLI::App& command, TakeOptions& options) {
  AddQueueArgument(command, options.queue);
  command.add_option("--count", options.count, "Maximum number of messages; 1 unless given")
      ->check(WholeNumber(1, kBatchMax))
      ->type_name("N");
  command
      .add_option("--wait", options.wait,
                  "How long to wait for the first one, up to 20s; not at all unless given")
      ->type_name("TIME");
}

void AddPop(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("pop", "Take messages out of a queue, at most once");
  auto options = std::make_shared<TakeOptions>();
  AddTakeOptions(command, *options);
  command.footer(
      "Prints the payloads, one a line; with --json the messages. They are finished then: if\n"
      "the caller fails afterwards, or the answer does not arrive, they are lost. See strata\n"
      "reserve.\n"
      "Example:\n"
      "  strata pop mails --wait 20s | jq -r .to");
  command.callback([&session, options] {
    session.run = [&session, options] {
      v1::PopRequest request;
      return RunTake<v1::PopResponse>(session, *options, request, &QueueService::Stub::Pop);
    };
  });
}

void AddReserve(CLI::App& app, Session& session) {
  CLI::App& command =
      *app.add_subcommand("reserve", "Reserve messages of a queue for a time, at least once");
  auto options = std::make_shared<TakeOptions>();
  AddTakeOptions(command, *options);
  command
      .add_option("--timeout", options->timeout,
                  "For how long, 1s to 12h; the queue's timeout unless given")
      ->type_name("TIME");
  command.footer(
      "Prints a line for each message: its token, a tabulator and its payload; with --json the\n"
      "message. The token is for strata ack, rollback, extend, move, commit. A message without\n"
      "any of these comes again when the time is over.\n"
      "Examples:\n"
      "  strata reserve mails --wait 20s | while IFS=$(printf '\\t') read -r token payload; do\n"
      "    printf %s \"$payload\" | ./send-mail && strata ack \"$token\" || strata rollback "
      "\"$token\"\n"
      "  done\n"
      "strata work does the same, and extends meanwhile. A --timeout before `reserve` is how\n"
      "long the call may take.");
  command.callback([&session, options] {
    session.run = [&session, options] {
      v1::ReserveRequest request;
      if (!options->timeout.empty()) {
        const absl::Status filled =
            FillLongDuration("--timeout", options->timeout, request.mutable_timeout());
        if (!filled.ok()) return session.Usage(filled);
      }
      return RunTake<v1::ReserveResponse>(session, *options, request, &QueueService::Stub::Reserve);
    };
  });
}

// What becomes of it.

void AddTokens(CLI::App& command, std::vector<std::string>& tokens) {
  AddRepeated(command, "TOKEN", tokens, "As strata reserve prints them")->required()->expected(-1);
}

// One call for each hundred tokens. What is refused of one does not keep the others.
template <typename Response, typename Request, typename Method>
int RunTokens(Session& session, const std::vector<std::string>& tokens, Request& request,
              Method method, const std::string& done) {
  int64_t well = 0;
  bool refused = false;
  for (size_t begin = 0; begin < tokens.size(); begin += kBatchMax) {
    const size_t end = std::min(tokens.size(), begin + kBatchMax);
    request.clear_tokens();
    for (size_t i = begin; i < end; ++i) request.add_tokens(tokens[i]);
    Response response;
    const grpc::Status status = session.Call(method, request, &response);
    if (!status.ok()) return session.Refuse(status);
    for (int i = 0; i < response.results_size() && i < request.tokens_size(); ++i) {
      const v1::TokenResult& result = response.results(i);
      if (session.json) session.out() << MessageJson(result) << "\n";
      if (!result.has_error()) ++well;
      if (!result.has_error()) continue;
      refused = true;
      if (!session.json) session.Report(RefusalOfError(result.error()), request.tokens(i));
    }
  }
  if (!session.json) session.out() << done << " " << CountOf(well, "message") << "\n";
  return refused ? kExitRefused : kExitOk;
}

void AddAck(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("ack", "Acknowledge messages: they are done");
  auto tokens = std::make_shared<std::vector<std::string>>();
  AddTokens(command, *tokens);
  command.footer(
      "May be repeated. To change documents in the same commit: strata commit --acknowledge "
      "TOKEN.");
  command.callback([&session, tokens] {
    session.run = [&session, tokens] {
      v1::AcknowledgeRequest request;
      return RunTokens<v1::AcknowledgeResponse>(session, *tokens, request,
                                                &QueueService::Stub::Acknowledge, "acknowledged");
    };
  });
}

struct RollbackOptions {
  std::vector<std::string> tokens;
  std::string delay;
  bool not_counted = false;
  bool dead = false;
  std::string reason;
};

void AddRollback(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("rollback", "Give messages back, to be handed out again");
  auto options = std::make_shared<RollbackOptions>();
  AddTokens(command, options->tokens);
  CLI::Option* const delay =
      command.add_option("--delay", options->delay,
                         "When, from now; 0 is at once; by the queue's retry delay unless given");
  delay->type_name("TIME");
  CLI::Option* const not_counted =
      command.add_flag("--not-counted", options->not_counted,
                       "The try does not count: the message was not at fault");
  command.add_flag("--dead", options->dead, "Never again: they are dead, with --reason as reason")
      ->excludes(delay)
      ->excludes(not_counted);
  command.add_option("--reason", options->reason, "The reason; kept with the messages");
  command.callback([&session, options] {
    session.run = [&session, options] {
      v1::RollbackRequest request;
      request.set_not_counted(options->not_counted);
      request.set_dead(options->dead);
      request.set_reason(options->reason);
      if (!options->delay.empty()) {
        const absl::Status filled =
            FillLongDuration("--delay", options->delay, request.mutable_delay());
        if (!filled.ok()) return session.Usage(filled);
      }
      return RunTokens<v1::RollbackResponse>(session, options->tokens, request,
                                             &QueueService::Stub::Rollback, "rolled back");
    };
  });
}

struct ExtendOptions {
  std::vector<std::string> tokens;
  std::string timeout;
};

void AddExtend(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("extend", "Keep messages for longer");
  auto options = std::make_shared<ExtendOptions>();
  AddTokens(command, options->tokens);
  command
      .add_option("--timeout", options->timeout,
                  "How long from now on, 1s to 12h; the queue's timeout unless given")
      ->type_name("TIME");
  command.footer("A --timeout before `extend` is how long the call may take.");
  command.callback([&session, options] {
    session.run = [&session, options] {
      v1::ExtendRequest request;
      if (!options->timeout.empty()) {
        const absl::Status filled =
            FillLongDuration("--timeout", options->timeout, request.mutable_timeout());
        if (!filled.ok()) return session.Usage(filled);
      }
      return RunTokens<v1::ExtendResponse>(session, options->tokens, request,
                                           &QueueService::Stub::Extend, "extended");
    };
  });
}

struct MoveOptions {
  std::string token;
  std::string queue;
  std::string payload;
  std::vector<std::string> headers;
  std::string delay;
};

int RunMove(Session& session, const MoveOptions& options) {
  v1::MoveRequest request;
  request.set_token(options.token);
  request.set_queue(options.queue);
  request.set_encoding(v1::ENCODING_BSON);
  absl::Status filled = FillHeaders(options.headers, *request.mutable_headers());
  if (filled.ok() && !options.delay.empty()) {
    filled = FillLongDuration("--delay", options.delay, request.mutable_delay());
  }
  if (filled.ok() && !options.payload.empty()) {
    absl::StatusOr<v1::Content> payload = ContentArgument(options.payload, session.in());
    filled = payload.status();
    if (filled.ok()) *request.mutable_payload() = *std::move(payload);
  }
  if (!filled.ok()) return session.Usage(filled);
  v1::MoveResponse response;
  const grpc::Status status = session.Call(&QueueService::Stub::Move, request, &response);
  if (!status.ok()) return session.Refuse(status);
  if (session.json) {
    session.out() << MessageJson(response.message()) << "\n";
  } else {
    session.out() << client::Printable("moved " + response.message().message_id() + " to " +
                                       response.message().queue())
                  << "\n";
  }
  return kExitOk;
}

void AddMove(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("move", "Move a message to another queue");
  auto options = std::make_shared<MoveOptions>();
  command.add_option("TOKEN", options->token, "As strata reserve prints it")->required();
  command.add_option("QUEUE", options->queue, "The target queue")->required();
  command
      .add_option("--payload", options->payload,
                  "The new payload: JSON, @FILE or -; as before unless given")
      ->type_name("JSON");
  AddHeaderOption(command, options->headers);
  command
      .add_option("--delay", options->delay, "To be handed out there not before this time from now")
      ->type_name("TIME");
  command.callback([&session, options] {
    session.run = [&session, options] { return RunMove(session, *options); };
  });
}

// Looking.

struct MessagesOptions {
  std::string queue;
  std::string state;
  std::string id;
  bool show = false;
  LimitOption limit;
};

int RunGetMessage(Session& session, const MessagesOptions& options) {
  v1::GetMessageRequest request;
  request.set_queue(options.queue);
  request.set_message_id(options.id);
  request.set_encoding(v1::ENCODING_BSON);
  v1::GetMessageResponse response;
  const grpc::Status status = session.Call(&QueueService::Stub::GetMessage, request, &response);
  if (!status.ok()) return session.Refuse(status);
  if (session.json) {
    session.out() << MessageJson(response.message()) << "\n";
    return kExitOk;
  }
  Table table = MessageTable(session.palette());
  AddMessageRow(response.message(), /*whole=*/true, table);
  table.Flush(session.out());
  return kExitOk;
}

int RunMessages(Session& session, const MessagesOptions& options) {
  if (!options.id.empty()) return RunGetMessage(session, options);
  v1::ListMessagesRequest request;
  request.set_queue(options.queue);
  request.set_encoding(v1::ENCODING_BSON);
  if (!options.state.empty()) {
    const auto state = ParseMessageState(options.state);
    if (!state.ok()) return session.Usage(state.status());
    request.set_state(*state);
  }
  return PrintPages<v1::ListMessagesResponse>(
      session, request, &QueueService::Stub::ListMessages, options.limit,
      MessageTable(session.palette()),
      [](const auto& response) -> const auto& { return response.messages(); },
      [&](const v1::QueueMessage& message, Table& table) {
        AddMessageRow(message, options.show, table);
      });
}

void AddMessages(CLI::App& app, Session& session) {
  CLI::App& command =
      *app.add_subcommand("messages", "List the messages of a queue, and leave them there");
  auto options = std::make_shared<MessagesOptions>();
  AddQueueArgument(command, options->queue);
  CLI::Option* const state = command.add_option(
      "--state", options->state,
      "Only: scheduled, ready, reserved, waiting, dead or finished; all except finished "
      "unless given");
  state->type_name("STATE");
  command.add_option("--id", options->id, "This message, with headers and payload")
      ->excludes(state)
      ->type_name("ID");
  command.add_flag("--show", options->show, "With headers and payloads");
  options->limit.AddTo(command);
  command.footer(
      "DUE is when a message is to be handed out, when its reservation ends, or when it ended.\n"
      "Examples:\n"
      "  strata messages mails --state dead --show\n"
      "  strata messages mails --id 0195f2c0a1b2c3d4e5f60718293a4b5c");
  command.callback([&session, options] {
    session.run = [&session, options] { return RunMessages(session, *options); };
  });
}

// Many at a time.

struct ManyOptions {
  std::string queue;
  std::vector<std::string> ids;
  std::vector<std::string> states;
  std::string from;
  std::string to;
  std::string target;

  // Either ids or states: a usage error otherwise.
  template <typename Request>
  absl::Status Fill(Request& request) const {
    request.set_queue(queue);
    if (ids.empty() == states.empty()) {
      return absl::InvalidArgumentError("--id and --state: name messages or states of them");
    }
    for (const std::string& name : states) {
      const auto state = ParseMessageState(name);
      if (!state.ok()) return state.status();
      request.add_states(*state);
    }
    return absl::OkStatus();
  }
};

void AddManyOptions(CLI::App& command, ManyOptions& options, const std::string& states) {
  AddQueueArgument(command, options.queue);
  CLI::Option* const ids =
      AddRepeated(command, "--id", options.ids, "This message; may be repeated");
  ids->type_name("ID");
  AddRepeated(command, "--state", options.states, "All that are " + states + "; may be repeated")
      ->excludes(ids)
      ->type_name("STATE");
}

// Calls until there is no more: of ids a hundred at a time. `again`, if any, changes the request
// before it is repeated. `done`: "replayed".
template <typename Response, typename Request, typename Method>
int RunMany(Session& session, const ManyOptions& options, Request& request, Method method,
            const std::string& done, const std::function<void()>& again) {
  Progress progress(session.err(), session.terminal().err_is_terminal && !session.json);
  Response sum;
  grpc::Status status;
  for (size_t begin = 0; status.ok();) {
    const size_t end = std::min(options.ids.size(), begin + kBatchMax);
    request.clear_message_ids();
    for (size_t i = begin; i < end; ++i) request.add_message_ids(options.ids[i]);
    Response response;
    status = session.Call(method, request, &response);
    sum.set_messages(sum.messages() + response.messages());
    sum.set_more(!status.ok() || response.more() || end < options.ids.size());
    if (!sum.more()) break;
    if (!response.more()) begin = end;
    progress.Show(sum.messages(), "messages", 0);
    if (again) again();
  }
  progress.Clear();
  if (status.ok() || sum.messages() > 0) {
    if (session.json) {
      session.out() << MessageJson(sum) << "\n";
    } else {
      session.out() << done << " " << CountOf(sum.messages(), "message") << "\n";
    }
  }
  if (status.ok()) return kExitOk;
  session.out().flush();
  return session.Refuse(status);
}

int RunReplay(Session& session, const ManyOptions& options) {
  v1::ReplayRequest request;
  absl::Status filled = options.Fill(request);
  request.set_target_queue(options.target);
  if (filled.ok() && !options.from.empty()) {
    filled = FillTime("--from", options.from, request.mutable_start_time());
  }
  if (filled.ok() && !options.to.empty()) {
    filled = FillTime("--to", options.to, request.mutable_end_time());
  }
  if (!filled.ok()) return session.Usage(filled);
  // What ends anew while this goes on is not replayed once more, and so on.
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
  return RunMany<v1::ReplayResponse>(session, options, request, &QueueService::Stub::Replay,
                                     "replayed", [&] {
                                       if (options.states.empty() || request.has_end_time()) return;
                                       request.mutable_end_time()->set_seconds(now.count() + 1);
                                     });
}

void AddReplay(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("replay", "Hand out finished or dead messages again");
  auto options = std::make_shared<ManyOptions>();
  AddManyOptions(command, *options, "finished or dead");
  CLI::Option* const states = command.get_option("--state");
  command.add_option("--from", options->from, "Of these, those that ended at this time or later")
      ->needs(states)
      ->type_name("TIME");
  command.add_option("--to", options->to, "Of these, those that ended before this time")
      ->needs(states)
      ->type_name("TIME");
  command.add_option("--target", options->target, "Into this queue; the same one unless given")
      ->type_name("QUEUE");
  command.footer(
      std::string("Examples:\n"
                  "  strata replay mails --state dead\n"
                  "  strata replay mails --state dead --target mails-by-hand\n"
                  "  strata replay mails --state finished --from 2026-01-31 --to 2026-02-01\n"
                  "Finished messages are kept only where the queue has a history (strata queue "
                  "update --history).\n") +
      kTimesHelp);
  command.callback([&session, options] {
    session.run = [&session, options] { return RunReplay(session, *options); };
  });
}

void AddPurgeQueue(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("purge", "Remove messages for good");
  auto options = std::make_shared<ManyOptions>();
  AddManyOptions(command, *options, "scheduled, ready, reserved, waiting, dead or finished");
  command.footer(
      "Examples:\n"
      "  strata purge mails --state dead --state finished\n"
      "  strata purge mails --id 0195f2c0a1b2c3d4e5f60718293a4b5c");
  command.callback([&session, options] {
    session.run = [&session, options] {
      v1::PurgeMessagesRequest request;
      const absl::Status filled = options->Fill(request);
      if (!filled.ok()) return session.Usage(filled);
      return RunMany<v1::PurgeMessagesResponse>(session, *options, request,
                                                &QueueService::Stub::PurgeMessages, "purged", {});
    };
  });
}

}  // namespace

void AddMessageCommands(CLI::App& app, Session& session) {
  AddPop(app, session);
  AddReserve(app, session);
  AddAck(app, session);
  AddRollback(app, session);
  AddExtend(app, session);
  AddMove(app, session);
  AddMessages(app, session);
  AddReplay(app, session);
  AddPurgeQueue(app, session);
}

}  // namespace strata::cli
