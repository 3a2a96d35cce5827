// strata history, diff, audit.
#include <memory>

#include "absl/strings/escaping.h"
#include "clients/cli/arguments.h"
#include "clients/cli/commands.h"
#include "clients/cli/message_json.h"
#include "clients/cli/options.h"
#include "clients/cli/version_cells.h"
#include "clients/cpp/extended_json.h"
#include "clients/cpp/printable.h"

namespace strata::cli {
namespace {

using v1::CollectionService;
using v1::DocumentService;

constexpr int32_t kVersionsPageSize = 200;

struct HistoryOptions {
  Target target;
  bool changes = false;
  bool content = false;
  bool oldest_first = false;
  int64_t from_version = 0;
  int64_t to_version = 0;
  std::string from_time;
  std::string to_time;
  FilterOption filter;
  LimitOption limit;
};

absl::Status FillHistory(const HistoryOptions& options, v1::HistoryRequest& request) {
  request.set_collection(options.target.collection);
  request.set_id(options.target.id);
  request.set_oldest_first(options.oldest_first);
  request.set_include_changes(options.changes);
  request.set_include_content(options.content);
  request.set_encoding(v1::ENCODING_BSON);
  if (options.from_version > 0) request.set_from_version(options.from_version);
  if (options.to_version > 0) request.set_to_version(options.to_version);
  if (options.filter.given()) {
    const absl::Status status = options.filter.Fill(*request.mutable_filter());
    if (!status.ok()) return status;
  }
  if (!options.from_time.empty()) {
    const absl::Status status = FillTime("--from", options.from_time, request.mutable_from_time());
    if (!status.ok()) return status;
  }
  if (options.to_time.empty()) return absl::OkStatus();
  return FillTime("--to", options.to_time, request.mutable_to_time());
}

int RunHistory(Session& session, const HistoryOptions& options) {
  v1::HistoryRequest request;
  const absl::Status filled = FillHistory(options, request);
  if (!filled.ok()) return session.Usage(filled);
  Table table({"VERSION", "KIND", "TIME", "ACTOR", "REASON"}, session.palette());
  table.AlignRight(0);
  int64_t printed = 0;
  while (true) {
    request.set_page_size(options.limit.NextPageSize(printed, kVersionsPageSize));
    v1::HistoryResponse response;
    const grpc::Status status = session.Call(&DocumentService::Stub::History, request, &response);
    if (!status.ok()) return session.Refuse(status);
    for (const v1::Version& version : response.versions()) {
      ++printed;
      if (session.json) {
        session.out() << MessageJson(version) << "\n";
        continue;
      }
      table.AddRow(VersionCells(version));
      table.AddNote(TransactionNote(version));
      table.AddNote(ChangeNotes(version, session.palette()));
      table.AddNote(ContentLines(version));
    }
    table.Flush(session.out());
    request.set_page_token(response.next_page_token());
    if (request.page_token().empty() || options.limit.NextPageSize(printed, 1) == 0) break;
    if (!session.out()) break;
  }
  return kExitOk;
}

void AddHistory(CLI::App& app, Session& session) {
  CLI::App& command =
      *app.add_subcommand("history", "List the versions of a document, newest first");
  auto options = std::make_shared<HistoryOptions>();
  options->target.AddTo(command);
  command.add_flag("--changes", options->changes, "With the changes of each version");
  command.add_flag("--content", options->content, "With the content of each version");
  command.add_flag("--oldest-first", options->oldest_first, "Oldest version first");
  CLI::Option* from_version =
      command.add_option("--from-version", options->from_version, "This version and newer ones");
  from_version->check(WholeNumber(1))->type_name("N");
  CLI::Option* to_version =
      command.add_option("--to-version", options->to_version, "This version and older ones");
  to_version->check(WholeNumber(1))->type_name("N");
  command.add_option("--from", options->from_time, "Versions of this time and later")
      ->excludes(from_version)
      ->type_name("TIME");
  command.add_option("--to", options->to_time, "Versions of this time and earlier")
      ->excludes(to_version)
      ->type_name("TIME");
  options->filter.AddTo(command, "--where,--filter", "Only versions whose content meets");
  options->limit.AddTo(command);
  command.footer(std::string("Examples:\n"
                             "  strata history books moby --changes\n"
                             "  strata history books moby --from 2026-01-01 --limit 10\n"
                             "  strata history books moby --where stock=0\n") +
                 kConditionsHelp + "\n" + kTimesHelp +
                 "\nChanges: + added, - removed, ~ changed; paths are JSON Pointers.");
  command.callback([&session, options] {
    session.run = [&session, options] { return RunHistory(session, *options); };
  });
}

struct DiffOptions {
  Target target;
  int64_t from_version = 0;
  int64_t to_version = 0;
};

int RunDiff(Session& session, const DiffOptions& options) {
  v1::DiffRequest request;
  request.set_collection(options.target.collection);
  request.set_id(options.target.id);
  request.set_from_version(options.from_version);
  request.set_to_version(options.to_version);
  v1::DiffResponse all;  // with its changes only where they are printed at the end
  int64_t changes = 0;
  do {
    v1::DiffResponse page;
    const grpc::Status status = session.Call(&DocumentService::Stub::Diff, request, &page);
    if (!status.ok()) return session.Refuse(status);
    changes += page.changes_size();
    request.set_page_token(page.next_page_token());
    if (!session.json) {
      for (const std::string& line : ChangeLines(page.changes(), session.palette())) {
        session.out() << line << "\n";
      }
      page.clear_changes();
    }
    all.MergeFrom(page);
  } while (!request.page_token().empty() && session.out());
  if (session.json) {
    all.clear_next_page_token();
    session.out() << MessageJson(all) << "\n";
  } else if (changes == 0) {
    session.err() << "versions " << all.from_version() << " and " << all.to_version()
                  << " are the same\n";
  }
  return kExitOk;
}

void AddDiff(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("diff", "Compare two versions of a document");
  auto options = std::make_shared<DiffOptions>();
  options->target.AddTo(command);
  command.add_option("FROM", options->from_version, "A version")->required()->check(WholeNumber(1));
  command.add_option("TO", options->to_version, "Another one; the current one unless given")
      ->check(WholeNumber(1));
  command.footer(
      "Example:\n"
      "  strata diff books moby 1 2\n"
      "    + /price 12.5\n"
      "    - /draft true\n"
      "    ~ /stock 3 -> 2\n"
      "A deletion counts as an empty document. The order of members does not count.");
  command.callback([&session, options] {
    session.run = [&session, options] { return RunDiff(session, *options); };
  });
}

struct AuditOptions {
  std::string collection;
  std::string id;
  std::string actor;
  std::vector<std::string> kinds;
  std::string start_time;
  std::string end_time;
  std::string request_id;
  std::string transaction_id;
  bool changes = false;
  bool newest_first = false;
  bool head = false;
  LimitOption limit;
};

absl::Status FillAudit(const AuditOptions& options, v1::AuditRequest& request) {
  request.set_collection(options.collection);
  request.set_id(options.id);
  request.set_actor(options.actor);
  request.set_request_id(options.request_id);
  request.set_transaction_id(options.transaction_id);
  request.set_include_changes(options.changes);
  request.set_newest_first(options.newest_first);
  for (const std::string& name : options.kinds) {
    const auto kind = ParseKind(name);
    if (!kind.ok()) return kind.status();
    request.add_kinds(*kind);
  }
  if (!options.start_time.empty()) {
    const absl::Status status =
        FillTime("--from", options.start_time, request.mutable_start_time());
    if (!status.ok()) return status;
  }
  if (options.end_time.empty()) return absl::OkStatus();
  return FillTime("--before", options.end_time, request.mutable_end_time());
}

void AddAuditRow(const v1::AuditEntry& entry, Table& table, const Palette& palette) {
  const std::vector<std::string> version = VersionCells(entry.version());
  table.AddRow({PlaceCell(entry.commit_position(), entry.index()), version[2], entry.collection(),
                entry.id(), version[0], version[1], version[3], version[4]});
  table.AddNote(TransactionNote(entry.version()));
  table.AddNote(ChangeNotes(entry.version(), palette));
}

// What an auditor writes down: "4711:ab34…".
int RunHead(Session& session) {
  v1::GetLedgerHeadResponse response;
  const grpc::Status status = session.Call(&CollectionService::Stub::GetLedgerHead, {}, &response);
  if (!status.ok()) return session.Refuse(status);
  if (session.json) {
    session.out() << MessageJson(response.head()) << "\n";
  } else {
    session.out() << response.head().position() << ":"
                  << absl::BytesToHexString(response.head().hash()) << "\n";
  }
  return kExitOk;
}

int RunAudit(Session& session, const AuditOptions& options) {
  if (options.head) return RunHead(session);
  v1::AuditRequest request;
  const absl::Status filled = FillAudit(options, request);
  if (!filled.ok()) return session.Usage(filled);
  Table table({"COMMIT", "TIME", "COLLECTION", "ID", "VERSION", "KIND", "ACTOR", "REASON"},
              session.palette());
  table.AlignRight(0);
  table.AlignRight(4);
  int64_t printed = 0;
  while (true) {
    request.set_page_size(options.limit.NextPageSize(printed, kVersionsPageSize));
    v1::AuditResponse response;
    const grpc::Status status = session.Call(&DocumentService::Stub::Audit, request, &response);
    if (!status.ok()) return session.Refuse(status);
    for (const v1::AuditEntry& entry : response.entries()) {
      ++printed;
      if (session.json) {
        session.out() << MessageJson(entry) << "\n";
      } else {
        AddAuditRow(entry, table, session.palette());
      }
    }
    table.Flush(session.out());
    request.set_page_token(response.next_page_token());
    if (request.page_token().empty() || options.limit.NextPageSize(printed, 1) == 0) break;
    if (!session.out()) break;
  }
  return kExitOk;
}

void AddAudit(CLI::App& app, Session& session) {
  CLI::App& command =
      *app.add_subcommand("audit", "List changes with actor, time and reason, in commit order");
  auto options = std::make_shared<AuditOptions>();
  command.add_option("COLLECTION", options->collection, "Only this collection");
  command.add_option("ID", options->id, "Only this document");
  command.add_option("--actor", options->actor, "Only changes of this actor");
  AddRepeated(command, "--kind", options->kinds,
              "Only created, updated, deleted or restored; may be repeated")
      ->type_name("KIND");
  command.add_option("--from", options->start_time, "Only changes of this time and later")
      ->type_name("TIME");
  command.add_option("--before", options->end_time, "Only changes before this time")
      ->type_name("TIME");
  command.add_option("--request-id", options->request_id, "Only the change that this request made");
  command
      .add_option("--transaction", options->transaction_id, "Only the changes of this transaction")
      ->type_name("ID");
  command.add_flag("--changes", options->changes, "With the changes of each version");
  command.add_flag("--newest-first", options->newest_first, "The newest change first");
  command.add_flag("--head", options->head,
                   "Instead of entries, the end of the ledger, as POSITION:HASH. Keep it: "
                   "strata verify --expect-head compares the ledger with it");
  options->limit.AddTo(command);
  command.footer(
      std::string("Examples:\n"
                  "  strata audit --from 2026-01-31 --before 2026-02-01\n"
                  "  strata audit books --actor ann --kind deleted\n"
                  "  strata audit books moby --changes\n"
                  "  strata audit --newest-first --limit 20\n") +
      kTimesHelp +
      "\nCOMMIT is the position in the order of all commits; 7.2: the third version of commit "
      "7.");
  command.callback([&session, options] {
    session.run = [&session, options] { return RunAudit(session, *options); };
  });
}

}  // namespace

void AddHistoryCommands(CLI::App& app, Session& session) {
  AddHistory(app, session);
  AddDiff(app, session);
  AddAudit(app, session);
}

}  // namespace strata::cli
