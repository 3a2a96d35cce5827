// strata apply.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>

#include "clients/cli/alike_errors.h"
#include "clients/cli/applier.h"
#include "clients/cli/cancellation.h"
#include "clients/cli/commands.h"
#include "clients/cli/input_file.h"
#include "clients/cli/options.h"
#include "clients/cli/progress.h"
#include "clients/cpp/extended_json.h"
#include "clients/cpp/printable.h"
#include "clients/cpp/time_text.h"

namespace strata::cli {
namespace {

struct ApplyOptions {
  std::string file;
  std::string reject;
  SetOptions set;
  ChangeOptions change;
  int streams = 1;
  int in_flight = 256;
  std::string retry_for = "60s";
};

absl::Status FillSettings(const ApplyOptions& options, ApplySettings& settings) {
  options.set.Fill(settings.defaults);
  settings.streams = options.streams;
  settings.in_flight = options.in_flight;
  const auto retry_ms = client::ParseDurationMs(options.retry_for);
  if (!retry_ms.ok()) return retry_ms.status();
  settings.retry_ms = *retry_ms;
  return options.change.Fill(*settings.defaults.mutable_change());
}

// {"line":3,"text":"…","error":{…}}: the line as it stood there, and why it was not taken.
std::string RejectedLine(const Message& message, const client::Refusal& refusal) {
  std::string json = "{\"line\":" + std::to_string(message.line) + ",\"text\":";
  const bool is_text = client::IsUtf8(message.text);
  client::AppendJsonString(is_text ? message.text : client::Printable(message.text), json);
  return json + ",\"error\":" + RefusalJson(refusal) + "}\n";
}

void PrintSummary(Session& session, const ApplyCounts& counts, double seconds) {
  const auto rate =
      static_cast<int64_t>(static_cast<double>(counts.done()) / std::max(seconds, 1e-3));
  char duration[32];
  std::snprintf(duration, sizeof duration, "%.2f", seconds);
  if (session.json) {
    session.out() << "{\"messages\":" << counts.messages << ",\"applied\":" << counts.applied
                  << ",\"superseded\":" << counts.superseded
                  << ",\"duplicate\":" << counts.duplicate << ",\"conflict\":" << counts.conflict
                  << ",\"below_floor\":" << counts.below_floor << ",\"refused\":" << counts.refused
                  << ",\"malformed\":" << counts.malformed << ",\"seconds\":" << duration
                  << ",\"messages_per_second\":" << rate << "}\n";
    return;
  }
  std::ostream& err = session.err();
  err << WithCommas(counts.messages) << " messages: " << WithCommas(counts.applied) << " applied, "
      << WithCommas(counts.superseded) << " superseded, " << WithCommas(counts.duplicate)
      << " duplicate, " << WithCommas(counts.conflict) << " conflict, "
      << WithCommas(counts.below_floor) << " below floor, " << WithCommas(counts.refused)
      << " refused, " << WithCommas(counts.malformed) << " malformed";
  if (counts.repeated > 0) err << ", " << WithCommas(counts.repeated) << " sent again";
  err << ", in " << duration << " s (" << WithCommas(rate) << " messages/s)\n";
}

void ReportFailure(Session& session, const ApplyFailure& failure, const std::string& file) {
  session.Refuse(failure.refusal, file + ":" + std::to_string(failure.line));
  if (session.json) return;
  session.err()
      << "Apply stopped there. Run it again to continue: messages may be repeated at will.\n";
}

// `rejects`: null, or where lines go that were not taken.
int ApplyFile(Session& session, const ApplySettings& settings, InputFile& file,
              std::ostream* rejects) {
  LineReader lines(file.stream());
  ApplyCounts counts;
  AlikeErrors alike(session);
  Cancellation cancellation([&] { file.Stop(); });
  Progress progress(session.err(), session.terminal().err_is_terminal && !session.json);
  ApplyListener listener;
  listener.progress = [&] {
    // Lines are read ahead of what is done.
    const auto known = static_cast<double>(std::max<int64_t>(counts.messages, 1));
    const double done = static_cast<double>(counts.done()) / known;
    progress.Show(counts.done(), "messages", file.Part(counts.bytes_read) * done);
  };
  listener.rejected = [&](const Message& message, const client::Refusal& refusal, bool stopped) {
    if (rejects != nullptr) *rejects << RejectedLine(message, refusal);
    if (stopped) return;  // Why, is said once.
    progress.Clear();
    alike.Report(refusal, file.name() + ":" + std::to_string(message.line));
  };
  listener.stop = [&cancellation] { return cancellation.asked(); };
  std::optional<ApplyFailure> failure = Apply(session, settings, lines, counts, listener);
  progress.Clear();
  alike.PrintOthers();
  const bool interrupted = failure.has_value() && cancellation.asked();
  if (interrupted) failure->refusal = client::RefusalOf(absl::CancelledError("interrupted"));
  if (failure.has_value()) ReportFailure(session, *failure, file.name());
  PrintSummary(session, counts, progress.seconds());
  if (interrupted) return cancellation.exit_status();
  return failure.has_value() || counts.rejected() > 0 ? kExitRefused : kExitOk;
}

int RunApply(Session& session, const ApplyOptions& options) {
  ApplySettings settings;
  const absl::Status filled = FillSettings(options, settings);
  if (!filled.ok()) return session.Usage(filled);
  InputFile file(options.file, session.terminal());
  if (!file.is_open()) return session.Usage("cannot read " + options.file);
  if (options.reject.empty()) return ApplyFile(session, settings, file, nullptr);
  std::ofstream rejects(options.reject, std::ios::binary | std::ios::trunc);
  if (!rejects) return session.Usage("cannot write " + options.reject);
  const int exit_status = ApplyFile(session, settings, file, &rejects);
  rejects.close();
  return rejects ? exit_status : session.Fail("cannot write " + options.reject);
}

constexpr char kApplyFooter[] =
    R"(Examples:
  strata apply messages.ndjson.zst --streams 4 --reject rejects.ndjson
  kcat -C -t enrollments -e -u | strata apply - --actor registrar
  jq -r .text rejects.ndjson | strata apply -

Each line is a message, in any order and as often as the queue delivers it:
  {"operation": "insert", "student_id": 1, "class": "CS 101", "sequence_number": 1000}
  {"operation": "delete", "student_id": "1", "class": "CS 101", "sequence_number": 1001}
The student 1 is the student "1". set, actor, reason and on_behalf_of are allowed too, and replace
the options of these names; any other member makes the line malformed. The file may be compressed
with zstd.

Lines that are malformed or refused are named on standard error (ten for each reason, then their
number; with --json all); the others are sent. Messages without a definite answer (the server did
not know it, or the connection broke) are sent again for --retry-for, over a new stream. That is
safe, and so is running the command again: a message that came before changes nothing. --timeout is
the longest wait for an answer on a stream.
Exit status 1 if any message was malformed, refused or below the floor (strata enroll --help).)";

void AddOptions(CLI::App& command, ApplyOptions& options) {
  command.add_option("FILE", options.file, "A file of messages, or - (standard input)")->required();
  command
      .add_option("--streams", options.streams,
                  "Parallel streams, each with its share of the students; 1 unless given")
      ->check(WholeNumber(1, 64))
      ->type_name("N");
  command
      .add_option("--in-flight", options.in_flight,
                  "Messages under way at a time on each stream; 256 unless given")
      ->check(WholeNumber(1, 10'000))
      ->type_name("N");
  command
      .add_option("--retry-for", options.retry_for,
                  "How long a message is tried again; 60s unless given")
      ->type_name("TIME");
  command
      .add_option("--reject", options.reject,
                  "Write the lines that were not taken to this file, each with its error")
      ->type_name("FILE");
  options.set.AddTo(command);
  options.change.AddTo(command);
}

}  // namespace

void AddApplyCommand(CLI::App& app, Session& session) {
  CLI::App& command =
      *app.add_subcommand("apply", "Apply a queue's enroll and unenroll messages from a file");
  auto options = std::make_shared<ApplyOptions>();
  AddOptions(command, *options);
  command.footer(kApplyFooter);
  command.callback([&session, options] {
    session.run = [&session, options] { return RunApply(session, *options); };
  });
}

}  // namespace strata::cli
