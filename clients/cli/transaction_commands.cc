// strata commit, transactions.
#include <memory>
#include <sstream>

#include "clients/cli/arguments.h"
#include "clients/cli/commands.h"
#include "clients/cli/input_file.h"
#include "clients/cli/line_stream.h"
#include "clients/cli/message_json.h"
#include "clients/cli/options.h"
#include "clients/cli/queued_message.h"
#include "clients/cpp/commit_request.h"
#include "clients/cpp/printable.h"
#include "schemas/json/message_json.h"

namespace strata::cli {
namespace {

using v1::TransactionService;

// "updated accounts a, version 3", a line a write.
std::string ResultLine(const v1::Write& write, const v1::CommitResult& result, bool validate_only) {
  std::string line;
  if (result.stale()) {
    line = "stale";
  } else if (validate_only) {
    line = "valid, not written:";
  } else if (!result.changed()) {
    line = "unchanged";
  } else if (write.has_create()) {
    line = "created";
  } else if (write.has_delete_()) {
    line = "deleted";
  } else if (write.has_restore()) {
    line = "restored";
  } else {
    line = "updated";
  }
  line += " " + result.document().collection() + " " + result.document().id() + ", version " +
          std::to_string(result.document().version());
  if (result.enrollment() != v1::ENROLLMENT_RESULT_UNSPECIFIED) {
    line += " (" + ResultName(result.enrollment()) + ")";
  }
  return line;
}

int PrintCommitted(Session& session, const v1::CommitRequest& request,
                   const v1::CommitResponse& response) {
  if (session.json) {
    session.out() << MessageJson(response) << "\n";
    return kExitOk;
  }
  for (int i = 0; i < response.results_size() && i < request.writes_size(); ++i) {
    const std::string line =
        ResultLine(request.writes(i), response.results(i), request.validate_only());
    session.out() << client::Printable(line) << "\n";
  }
  if (request.validate_only()) return kExitOk;
  if (request.acknowledge_size() > 0) {
    session.out() << "acknowledged " << request.acknowledge_size()
                  << (request.acknowledge_size() == 1 ? " message\n" : " messages\n");
  }
  for (int i = 0; i < response.message_ids_size() && i < request.pushes_size(); ++i) {
    session.out() << client::Printable("pushed " + response.message_ids(i) + " to " +
                                       request.pushes(i).queue())
                  << "\n";
  }
  std::string line = "transaction " + response.transaction_id();
  if (response.commit_position() > 0) {
    line += ", commit " + std::to_string(response.commit_position());
  }
  if (response.replayed()) line += " (by an earlier call with this request id)";
  session.out() << client::Printable(line) << "\n";
  return kExitOk;
}

struct CommitOptions {
  std::string file;
  std::vector<std::string> acknowledge;
  std::vector<std::string> pushes;
  LeaseOption lease;
};

absl::StatusOr<v1::CommitRequest> ReadCommitRequest(Session& session, const std::string& file) {
  InputFile input(file, session.terminal());
  if (!input.is_open()) return absl::InvalidArgumentError("cannot read " + file);
  std::ostringstream read;
  read << input.stream().rdbuf();
  const std::string text(WithoutByteOrderMark(read.str()));
  const auto checked = json::CheckMessageJson(text, *v1::CommitRequest::descriptor());
  if (!checked.ok()) {
    return absl::InvalidArgumentError(input.name() + ": this is not a CommitRequest as JSON: " +
                                      std::string(checked.status().message()));
  }
  absl::StatusOr<v1::CommitRequest> request = client::CommitRequestFromJson(text);
  if (request.ok()) return request;
  return absl::InvalidArgumentError(input.name() + ": " + std::string(request.status().message()));
}

int RunCommit(Session& session, const CommitOptions& options) {
  if (options.file.empty() && options.acknowledge.empty() && options.pushes.empty()) {
    return session.Usage("there is nothing to commit: name a FILE, --acknowledge or --push");
  }
  absl::StatusOr<v1::CommitRequest> request;
  request = options.file.empty() ? v1::CommitRequest() : ReadCommitRequest(session, options.file);
  if (!request.ok()) return session.Usage(request.status());
  for (const std::string& token : options.acknowledge) request->add_acknowledge(token);
  for (const std::string& text : options.pushes) {
    absl::StatusOr<v1::QueuePush> push = QueuePushArgument(text);
    if (!push.ok()) return session.Usage(push.status());
    *request->add_pushes() = *std::move(push);
  }
  const absl::Status leased = options.lease.FillRequest(*request);
  if (!leased.ok()) return session.Usage(leased);
  if (!session.json) request->set_omit_content(true);  // what is printed has none
  v1::CommitResponse response;
  const grpc::Status status = session.Call(&TransactionService::Stub::Commit, *request, &response);
  if (!status.ok()) return session.Refuse(status);
  return PrintCommitted(session, *request, response);
}

constexpr char kCommitFooter[] =
    R"(The request is a strata.v1.CommitRequest in protobuf's JSON form:
  strata commit - <<'END'
  {"request_id": "transfer-17", "writes": [
    {"update": {"collection": "accounts", "id": "a",
                "precondition": {"filter": {"balance": {"$gte": 100}}},
                "patch": {"operations": [{"path": "/balance", "increment": -100}]}}},
    {"update": {"collection": "accounts", "id": "b",
                "patch": {"operations": [{"path": "/balance", "increment": 100}]}}}]}
  END
All of its writes take effect, or none; so do what is acknowledged ("acknowledge": [TOKEN]) and what
is pushed ("pushes": [{"queue": "mails", "message": {"payload": {"json": {...}}}}]):
  strata commit transfer.json --acknowledge "$STRATA_TOKEN" --push 'mails={"to": "ann"}'
With a request_id the command may be repeated safely.
Contents ({"create": {..., "content": {"json": {...}}}}) are read as everywhere: members keep their
order, 1 and 1.0 are different numbers.)";

void AddCommit(CLI::App& app, Session& session) {
  CLI::App& command =
      *app.add_subcommand("commit", "Change several documents together: a transaction");
  auto options = std::make_shared<CommitOptions>();
  command.add_option("FILE", options->file,
                     "The request as JSON; -: standard input; may be left out where --acknowledge "
                     "or --push is given");
  AddRepeated(
      command, "--acknowledge", options->acknowledge,
      "Also acknowledge the message with this token (strata reserve, work); may be repeated")
      ->type_name("TOKEN");
  AddRepeated(command, "--push", options->pushes,
              "Also push a message; the JSON also as @FILE; may be repeated")
      ->type_name("QUEUE=JSON");
  options->lease.AddTo(command);
  command.footer(kCommitFooter);
  command.callback([&session, options] {
    session.run = [&session, options] { return RunCommit(session, *options); };
  });
}

std::string NumberCell(int64_t number) { return number == 0 ? "-" : std::to_string(number); }

std::vector<std::string> TransactionCells(const v1::Transaction& transaction) {
  return {transaction.id(),
          TransactionStatusName(transaction.status()),
          TransactionModeName(transaction.mode()),
          std::to_string(transaction.participants_size()),
          TimeCell(transaction.has_last_modified(), transaction.last_modified()),
          transaction.change().reason()};
}

Table TransactionTable(const Session& session) {
  Table table({"ID", "STATUS", "MODE", "DOCUMENTS", "MODIFIED", "REASON"}, session.palette());
  table.AlignRight(3);
  return table;
}

int PrintTransaction(Session& session, const v1::Transaction& transaction) {
  if (session.json) {
    session.out() << MessageJson(transaction) << "\n";
    return kExitOk;
  }
  Table table = TransactionTable(session);
  table.AddRow(TransactionCells(transaction));
  if (!transaction.reason().empty()) {
    table.AddNote({client::Printable("cancelled: " + transaction.reason())});
  }
  table.Flush(session.out());
  if (transaction.participants().empty()) return kExitOk;
  session.out() << "\n";
  Table documents({"COLLECTION", "ID", "BASE", "VERSION"}, session.palette());
  documents.AlignRight(2);
  documents.AlignRight(3);
  for (const v1::Participant& participant : transaction.participants()) {
    documents.AddRow({participant.collection(), participant.id(),
                      NumberCell(participant.base_version()), NumberCell(participant.version())});
  }
  documents.Flush(session.out());
  return kExitOk;
}

int RunListTransactions(Session& session, const std::string& status_name) {
  v1::ListTransactionsRequest request;
  request.set_page_size(kPageSize);
  if (!status_name.empty()) {
    const auto status = ParseTransactionStatus(status_name);
    if (!status.ok()) return session.Usage(status.status());
    request.set_status(*status);
  }
  Table table = TransactionTable(session);
  do {
    v1::ListTransactionsResponse response;
    const grpc::Status status =
        session.Call(&TransactionService::Stub::ListTransactions, request, &response);
    if (!status.ok()) return session.Refuse(status);
    for (const v1::Transaction& transaction : response.transactions()) {
      if (session.json) {
        session.out() << MessageJson(transaction) << "\n";
      } else {
        table.AddRow(TransactionCells(transaction));
      }
    }
    table.Flush(session.out());
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty() && session.out());
  return kExitOk;
}

// One call about one transaction, which is what it answers.
template <typename Request, typename Response, typename Method>
int RunAbout(Session& session, const Request& request, Method method) {
  Response response;
  const grpc::Status status = session.Call(method, request, &response);
  if (!status.ok()) return session.Refuse(status);
  return PrintTransaction(session, response.transaction());
}

struct CancelOptions {
  std::string id;
  ChangeOptions change;
};

void AddCancel(CLI::App& parent, Session& session) {
  CLI::App& command = *parent.add_subcommand(
      "cancel", "Cancel a transaction in two phases before it takes effect; its writes are undone");
  auto options = std::make_shared<CancelOptions>();
  command.add_option("ID", options->id, "The transaction")->required();
  options->change.AddTo(command);
  command.callback([&session, options] {
    session.run = [&session, options] {
      v1::CancelTransactionRequest request;
      request.set_id(options->id);
      const absl::Status filled = options->change.Fill(*request.mutable_change());
      if (!filled.ok()) return session.Usage(filled);
      return RunAbout<v1::CancelTransactionRequest, v1::CancelTransactionResponse>(
          session, request, &TransactionService::Stub::CancelTransaction);
    };
  });
}

void AddResume(CLI::App& parent, Session& session) {
  CLI::App& command = *parent.add_subcommand(
      "resume", "Bring a transaction in two phases to its end now, before the server's next sweep");
  auto id = std::make_shared<std::string>();
  command.add_option("ID", *id, "The transaction")->required();
  command.callback([&session, id] {
    session.run = [&session, id] {
      v1::ResumeTransactionRequest request;
      request.set_id(*id);
      return RunAbout<v1::ResumeTransactionRequest, v1::ResumeTransactionResponse>(
          session, request, &TransactionService::Stub::ResumeTransaction);
    };
  });
}

struct TransactionsOptions {
  std::string id;
  std::string status;
};

int RunTransactions(Session& session, const TransactionsOptions& options) {
  if (options.id.empty()) return RunListTransactions(session, options.status);
  v1::GetTransactionRequest request;
  request.set_id(options.id);
  return RunAbout<v1::GetTransactionRequest, v1::GetTransactionResponse>(
      session, request, &TransactionService::Stub::GetTransaction);
}

void AddTransactions(CLI::App& app, Session& session) {
  CLI::App& command =
      *app.add_subcommand("transactions", "List transactions; show, cancel or resume one");
  auto options = std::make_shared<TransactionsOptions>();
  CLI::Option* const id =
      command.add_option("ID", options->id, "Print this one, with its documents");
  command
      .add_option("--status", options->status,
                  "Only: new, pending, applied, done, cancelling or cancelled")
      ->excludes(id)
      ->type_name("STATUS");
  command.require_subcommand(0, 1);
  AddCancel(command, session);
  AddResume(command, session);
  command.footer(
      "Examples:\n"
      "  strata transactions --status pending\n"
      "  strata transactions transfer-17\n"
      "  strata transactions cancel transfer-17 --reason 'took too long'\n"
      "Those with a request id, and all in two phases, are kept until 24 hours after their end.");
  // Runs after the callback of a subcommand, if there is one.
  command.callback([&session, &command, options] {
    if (command.get_subcommands().empty()) {
      session.run = [&session, options] { return RunTransactions(session, *options); };
    }
  });
}

}  // namespace

void AddTransactionCommands(CLI::App& app, Session& session) {
  AddCommit(app, session);
  AddTransactions(app, session);
}

}  // namespace strata::cli
