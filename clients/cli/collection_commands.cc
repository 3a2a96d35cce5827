// strata collections: list, create, delete, show.
#include <memory>

#include "clients/cli/arguments.h"
#include "clients/cli/commands.h"
#include "clients/cli/message_json.h"
#include "clients/cli/options.h"

namespace strata::cli {
namespace {

using v1::CollectionService;

std::vector<std::string> CollectionCells(const v1::Collection& collection) {
  return {collection.name(), StrategyName(collection.strategy()), OptionsCell(collection.options()),
          TimeCell(collection.has_create_time(), collection.create_time()),
          std::to_string(collection.incarnation())};
}

Table CollectionTable(const Session& session) {
  Table table({"NAME", "STRATEGY", "OPTIONS", "CREATED", "INCARNATION"}, session.palette());
  table.AlignRight(4);
  return table;
}

int RunListCollections(Session& session) {
  Table table = CollectionTable(session);
  v1::ListCollectionsRequest request;
  do {
    v1::ListCollectionsResponse response;
    const grpc::Status status =
        session.Call(&CollectionService::Stub::ListCollections, request, &response);
    if (!status.ok()) return session.Refuse(status);
    for (const v1::Collection& collection : response.collections()) {
      if (session.json) {
        session.out() << MessageJson(collection) << "\n";
      } else {
        table.AddRow(CollectionCells(collection));
      }
    }
    table.Flush(session.out());
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  return kExitOk;
}

struct CreateCollectionOptions {
  std::string name;
  StrategyChoice choice;
};

int RunCreateCollection(Session& session, const CreateCollectionOptions& options) {
  v1::CreateCollectionRequest request;
  request.set_name(options.name);
  const absl::Status filled = options.choice.Fill(request);
  if (!filled.ok()) return session.Usage(filled);
  v1::CreateCollectionResponse response;
  const grpc::Status status =
      session.Call(&CollectionService::Stub::CreateCollection, request, &response);
  if (!status.ok()) return session.Refuse(status);
  if (session.json) {
    session.out() << MessageJson(response.collection()) << "\n";
    return kExitOk;
  }
  Table table = CollectionTable(session);
  table.AddRow(CollectionCells(response.collection()));
  table.Flush(session.out());
  return kExitOk;
}

struct DeleteCollectionOptions {
  std::string name;
  bool force = false;
  std::string request_id;
  int64_t incarnation = 0;
};

int RunDeleteCollection(Session& session, const v1::DeleteCollectionRequest& request) {
  v1::DeleteCollectionResponse response;
  const grpc::Status status =
      session.Call(&CollectionService::Stub::DeleteCollection, request, &response);
  if (!status.ok()) return session.Refuse(status);
  if (session.json) {
    session.out() << MessageJson(response) << "\n";
    return kExitOk;
  }
  session.out() << "deleted collection " << request.name()
                << (response.replayed() ? " (by an earlier call with this request id)" : "")
                << "\n";
  return kExitOk;
}

int RunShowCollection(Session& session, const std::string& name) {
  v1::GetCollectionRequest request;
  request.set_name(name);
  v1::GetCollectionResponse response;
  const grpc::Status status =
      session.Call(&CollectionService::Stub::GetCollection, request, &response);
  if (!status.ok()) return session.Refuse(status);
  const v1::Collection& collection = response.collection();
  if (session.json) {
    session.out() << MessageJson(collection) << "\n";
    return kExitOk;
  }
  Table table = CollectionTable(session);
  table.AddRow(CollectionCells(collection));
  table.Flush(session.out());
  const v1::CollectionStatistics& statistics = collection.statistics();
  session.out() << "\nabout " << WithCommas(statistics.documents()) << " documents, "
                << WithCommas(statistics.versions()) << " versions\n\n";
  Table sizes({"KEYSPACE", "RECORDS", "BYTES"}, session.palette());
  sizes.AlignRight(1);
  sizes.AlignRight(2);
  for (const v1::KeyspaceSize& keyspace : statistics.keyspaces()) {
    sizes.AddRow(
        {keyspace.keyspace(), WithCommas(keyspace.records()), WithCommas(keyspace.bytes())});
  }
  sizes.Flush(session.out());
  return kExitOk;
}

void AddCreateCollection(CLI::App& parent, Session& session) {
  CLI::App& command = *parent.add_subcommand("create", "Create a collection");
  auto options = std::make_shared<CreateCollectionOptions>();
  command.add_option("NAME", options->name, "The new collection")->required();
  options->choice.AddTo(command, "How it lays out versions; the server's default unless given");
  command.footer(
      "Example:\n  strata collections create books --strategy deltas --keyframe-interval 32");
  command.callback([&session, options] {
    session.run = [&session, options] { return RunCreateCollection(session, *options); };
  });
}

void AddDeleteCollection(CLI::App& parent, Session& session) {
  CLI::App& command = *parent.add_subcommand("delete", "Delete a collection");
  auto options = std::make_shared<DeleteCollectionOptions>();
  command.add_option("NAME", options->name, "The collection")->required();
  command.add_flag("--force", options->force, "With all its documents and their histories");
  command.add_option("--request-id", options->request_id,
                     "Makes repeating the command safe: within 24 hours the same id takes effect "
                     "once, also if a collection of that name is made meanwhile");
  command
      .add_option("--incarnation", options->incarnation,
                  "Only this one, as strata collections shows it, and none made after it")
      ->check(WholeNumber(1))
      ->type_name("N");
  command.callback([&session, options] {
    v1::DeleteCollectionRequest request;
    request.set_name(options->name);
    request.set_force(options->force);
    request.set_request_id(options->request_id);
    request.set_incarnation(options->incarnation);
    session.run = [&session, request] { return RunDeleteCollection(session, request); };
  });
}

void AddShowCollection(CLI::App& parent, Session& session) {
  CLI::App& command =
      *parent.add_subcommand("show", "Print a collection's settings and how much it holds");
  auto name = std::make_shared<std::string>();
  command.add_option("NAME", *name, "The collection")->required();
  command.callback([&session, name] {
    session.run = [&session, name] { return RunShowCollection(session, *name); };
  });
}

}  // namespace

void AddCollectionCommands(CLI::App& app, Session& session) {
  CLI::App& command =
      *app.add_subcommand("collections", "List collections; create, show or delete one");
  command.require_subcommand(0, 1);
  AddCreateCollection(command, session);
  AddDeleteCollection(command, session);
  AddShowCollection(command, session);
  command.footer("Without a subcommand: lists the collections by name.");
  // Runs after the callback of a subcommand, if there is one.
  command.callback([&session, &command] {
    if (command.get_subcommands().empty()) {
      session.run = [&session] { return RunListCollections(session); };
    }
  });
}

}  // namespace strata::cli
