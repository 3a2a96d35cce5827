// strata import.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "clients/cli/arguments.h"
#include "clients/cli/cancellation.h"
#include "clients/cli/commands.h"
#include "clients/cli/importer.h"
#include "clients/cli/input_file.h"
#include "clients/cli/options.h"
#include "clients/cli/progress.h"
#include "clients/cpp/time_text.h"

namespace strata::cli {
namespace {

struct ImportOptions {
  std::string file;
  std::string collection;
  StrategyChoice choice;
  int in_flight = 64;
  std::string retry_for = "60s";
  std::string on_existing = "fail";
};

absl::Status FillSettings(const ImportOptions& options, ImportSettings& settings) {
  settings.collection = options.collection;
  settings.in_flight = options.in_flight;
  settings.on_existing = options.on_existing == "skip"     ? OnExisting::kSkip
                         : options.on_existing == "append" ? OnExisting::kAppend
                                                           : OnExisting::kFail;
  if (options.choice.strategy.empty()) {
    const std::string given = OptionsCell(options.choice.options);
    if (!given.empty()) return absl::InvalidArgumentError("--" + given + " needs --strategy");
  } else {
    const absl::Status filled = options.choice.Fill(settings.create.emplace());
    if (!filled.ok()) return filled;
  }
  const auto retry_ms = client::ParseDurationMs(options.retry_for);
  if (!retry_ms.ok()) return retry_ms.status();
  settings.retry_ms = *retry_ms;
  return absl::OkStatus();
}

void PrintSummary(Session& session, const ImportCounts& counts, double seconds) {
  const auto rate =
      static_cast<int64_t>(static_cast<double>(counts.done()) / std::max(seconds, 1e-3));
  char duration[32];
  std::snprintf(duration, sizeof duration, "%.2f", seconds);
  if (session.json) {
    session.out() << "{\"lines\":" << counts.lines << ",\"written\":" << counts.written
                  << ",\"replayed\":" << counts.replayed << ",\"unchanged\":" << counts.unchanged
                  << ",\"skipped\":" << counts.skipped << ",\"retries\":" << counts.retries
                  << ",\"seconds\":" << duration << ",\"versions_per_second\":" << rate << "}\n";
    return;
  }
  std::ostream& err = session.err();
  err << WithCommas(counts.lines) << " lines: " << WithCommas(counts.written)
      << " versions written, " << WithCommas(counts.replayed) << " replayed, "
      << WithCommas(counts.unchanged) << " unchanged";
  if (counts.skipped > 0) err << ", " << WithCommas(counts.skipped) << " skipped";
  if (counts.retries > 0) err << ", " << WithCommas(counts.retries) << " calls repeated";
  err << ", in " << duration << " s (" << WithCommas(rate) << " versions/s)\n";
}

void ReportFailure(Session& session, const ImportFailure& failure, const std::string& file) {
  session.Refuse(failure.refusal, file + ":" + std::to_string(failure.line));
  if (failure.exists && !session.json) {
    session.err() << "No further line was written. --on-existing skip leaves such documents as "
                     "they are, --on-existing append writes the file's versions on top.\n";
  }
}

void SayHowToGoOn(Session& session) {
  if (session.json) return;
  session.err() << "The import stopped there. Run it again to continue: written versions are not "
                   "written twice.\n";
}

int RunImport(Session& session, const ImportOptions& options) {
  ImportSettings settings;
  const absl::Status filled = FillSettings(options, settings);
  if (!filled.ok()) return session.Usage(filled);
  InputFile file(options.file, session.terminal());
  if (!file.is_open()) return session.Usage("cannot read " + options.file);
  LineReader lines(file.stream());
  ImportCounts counts;
  Cancellation cancellation([&] { file.Stop(); });
  Progress progress(session.err(), session.terminal().err_is_terminal && !session.json);
  const auto show_progress = [&] {
    // Lines are read ahead of what is done.
    const auto known = static_cast<double>(std::max<int64_t>(counts.lines, 1));
    progress.Show(counts.done(), "versions",
                  file.Part(lines.bytes_read()) * static_cast<double>(counts.done()) / known);
  };
  const std::optional<ImportFailure> failure =
      Import(session, settings, lines, counts, show_progress,
             {.readable = [&file] { return file.readable(); },
              .stopped = [&cancellation] { return cancellation.asked(); }});
  progress.Clear();
  const bool interrupted = failure.has_value() && cancellation.asked();
  if (failure.has_value() && !interrupted) ReportFailure(session, *failure, file.name());
  const bool goes_on = interrupted || (failure.has_value() && !failure->exists);
  if (goes_on && counts.done() > 0) SayHowToGoOn(session);
  PrintSummary(session, counts, progress.seconds());
  return interrupted ? cancellation.exit_status() : failure.has_value() ? kExitRefused : kExitOk;
}

constexpr char kImportFooter[] =
    R"(Examples:
  strata import compat.ndjson.zst --strategy deltas
  zstd -dc --long=27 compat.ndjson.zst | strata import - --collection trial

Each line is a version of a document, oldest first; export writes the same:
  {"collection": "books", "id": "moby", "time": "2026-01-31T12:00:00Z", "actor": "ann",
   "reason": "catalogue", "content": {"title": "Moby Dick"}}
or "deleted": true instead of content; on_behalf_of and labels are allowed too. The evidence of
export --full is ignored. The file may be compressed with zstd (--long=27 as well). The line's time
becomes the label `time`.

Calls of one document are made one after the other, other documents side by side. Each call's
request id is made of the line's content and its number among the lines of its document. So a second
import of the same versions writes nothing, from a file of any name and with the lines at any place,
and an import that stopped can be continued. A document with other versions than the file's is
refused before its first line is written, unless --on-existing says otherwise. Calls that the server
could not answer are repeated for --retry-for; any other refusal stops the import and names the
line. Ctrl-C stops it too; a second one does not await the calls under way.)";

}  // namespace

void AddImportCommand(CLI::App& app, Session& session) {
  CLI::App& command =
      *app.add_subcommand("import", "Write documents with their histories from a file");
  auto options = std::make_shared<ImportOptions>();
  command.add_option("FILE", options->file, "A file of lines, or - (standard input)")->required();
  command
      .add_option("--collection", options->collection,
                  "Import into this one, in place of the collections in the lines")
      ->type_name("NAME");
  options->choice.AddTo(command,
                        "Make collections with this strategy; one that exists must have it");
  command
      .add_option(
          "--on-existing", options->on_existing,
          "Documents that are there already, and not from this file: fail stops the import, "
          "skip leaves them as they are, append writes on top; fail unless given")
      ->check(CLI::IsMember({"fail", "skip", "append"}))
      ->type_name("WHAT");
  command.add_option("--in-flight", options->in_flight, "Calls at a time; 64 unless given")
      ->check(WholeNumber(1, 10'000))
      ->type_name("N");
  command
      .add_option("--retry-for", options->retry_for,
                  "How long a line is tried again; 60s unless given")
      ->type_name("TIME");
  command.footer(kImportFooter);
  command.callback([&session, options] {
    session.run = [&session, options] { return RunImport(session, *options); };
  });
}

}  // namespace strata::cli
