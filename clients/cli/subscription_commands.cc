// strata subscriptions create, get, list, delete, parked, replay, discard.
#include <memory>

#include "absl/strings/str_join.h"
#include "clients/cli/arguments.h"
#include "clients/cli/commands.h"
#include "clients/cli/message_json.h"
#include "clients/cli/options.h"
#include "clients/cli/version_cells.h"
#include "clients/cpp/printable.h"

namespace strata::cli {
namespace {

using v1::FeedService;

Table SubscriptionTable(const Session& session) {
  Table table({"NAME", "COLLECTIONS", "PARTITIONS", "BEGAN AFTER", "MADE"}, session.palette());
  table.AlignRight(2);
  table.AlignRight(3);
  return table;
}

void AddSubscription(const v1::Subscription& subscription, Table& table) {
  table.AddRow({subscription.name(),
                OrDash(absl::StrJoin(subscription.collections(), ",")) +
                    (subscription.id_prefix().empty() ? "" : "/" + subscription.id_prefix() + "*"),
                std::to_string(subscription.partitions()),
                std::to_string(subscription.start_position()),
                TimeCell(subscription.has_create_time(), subscription.create_time())});
}

void PrintSubscription(Session& session, const v1::Subscription& subscription) {
  Table table = SubscriptionTable(session);
  AddSubscription(subscription, table);
  table.Flush(session.out());
}

struct CreateOptions {
  std::string name;
  std::vector<std::string> collections;
  std::string prefix;
  EventOptions events;
  int32_t partitions = 0;
  int32_t max_attempts = 0;
  std::string backoff_first;
  std::string backoff_max;
  std::string ack_timeout;
  std::string lease_ttl;
};

absl::Status FillTimes(const CreateOptions& options, v1::CreateSubscriptionRequest& request) {
  absl::Status filled;
  const auto fill = [&](const char* option, const std::string& text, auto mutable_time) {
    if (filled.ok() && !text.empty()) filled = FillDuration(option, text, mutable_time());
  };
  fill("--backoff", options.backoff_first, [&] { return request.mutable_backoff_first(); });
  fill("--backoff-max", options.backoff_max, [&] { return request.mutable_backoff_max(); });
  fill("--ack-timeout", options.ack_timeout, [&] { return request.mutable_ack_timeout(); });
  fill("--lease-ttl", options.lease_ttl, [&] { return request.mutable_lease_ttl(); });
  return filled;
}

int RunCreate(Session& session, const CreateOptions& options) {
  if (options.events.starts() > 1) {
    return session.Usage("--from, --beginning and --since: name one of them");
  }
  v1::CreateSubscriptionRequest request;
  request.set_name(options.name);
  for (const std::string& collection : options.collections) request.add_collections(collection);
  request.set_id_prefix(options.prefix);
  request.set_partitions(options.partitions);
  request.set_max_attempts(options.max_attempts);
  absl::Status filled = options.events.FillRequest(request);
  if (filled.ok()) filled = FillTimes(options, request);
  if (!filled.ok()) return session.Usage(filled);
  v1::CreateSubscriptionResponse response;
  const grpc::Status status =
      session.Call(&FeedService::Stub::CreateSubscription, request, &response);
  if (!status.ok()) return session.Refuse(status);
  if (session.json) {
    session.out() << MessageJson(response.subscription()) << "\n";
  } else {
    PrintSubscription(session, response.subscription());
  }
  return kExitOk;
}

void AddCreate(CLI::App& parent, Session& session) {
  CLI::App& command = *parent.add_subcommand("create", "Make a subscription");
  auto options = std::make_shared<CreateOptions>();
  command.add_option("NAME", options->name, "The subscription")->required();
  command.add_option("COLLECTION", options->collections,
                     "Only events of these collections; of all unless given");
  command.add_option("--prefix", options->prefix, "Only documents whose id begins with this");
  options->events.AddTo(command);
  command
      .add_option("--partitions", options->partitions,
                  "How many consumers can share it; 8 unless given, and never changed")
      ->check(WholeNumber(1))
      ->type_name("N");
  command
      .add_option("--max-attempts", options->max_attempts,
                  "How often an event may fail before its document is parked; 5 unless given")
      ->check(WholeNumber(1))
      ->type_name("N");
  const auto add_time = [&](const char* name, std::string& value, const char* text) {
    command.add_option(name, value, text)->type_name("TIME");
  };
  add_time("--backoff", options->backoff_first,
           "How long to wait before an event that failed comes again, and twice as long each "
           "further time; 1s unless given");
  add_time("--backoff-max", options->backoff_max, "The longest such wait; 5m unless given");
  add_time("--ack-timeout", options->ack_timeout,
           "How long an event may take before it has failed; 60s unless given");
  add_time("--lease-ttl", options->lease_ttl,
           "How long a partition stays with a server that died; 10s unless given");
  command.footer(
      std::string("Begins with the next commit unless an option says otherwise.\nExample:\n"
                  "  strata subscriptions create mail orders --kind created --partitions 4\n") +
      kTimesHelp + "\n" + kConditionsHelp);
  command.callback([&session, options] {
    session.run = [&session, options] { return RunCreate(session, *options); };
  });
}

std::string PlaceText(const v1::SubscriptionPartition& partition) {
  return partition.has_index()
             ? std::to_string(partition.position()) + "." + std::to_string(partition.index())
             : std::to_string(partition.position());
}

void AddPartition(const v1::SubscriptionPartition& partition, Table& table) {
  table.AddRow({std::to_string(partition.partition()), OrDash(partition.consumer()),
                PlaceText(partition), std::to_string(partition.lag_positions()),
                std::to_string(partition.in_flight()),
                TimeCell(partition.has_oldest_open_time(), partition.oldest_open_time()),
                std::to_string(partition.parked())});
  if (partition.attempts() > 0) {
    std::string note = partition.attempts() == 1
                           ? "failed once"
                           : "failed " + std::to_string(partition.attempts()) + " times";
    if (!partition.reason().empty()) note += ": " + client::Printable(partition.reason());
    table.AddNote({note});
  }
  if (partition.blocked()) {
    table.AddNote({"blocked: there is no room to park; replay or discard parked documents"});
  }
}

int RunGet(Session& session, const std::string& name) {
  v1::GetSubscriptionRequest request;
  request.set_name(name);
  v1::GetSubscriptionResponse response;
  const grpc::Status status = session.Call(&FeedService::Stub::GetSubscription, request, &response);
  if (!status.ok()) return session.Refuse(status);
  if (session.json) {
    session.out() << MessageJson(response) << "\n";
    return kExitOk;
  }
  PrintSubscription(session, response.subscription());
  session.out() << "\n";
  Table table({"PARTITION", "CONSUMER", "DONE UP TO", "LAG", "IN FLIGHT", "OLDEST", "PARKED"},
              session.palette());
  for (const size_t numbers : {0, 2, 3, 4, 6}) table.AlignRight(numbers);
  for (const v1::SubscriptionPartition& partition : response.partitions()) {
    AddPartition(partition, table);
  }
  table.Flush(session.out());
  return kExitOk;
}

// NAME, and what is done about it.
template <typename Run>
CLI::App& AddAbout(CLI::App& parent, Session& session, const char* name, const char* text,
                   Run* run) {
  CLI::App& command = *parent.add_subcommand(name, text);
  auto subscription = std::make_shared<std::string>();
  command.add_option("NAME", *subscription, "The subscription")->required();
  command.callback([&session, subscription, run] {
    session.run = [&session, subscription, run] { return run(session, *subscription); };
  });
  return command;
}

int RunDelete(Session& session, const std::string& name) {
  v1::DeleteSubscriptionRequest request;
  request.set_name(name);
  v1::DeleteSubscriptionResponse response;
  const grpc::Status status =
      session.Call(&FeedService::Stub::DeleteSubscription, request, &response);
  if (!status.ok()) return session.Refuse(status);
  if (session.json) {
    session.out() << MessageJson(response) << "\n";
  } else {
    session.out() << client::Printable("deleted subscription " + name) << "\n";
  }
  return kExitOk;
}

// All pages of what `method` lists: `items` are a response's, `add` prints one for people.
template <typename Response, typename Request, typename Method, typename Items, typename Add>
int RunPages(Session& session, Request& request, Method method, Items items, Table table,
             const Add& add) {
  request.set_page_size(kPageSize);
  do {
    Response response;
    const grpc::Status status = session.Call(method, request, &response);
    if (!status.ok()) return session.Refuse(status);
    for (const auto& item : (response.*items)()) {
      if (session.json) {
        session.out() << MessageJson(item) << "\n";
      } else {
        add(item, table);
      }
    }
    table.Flush(session.out());
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty() && session.out());
  return kExitOk;
}

int RunListSubscriptions(Session& session, const std::string& prefix) {
  using Items = const google::protobuf::RepeatedPtrField<v1::Subscription>& (
      v1::ListSubscriptionsResponse::*)() const;
  v1::ListSubscriptionsRequest request;
  request.set_prefix(prefix);
  return RunPages<v1::ListSubscriptionsResponse>(
      session, request, &FeedService::Stub::ListSubscriptions,
      static_cast<Items>(&v1::ListSubscriptionsResponse::subscriptions), SubscriptionTable(session),
      AddSubscription);
}

void AddListSubscriptions(CLI::App& parent, Session& session) {
  CLI::App& command = *parent.add_subcommand("list", "List subscriptions");
  auto prefix = std::make_shared<std::string>();
  command.add_option("PREFIX", *prefix, "Only subscriptions whose names begin with this");
  command.callback([&session, prefix] {
    session.run = [&session, prefix] { return RunListSubscriptions(session, *prefix); };
  });
}

void AddParkedRow(const v1::ParkedDocument& document, Table& table) {
  table.AddRow({document.collection(), document.id(), std::to_string(document.from_version()),
                PlaceCell(document.position(), document.index()),
                std::to_string(document.attempts()),
                TimeCell(document.has_park_time(), document.park_time()), document.reason()});
  if (document.action() == v1::PARKED_ACTION_REPLAY) table.AddNote({"(is to be delivered again)"});
}

int RunParked(Session& session, const std::string& name) {
  using Items =
      const google::protobuf::RepeatedPtrField<v1::ParkedDocument>& (v1::ListParkedResponse::*)()
          const;
  v1::ListParkedRequest request;
  request.set_subscription(name);
  Table table({"COLLECTION", "ID", "FROM VERSION", "COMMIT", "ATTEMPTS", "PARKED", "REASON"},
              session.palette());
  for (const size_t numbers : {2, 3, 4}) table.AlignRight(numbers);
  return RunPages<v1::ListParkedResponse>(session, request, &FeedService::Stub::ListParked,
                                          static_cast<Items>(&v1::ListParkedResponse::documents),
                                          std::move(table), AddParkedRow);
}

struct ParkedOptions {
  std::string subscription;
  std::string collection;
  std::string id;
};

// `done`: "to be replayed".
template <typename Request, typename Response, typename Method>
void AddRequest(CLI::App& parent, Session& session, const char* name, const char* text,
                Method method, const char* done) {
  CLI::App& command = *parent.add_subcommand(name, text);
  auto options = std::make_shared<ParkedOptions>();
  command.add_option("NAME", options->subscription, "The subscription")->required();
  CLI::Option* const collection =
      command.add_option("COLLECTION", options->collection, "Only the document of this collection");
  CLI::Option* const id = command.add_option("ID", options->id, "with this id");
  collection->needs(id);
  command.callback([&session, options, method, done] {
    session.run = [&session, options, method, done] {
      Request request;
      request.set_subscription(options->subscription);
      request.set_collection(options->collection);
      request.set_id(options->id);
      Response response;
      const grpc::Status status = session.Call(method, request, &response);
      if (!status.ok()) return session.Refuse(status);
      if (session.json) {
        session.out() << MessageJson(response) << "\n";
      } else {
        session.out() << done << ": " << response.documents()
                      << (response.documents() == 1 ? " document\n" : " documents\n");
      }
      return kExitOk;
    };
  });
}

}  // namespace

void AddSubscriptionCommands(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand(
      "subscriptions", "Feed positions that the server keeps; strata consume processes the events");
  command.require_subcommand(1);
  AddCreate(command, session);
  AddAbout(command, session, "get", "Print a subscription's positions and consumers", RunGet);
  AddListSubscriptions(command, session);
  AddAbout(command, session, "delete", "Delete a subscription, with its positions", RunDelete);
  AddAbout(command, session, "parked", "List the documents whose event failed too often",
           RunParked);
  AddRequest<v1::ReplayParkedRequest, v1::ReplayParkedResponse>(
      command, session, "replay", "Deliver parked documents again",
      &FeedService::Stub::ReplayParked, "to be delivered again");
  AddRequest<v1::DiscardParkedRequest, v1::DiscardParkedResponse>(
      command, session, "discard", "Give up parked documents", &FeedService::Stub::DiscardParked,
      "given up");
  command.footer(
      "Examples:\n"
      "  strata subscriptions create mail orders --kind created\n"
      "  strata consume mail -- ./send-mail\n"
      "  strata subscriptions get mail\n"
      "  strata subscriptions replay mail orders 4711");
}

}  // namespace strata::cli
