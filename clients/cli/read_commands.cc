// strata get, list.
#include <memory>

#include "clients/cli/arguments.h"
#include "clients/cli/commands.h"
#include "clients/cli/message_json.h"
#include "clients/cli/options.h"
#include "clients/cpp/extended_json.h"
#include "clients/cpp/printable.h"

namespace strata::cli {
namespace {

using v1::DocumentService;

constexpr int kBatchMax = 1000;

struct GetOptions {
  std::string collection;
  std::string id;
  std::vector<std::string> more_ids;
  int64_t version = 0;
  std::string at_time;
  int64_t at_position = 0;  // 0: none
  std::vector<std::string> fields;
};

// Says what the answer leaves out.
void TellOfTransaction(Session& session, const v1::Document& document) {
  if (document.pending_transaction_id().empty()) return;
  session.err() << client::Printable("transaction " + document.pending_transaction_id() +
                                     " is not decided yet; it has written the next version of " +
                                     document.collection() + " " + document.id())
                << "\n";
}

// Prints a document: its content, with a line above that says which version it is if a person looks
// or there are several.
int PrintDocument(Session& session, const v1::Document& document, bool headline) {
  if (session.json) {
    session.out() << MessageJson(document) << "\n";
    return kExitOk;
  }
  if (headline) {
    const std::string line = document.collection() + " " + document.id() + ", version " +
                             std::to_string(document.version()) + " of " +
                             CommitTimeCell(document.has_update_time(), document.update_time());
    session.out() << session.palette().Dim("# " + client::Printable(line)) << "\n";
  }
  const auto json = client::JsonFromBson(document.content().bson(), client::JsonStyle::kRelaxed, 2);
  if (!json.ok()) return session.Fail(std::string(json.status().message()));
  session.out() << *json << "\n";
  TellOfTransaction(session, document);
  return kExitOk;
}

int RunGetOne(Session& session, const GetOptions& options) {
  v1::GetRequest request;
  request.set_collection(options.collection);
  request.set_id(options.id);
  request.set_encoding(v1::ENCODING_BSON);
  for (const std::string& field : options.fields) request.add_fields(field);
  if (options.version > 0) request.set_version(options.version);
  if (!options.at_time.empty()) {
    const absl::Status status = FillTime("--at", options.at_time, request.mutable_at_time());
    if (!status.ok()) return session.Usage(status);
  }
  if (options.at_position > 0) request.set_at_position(options.at_position);
  v1::GetResponse response;
  const grpc::Status status = session.Call(&DocumentService::Stub::Get, request, &response);
  if (!status.ok()) return session.Refuse(status);
  return PrintDocument(session, response.document(), session.terminal().out_is_terminal);
}

// Reads the documents of `request.ids`; what the server had no room for is asked for again.
int GetBatch(Session& session, v1::BatchGetRequest& request, int64_t& missing) {
  while (request.ids_size() > 0) {
    v1::BatchGetResponse response;
    const grpc::Status status = session.Call(&DocumentService::Stub::BatchGet, request, &response);
    if (!status.ok()) return session.Refuse(status);
    for (const v1::Document& document : response.documents()) {
      const int exit_status = PrintDocument(session, document, true);
      if (exit_status != kExitOk) return exit_status;
    }
    for (const std::string& id : response.missing_ids()) {
      session.err() << "missing: " << client::Printable(request.collection() + " " + id) << "\n";
      ++missing;
    }
    if (response.remaining_ids_size() >= request.ids_size()) {
      return session.Fail("the server read none of the documents");
    }
    request.mutable_ids()->Swap(response.mutable_remaining_ids());
  }
  return kExitOk;
}

int RunGetMany(Session& session, const GetOptions& options) {
  if (options.version > 0 || !options.at_time.empty() || options.at_position > 0) {
    return session.Usage("--version, --at and --at-position take one document at a time");
  }
  v1::BatchGetRequest request;
  request.set_collection(options.collection);
  request.set_encoding(v1::ENCODING_BSON);
  for (const std::string& field : options.fields) request.add_fields(field);
  request.add_ids(options.id);
  int64_t missing = 0;
  for (size_t i = 0; i < options.more_ids.size(); ++i) {
    request.add_ids(options.more_ids[i]);
    if (request.ids_size() < kBatchMax && i + 1 < options.more_ids.size()) continue;
    const int exit_status = GetBatch(session, request, missing);
    if (exit_status != kExitOk) return exit_status;
  }
  return missing == 0 ? kExitOk : kExitRefused;
}

void AddGet(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("get", "Print a document: now, at a version, at a time");
  auto options = std::make_shared<GetOptions>();
  command.add_option("COLLECTION", options->collection, "The documents' collection")->required();
  // An option of its own, because lists of arguments take "[x]" for a list in itself.
  command.add_option("ID", options->id, "The document's id")->required();
  command.add_option("MORE", options->more_ids, "Ids of more documents");
  CLI::Option* version = command.add_option("--version", options->version, "That version");
  version->check(WholeNumber(1))->type_name("N");
  CLI::Option* time =
      command.add_option("--at", options->at_time, "The version that was current at this time");
  time->excludes(version)->type_name("TIME");
  command
      .add_option("--at-position", options->at_position,
                  "The version that was current as of this commit")
      ->check(WholeNumber(1))
      ->excludes(version)
      ->excludes(time)
      ->type_name("N");
  AddRepeated(command, "--field", options->fields,
              "Only this member, a JSON Pointer such as /stock; may be repeated")
      ->type_name("/PATH");
  command.footer(std::string("Examples:\n"
                             "  strata get books moby\n"
                             "  strata get books moby --at 2026-01-31T12:00\n"
                             "  strata get books moby --at '5m ago'\n"
                             "  strata get books moby emma walden --json\n") +
                 kTimesHelp +
                 "\nTo change it by hand: strata edit. Several documents: exit status 1 if one of "
                 "them is missing, which stderr names.");
  command.callback([&session, options] {
    session.run = [&session, options] {
      return options->more_ids.empty() ? RunGetOne(session, *options)
                                       : RunGetMany(session, *options);
    };
  });
}

struct ListOptions {
  std::string collection;
  std::string prefix;
  FilterOption filter;
  std::string at_time;
  int64_t at_position = 0;  // 0: none
  bool deleted = false;
  bool content = false;
  std::vector<std::string> fields;
  LimitOption limit;
};

absl::Status FillList(const Session& session, const ListOptions& options,
                      v1::ListRequest& request) {
  request.set_collection(options.collection);
  request.set_id_prefix(options.prefix);
  request.set_show_deleted(options.deleted);
  request.set_encoding(v1::ENCODING_BSON);
  for (const std::string& field : options.fields) request.add_fields(field);
  // Nobody looks at the contents: ask for a member that hardly any document has.
  const bool with_content = options.content || session.json || request.fields_size() > 0;
  if (!with_content) request.add_fields("/");
  if (!options.at_time.empty()) {
    const absl::Status status = FillTime("--at", options.at_time, request.mutable_at_time());
    if (!status.ok()) return status;
  }
  request.set_at_position(options.at_position);
  if (!options.filter.given()) return absl::OkStatus();
  return options.filter.Fill(*request.mutable_filter());
}

void AddListRow(const v1::Document& document, bool with_content, Table& table) {
  std::vector<std::string> cells = {
      document.id(), std::to_string(document.version()),
      CommitTimeCell(document.has_update_time(), document.update_time())};
  if (!document.has_content()) {
    cells.push_back("deleted");
  } else if (with_content) {
    cells.push_back(client::JsonFromBson(document.content().bson(), client::JsonStyle::kRelaxed)
                        .value_or("damaged"));
  }
  table.AddRow(cells);
}

int RunList(Session& session, const ListOptions& options) {
  v1::ListRequest request;
  const absl::Status filled = FillList(session, options, request);
  if (!filled.ok()) return session.Usage(filled);
  const bool with_content = options.content || !options.fields.empty();
  std::vector<std::string> header = {"ID", "VERSION", "TIME"};
  if (with_content || options.deleted) header.push_back(with_content ? "CONTENT" : "");
  Table table(header, session.palette());
  table.AlignRight(1);
  int64_t printed = 0;
  while (true) {
    request.set_page_size(options.limit.NextPageSize(printed, kPageSize));
    v1::ListResponse response;
    const grpc::Status status = session.Call(&DocumentService::Stub::List, request, &response);
    if (!status.ok()) return session.Refuse(status);
    for (const v1::Document& document : response.documents()) {
      if (session.json) {
        session.out() << MessageJson(document) << "\n";
      } else {
        AddListRow(document, with_content, table);
      }
      ++printed;
    }
    table.Flush(session.out());
    request.set_page_token(response.next_page_token());
    if (request.page_token().empty() || options.limit.NextPageSize(printed, 1) == 0) break;
    if (!session.out()) break;
  }
  return kExitOk;
}

void AddList(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("list", "List the documents of a collection");
  auto options = std::make_shared<ListOptions>();
  command.add_option("COLLECTION", options->collection, "The collection")->required();
  command.add_option("--prefix", options->prefix, "Only ids that begin with this");
  options->filter.AddTo(command, "--where,--filter", "Only documents that meet");
  CLI::Option* time =
      command.add_option("--at", options->at_time, "The documents as they were at this time");
  time->type_name("TIME");
  command.add_option("--at-position", options->at_position, "The documents as of this commit")
      ->check(WholeNumber(1))
      ->excludes(time)
      ->type_name("N");
  command.add_flag("--deleted", options->deleted, "Deleted documents too");
  command.add_flag("--content", options->content, "Print the contents, one a line");
  AddRepeated(command, "--field", options->fields,
              "Print this member, a JSON Pointer such as /stock; may be repeated")
      ->type_name("/PATH");
  options->limit.AddTo(command);
  command.footer(
      std::string("Examples:\n"
                  "  strata list books --field /title --field /stock\n"
                  "  strata list books --where 'stock>0' --where 'author.name~^Mel'\n"
                  "  strata list books --at 2026-01-31T12:00 --filter '{\"stock\": {\"$gt\": 0}}'\n"
                  "  strata list books --prefix mo --json | jq .id\n") +
      kConditionsHelp + "\n" + kTimesHelp + "\nIn the byte order of the ids.");
  command.callback([&session, options] {
    session.run = [&session, options] { return RunList(session, *options); };
  });
}

}  // namespace

void AddReadCommands(CLI::App& app, Session& session) {
  AddGet(app, session);
  AddList(app, session);
}

}  // namespace strata::cli
