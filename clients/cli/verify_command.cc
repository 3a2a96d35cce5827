// strata verify: what is wrong with what is stored.
#include <memory>

#include "clients/cli/arguments.h"
#include "clients/cli/commands.h"
#include "clients/cli/message_json.h"
#include "clients/cli/options.h"
#include "clients/cli/progress.h"
#include "clients/client/extended_json.h"

namespace strata::cli {
namespace {

struct VerifyOptions {
  std::string collection;
  std::string id;
  bool repair = false;
};

// What has been found so far, by what can be done about it.
struct Counts {
  int64_t broken = 0;
  int64_t recoverable = 0;
  int64_t repaired = 0;
};

// "WRONG_FLAG" for FINDING_KIND_WRONG_FLAG; the number of a kind that this program does not know.
std::string FindingName(v1::FindingKind kind) {
  constexpr std::string_view kPrefix = "FINDING_KIND_";
  const std::string name = v1::FindingKind_Name(kind);
  return name.empty() ? std::to_string(kind) : name.substr(kPrefix.size());
}

std::string StateOf(const v1::Finding& finding) {
  if (finding.repaired()) return "repaired";
  return finding.recoverable() ? "recoverable" : "BROKEN";
}

void Count(const v1::Finding& finding, Counts& counts) {
  int64_t& count = finding.repaired()      ? counts.repaired
                   : finding.recoverable() ? counts.recoverable
                                           : counts.broken;
  ++count;
}

std::string Number(int64_t number, std::string_view one) {
  std::string text = WithCommas(number);
  text.append(" ").append(one);
  if (number != 1) text += 's';
  return text;
}

// "1,024 documents, 12,206 versions, 12,206 ledger entries: whole".
std::string ClosingLine(const v1::VerifyResponse& last, const Counts& counts) {
  std::string line =
      Number(last.documents(), "document") + ", " + Number(last.versions(), "version");
  if (last.ledger_entries() > 0) {
    line += ", " + WithCommas(last.ledger_entries()) +
            (last.ledger_entries() == 1 ? " ledger entry" : " ledger entries");
  }
  line += ": ";
  std::string found;
  const auto add = [&found](int64_t count, std::string_view what) {
    if (count == 0) return;
    if (!found.empty()) found += ", ";
    found += WithCommas(count);
    found.append(" ").append(what);
  };
  add(counts.broken, "BROKEN");
  add(counts.recoverable, "recoverable (the next update or --repair mends them)");
  add(counts.repaired, "repaired");
  return line + (found.empty() ? "whole" : found);
}

std::string SummaryJson(const v1::VerifyResponse& last, const Counts& counts) {
  std::string json = "{\"summary\":{";
  const auto add = [&json](std::string_view name, int64_t number) {
    client::AppendJsonString(name, json);
    json += ":" + std::to_string(number) + ",";
  };
  add("documents", last.documents());
  add("versions", last.versions());
  add("ledger_entries", last.ledger_entries());
  add("broken", counts.broken);
  add("recoverable", counts.recoverable);
  add("repaired", counts.repaired);
  return json + "\"complete\":" + (last.complete() ? "true" : "false") + "}}";
}

int RunVerify(Session& session, const VerifyOptions& options) {
  v1::VerifyRequest request;
  request.set_collection(options.collection);
  request.set_id(options.id);
  request.set_repair(options.repair);
  grpc::ClientContext context;
  session.SetLongDeadline(context);
  const auto stream = session.connection().collections->Verify(&context, request);

  Progress progress(session.err(), session.terminal().err_is_terminal && !session.json);
  Table table({"ID", "VERSION", "FINDING", "PROBLEM", "STATE"}, session.palette());
  table.AlignRight(1);
  Counts counts;
  v1::VerifyResponse last;
  v1::VerifyResponse response;
  while (stream->Read(&response)) {
    if (response.findings_size() > 0) progress.Clear();
    for (const v1::Finding& finding : response.findings()) {
      Count(finding, counts);
      if (session.json) {
        session.out() << MessageJson(finding) << "\n";
        continue;
      }
      table.AddRow({finding.id(), finding.version() == 0 ? "-" : std::to_string(finding.version()),
                    FindingName(finding.kind()), finding.problem(), StateOf(finding)});
    }
    table.Flush(session.out());
    session.out().flush();
    progress.Show(response.versions(), "versions", 0);
    response.clear_findings();
    last.Swap(&response);
  }
  progress.Clear();
  const grpc::Status status = stream->Finish();
  if (last.complete()) {
    if (session.json) {
      session.out() << SummaryJson(last, counts) << "\n";
    } else {
      session.err() << ClosingLine(last, counts) << "\n";
    }
  }
  return status.ok() ? kExitOk : session.Refuse(status);
}

}  // namespace

void AddVerifyCommand(CLI::App& app, Session& session) {
  CLI::App& command =
      *app.add_subcommand("verify", "Prove that a collection, or one document, is whole");
  auto options = std::make_shared<VerifyOptions>();
  command.add_option("COLLECTION", options->collection, "The collection")->required();
  command.add_option("ID", options->id, "One document; all, and the ledger, unless given");
  command.add_flag("--repair", options->repair,
                   "Finish what crashed writers left undone; nothing else is ever changed");
  command.footer(
      "Goes on beside writers, as long as it takes unless --timeout is given. Exit status 1 if\n"
      "anything is BROKEN; what is only recoverable does not count.\n"
      "Example:\n  strata verify books --repair");
  command.callback([&session, options] {
    session.run = [&session, options] { return RunVerify(session, *options); };
  });
}

}  // namespace strata::cli
