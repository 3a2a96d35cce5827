// strata verify: what is wrong with what is stored.
#include <memory>
#include <optional>

#include "absl/strings/numbers.h"
#include "clients/cli/arguments.h"
#include "clients/cli/cancellation.h"
#include "clients/cli/commands.h"
#include "clients/cli/message_json.h"
#include "clients/cli/options.h"
#include "clients/cli/progress.h"
#include "clients/cpp/extended_json.h"
#include "clients/cpp/repetition.h"
#include "clients/cpp/time_text.h"
#include "schemas/base/hex.h"

namespace strata::cli {
namespace {

struct VerifyOptions {
  std::string collection;
  std::string id;
  bool repair = false;
  std::string expect_head;
  std::string resume_token;
  std::string retry_for = "60s";
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
  add(counts.recoverable, "recoverable (the next update or --repair repairs them)");
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

// A verification over as many streams as it takes: each goes on where the one before broke off.
class Verifying {
 public:
  Verifying(Session& session, const VerifyOptions& options,
            const std::optional<v1::LedgerHead>& head, int64_t retry_ms)
      : session_(session),
        repetition_(retry_ms),
        progress_(session.err(), session.terminal().err_is_terminal && !session.json),
        table_({"ID", "VERSION", "FINDING", "PROBLEM", "STATE"}, session.palette()) {
    table_.AlignRight(1);
    request_.set_collection(options.collection);
    request_.set_id(options.id);
    request_.set_repair(options.repair);
    request_.set_resume_token(options.resume_token);
    if (head) *request_.mutable_expect_head() = *head;
  }

  int Run() {
    grpc::Status status = OneStream();
    while (!cancellation_.asked() && status.error_code() == grpc::StatusCode::UNAVAILABLE &&
           heard_ && AwaitNextTry(status)) {
      status = OneStream();
    }
    progress_.Clear();
    if (last_.complete()) Close();
    if (status.ok()) return kExitOk;
    if (cancellation_.asked()) {
      session_.err() << "interrupted after " << Number(last_.versions(), "version") << "\n";
    }
    const int exit = cancellation_.asked() ? cancellation_.exit_status() : session_.Refuse(status);
    const bool decided = last_.complete() && status.error_code() == grpc::StatusCode::DATA_LOSS;
    if (!decided && !request_.resume_token().empty()) {
      session_.err() << "go on with: --resume " << request_.resume_token() << "\n";
    }
    return exit;
  }

 private:
  // Until the stream ends, however it does.
  grpc::Status OneStream() {
    // A stream that broke after its last message is repeated from the message before, for its
    // status alone.
    const bool told = last_.complete();
    grpc::ClientContext context;
    session_.SetLongDeadline(context);
    const Cancellation::Call call(cancellation_, context);
    const auto stream = session_.connection().collections->Verify(&context, request_);
    v1::VerifyResponse response;
    while (stream->Read(&response)) {
      heard_ = true;
      attempts_ = 0;
      if (!response.complete()) request_.set_resume_token(response.resume_token());
      if (!told) Show(response);
      response.clear_findings();
      last_.Swap(&response);
    }
    return stream->Finish();
  }

  // False: it has been tried for long enough without hearing anything.
  bool AwaitNextTry(const grpc::Status& status) {
    if (attempts_++ == 0) trouble_since_ = client::Repetition::Clock::now();
    const auto next = repetition_.Next(client::RefusalOf(status), attempts_, trouble_since_);
    return next.has_value() && cancellation_.SleepUntil(*next);
  }

  void Show(const v1::VerifyResponse& response) {
    if (response.findings_size() > 0) progress_.Clear();
    for (const v1::Finding& finding : response.findings()) {
      Count(finding, counts_);
      if (session_.json) {
        session_.out() << MessageJson(finding) << "\n";
        continue;
      }
      table_.AddRow({finding.id(), finding.version() == 0 ? "-" : std::to_string(finding.version()),
                     FindingName(finding.kind()), finding.problem(), StateOf(finding)});
    }
    table_.Flush(session_.out());
    session_.out().flush();
    progress_.Show(response.versions(), "versions", 0);
  }

  void Close() {
    if (session_.json) {
      session_.out() << SummaryJson(last_, counts_) << "\n";
    } else {
      session_.err() << ClosingLine(last_, counts_) << "\n";
    }
  }

  Session& session_;
  client::Repetition repetition_;
  Progress progress_;
  Table table_;
  v1::VerifyRequest request_;
  Counts counts_;
  v1::VerifyResponse last_;
  bool heard_ = false;  // the server is there: it answered something
  int attempts_ = 0;    // since the last message
  client::Repetition::Clock::time_point trouble_since_;
  Cancellation cancellation_;
};

// "4711:ab34…", as strata audit --head prints it.
std::optional<v1::LedgerHead> ParseHead(std::string_view text) {
  constexpr size_t kHashBytes = 32;
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string position(text.substr(0, colon));
  std::optional<std::string> hash = BytesOfHex(text.substr(colon + 1));
  if (!hash || hash->size() != kHashBytes) return std::nullopt;
  int64_t number = 0;
  if (!absl::SimpleAtoi(position, &number) || number < 1) return std::nullopt;
  v1::LedgerHead head;
  head.set_position(number);
  head.set_hash(*std::move(hash));
  return head;
}

int RunVerify(Session& session, const VerifyOptions& options) {
  const absl::StatusOr<int64_t> retry_ms = client::ParseDurationMs(options.retry_for);
  if (!retry_ms.ok()) return session.Usage(retry_ms.status());
  std::optional<v1::LedgerHead> head;
  if (!options.expect_head.empty()) {
    head = ParseHead(options.expect_head);
    if (!head) {
      return session.Usage(
          "--expect-head takes POSITION:HASH, a number and 64 hexadecimal digits, as strata audit "
          "--head prints it");
    }
  } else if (options.collection.empty()) {
    return session.Usage("name a collection, or give --expect-head to verify the ledger alone");
  }
  return Verifying(session, options, head, *retry_ms).Run();
}

}  // namespace

void AddVerifyCommand(CLI::App& app, Session& session) {
  CLI::App& command =
      *app.add_subcommand("verify", "Prove that a collection, or one document, is whole");
  auto options = std::make_shared<VerifyOptions>();
  command.add_option("COLLECTION", options->collection,
                     "The collection; with --expect-head it may be left out: the ledger alone");
  command.add_option("ID", options->id, "One document; all, and the ledger, unless given");
  command.add_flag("--repair", options->repair,
                   "Finish writes that a crash interrupted; nothing else is ever changed");
  command
      .add_option("--expect-head", options->expect_head,
                  "Prove that no entry of the ledger up to there was removed, added or changed; "
                  "strata audit --head printed it")
      ->type_name("POSITION:HASH");
  command
      .add_option("--resume", options->resume_token,
                  "Continue where another run broke off; it printed this token")
      ->type_name("TOKEN");
  command
      .add_option("--retry-for", options->retry_for,
                  "How long to try to resume a broken stream; 60s unless given")
      ->type_name("TIME");
  command.footer(
      "Writers may continue meanwhile. Runs without limit of time unless --timeout is given,\n"
      "over a new stream if one breaks (UNAVAILABLE). Exit status 1 if anything is BROKEN;\n"
      "recoverable findings do not count. Ctrl-C prints where to continue. With --resume,\n"
      "earlier findings count, and are not listed again; all other arguments must be as in that\n"
      "run.\n"
      "Example:\n  strata verify books --repair");
  command.callback([&session, options] {
    session.run = [&session, options] { return RunVerify(session, *options); };
  });
}

}  // namespace strata::cli
