// strata push.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "clients/cli/alike_errors.h"
#include "clients/cli/apply_error.h"
#include "clients/cli/arguments.h"
#include "clients/cli/cancellation.h"
#include "clients/cli/commands.h"
#include "clients/cli/input_file.h"
#include "clients/cli/message_json.h"
#include "clients/cli/options.h"
#include "clients/cli/progress.h"
#include "clients/cli/pusher.h"
#include "clients/cli/queued_message.h"
#include "clients/cpp/printable.h"
#include "clients/cpp/time_text.h"

namespace strata::cli {
namespace {

struct PushOptions {
  std::string queue;
  std::string payload;
  PushedOptions pushed;
  std::string delay;
  std::string at;
  std::string expires;
  std::string request_id;
  bool lines = false;
  int in_flight = 0;  // 0: not given
  std::string retry_for = "60s";
};

absl::Status FillMessage(const PushOptions& options, v1::PushedMessage& message) {
  message.set_request_id(options.request_id);
  absl::Status filled = options.pushed.Fill(message);
  if (filled.ok() && !options.delay.empty()) {
    filled = FillLongDuration("--delay", options.delay, message.mutable_delay());
  }
  if (filled.ok() && !options.at.empty()) {
    filled = FillTime("--at", options.at, message.mutable_deliver_time());
  }
  if (filled.ok() && !options.expires.empty()) {
    filled = FillTime("--expires", options.expires, message.mutable_expire_time());
  }
  return filled;
}

int RunPushOne(Session& session, const PushOptions& options) {
  v1::PushRequest request;
  request.set_queue(options.queue);
  v1::PushedMessage& message = *request.add_messages();
  const absl::Status filled = FillMessage(options, message);
  if (!filled.ok()) return session.Usage(filled);
  absl::StatusOr<v1::Content> payload = ContentArgument(options.payload, session.in());
  if (!payload.ok()) return session.Usage(payload.status());
  *message.mutable_payload() = *std::move(payload);
  v1::PushResponse response;
  const grpc::Status status = session.Call(&v1::QueueService::Stub::Push, request, &response);
  if (!status.ok()) return session.Refuse(status);
  if (response.results_size() != 1) return session.Fail("the server answers something else");
  const v1::PushResult& result = response.results(0);
  if (result.has_error()) return session.Refuse(RefusalOfError(result.error()));
  if (session.json) {
    session.out() << MessageJson(result) << "\n";
  } else {
    session.out() << client::Printable("pushed " + result.message_id())
                  << (result.replayed() ? " (by an earlier call with this request id)\n" : "\n");
  }
  return kExitOk;
}

void PrintSummary(Session& session, const PushCounts& counts, double seconds) {
  const auto rate =
      static_cast<int64_t>(static_cast<double>(counts.done()) / std::max(seconds, 1e-3));
  char duration[32];
  std::snprintf(duration, sizeof duration, "%.2f", seconds);
  if (session.json) {
    session.out() << "{\"messages\":" << counts.messages << ",\"pushed\":" << counts.pushed
                  << ",\"replayed\":" << counts.replayed << ",\"refused\":" << counts.refused
                  << ",\"malformed\":" << counts.malformed << ",\"seconds\":" << duration
                  << ",\"messages_per_second\":" << rate << "}\n";
    return;
  }
  std::ostream& err = session.err();
  err << WithCommas(counts.messages) << " messages: " << WithCommas(counts.pushed) << " pushed, ";
  if (counts.replayed > 0) err << WithCommas(counts.replayed) << " pushed before, ";
  err << WithCommas(counts.refused) << " refused, " << WithCommas(counts.malformed)
      << " malformed, in " << duration << " s (" << WithCommas(rate) << " messages/s)\n";
}

void ReportFailure(Session& session, const PushFailure& failure, const PushOptions& options,
                   const PushSettings& settings, const std::string& file) {
  session.Refuse(failure.refusal, file + ":" + std::to_string(failure.line));
  if (session.json) return;
  session.err() << "Push stopped there. Run it again to continue, with --request-id "
                << client::Printable(settings.defaults.request_id())
                << (options.request_id.empty() ? "" : ", as before")
                << ": pushed messages are not pushed again for 24 hours.\n";
}

int RunPushLines(Session& session, const PushOptions& options) {
  PushSettings settings;
  settings.queue = options.queue;
  const auto retry_ms = client::ParseDurationMs(options.retry_for);
  if (!retry_ms.ok()) return session.Usage(retry_ms.status());
  settings.retry_ms = *retry_ms;
  // Of one key the pushes make the order.
  settings.in_flight = options.in_flight > 0        ? options.in_flight
                       : options.pushed.key.empty() ? 4
                                                    : 1;
  const absl::Status filled = FillMessage(options, settings.defaults);
  if (!filled.ok()) return session.Usage(filled);
  if (options.request_id.empty()) settings.defaults.set_request_id(DrawnId());
  const std::string name =
      options.payload.starts_with("@") ? options.payload.substr(1) : options.payload;
  InputFile file(name, session.terminal());
  if (!file.is_open()) return session.Usage("cannot read " + name);
  LineReader lines(file.stream());
  PushCounts counts;
  AlikeErrors alike(session);
  Cancellation cancellation([&] { file.Stop(); });
  Progress progress(session.err(), session.terminal().err_is_terminal && !session.json);
  PushListener listener;
  listener.progress = [&](const PushCounts& so_far) {
    // Lines are read ahead of what is done.
    const auto known = static_cast<double>(std::max<int64_t>(so_far.messages, 1));
    const double done = static_cast<double>(so_far.done()) / known;
    progress.Show(so_far.done(), "messages", file.Part(so_far.bytes_read) * done);
  };
  listener.rejected = [&](const PushLine& line, const client::Refusal& refusal, bool stopped) {
    if (stopped) return;  // Why, is said once.
    progress.Clear();
    alike.Report(refusal, file.name() + ":" + std::to_string(line.line));
  };
  listener.stop = [&cancellation] { return cancellation.asked(); };
  std::optional<PushFailure> failure = Push(session, settings, lines, counts, listener);
  progress.Clear();
  alike.PrintOthers();
  const bool interrupted = failure.has_value() && cancellation.asked();
  if (interrupted) failure->refusal = client::RefusalOf(absl::CancelledError("interrupted"));
  if (failure.has_value()) ReportFailure(session, *failure, options, settings, file.name());
  PrintSummary(session, counts, progress.seconds());
  if (interrupted) return cancellation.exit_status();
  return failure.has_value() || counts.rejected() > 0 ? kExitRefused : kExitOk;
}

constexpr char kPushFooter[] =
    R"(Examples:
  strata push mails '{"to": "ann"}' --delay 10m --request-id welcome-ann
  strata push changes @messages.ndjson.zst --lines
  kcat -C -t enrollments -e -u | strata push changes - --lines

With --lines each line is a message, a JSON object, and PAYLOAD names a file (which may be
compressed with zstd) or is -. A member sequence_number that is a whole number is the message's
--sequence too, so that strata purge-tombstones --queue knows which are still to come. Lines that
are malformed or refused are named on standard error (ten for each reason, then their number; with
--json all); the others are pushed. Calls without a definite answer are repeated for --retry-for;
each line has a request id of its own for that, ID/LINE, so that it is pushed once. Running the
command again with the same --request-id is as safe, within 24 hours. Calls of up to a hundred lines
run in parallel, which may change the order of lines that far apart; not with --key, nor with
--in-flight 1.
Exit status 1 if any line was malformed or refused.)";

void AddOptions(CLI::App& command, PushOptions& options) {
  command.add_option("QUEUE", options.queue, "The queue")->required();
  command.add_option("PAYLOAD", options.payload, "JSON, @FILE, or - (standard input)")->required();
  CLI::Option* const delay = command.add_option(
      "--delay", options.delay, "To be handed out after this time from now: 10s, 2h, 7d");
  delay->type_name("TIME");
  command.add_option("--at", options.at, "To be handed out not before this time")
      ->excludes(delay)
      ->type_name("TIME");
  options.pushed.AddTo(command);
  command
      .add_option("--expires", options.expires,
                  "Not to be handed out after this time; by the queue's lifetime unless given")
      ->type_name("TIME");
  command.add_option("--request-id", options.request_id,
                     "Makes repeating the command safe: within 24 hours the same id takes effect "
                     "once");
  CLI::Option* const lines = command.add_flag("--lines", options.lines, "A message for each line");
  lines->excludes(command.get_option("--sequence"));
  command
      .add_option("--in-flight", options.in_flight, "Parallel calls; 4 unless given, with --key 1")
      ->needs(lines)
      ->check(WholeNumber(1, 64))
      ->type_name("N");
  command
      .add_option("--retry-for", options.retry_for,
                  "How long a call is tried again; 60s unless given")
      ->needs(lines)
      ->type_name("TIME");
}

}  // namespace

void AddPushCommand(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("push", "Push a message into a queue, or a file of them");
  auto options = std::make_shared<PushOptions>();
  AddOptions(command, *options);
  command.footer(std::string(kPushFooter) + "\n" + kTimesHelp);
  command.callback([&session, options] {
    session.run = [&session, options] {
      return options->lines ? RunPushLines(session, *options) : RunPushOne(session, *options);
    };
  });
}

}  // namespace strata::cli
