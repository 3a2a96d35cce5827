#include "tests/client/operations.h"

#include <functional>
#include <future>
#include <limits>
#include <map>
#include <utility>

namespace strata::client {
namespace {

using Action = std::function<Outcome(Scene&, Arguments&)>;

template <typename T>
Outcome Given(const absl::StatusOr<T>& answer) {
  if (!answer.ok()) return {.status = answer.status(), .missing = false, .value = {}, .items = {}};
  return {.status = {}, .missing = false, .value = Describe(*answer), .items = {}};
}

Outcome Given(const absl::Status& status) {
  return {.status = status, .missing = false, .value = {}, .items = {}};
}

Outcome Given(const absl::StatusOr<std::optional<Document>>& answer) {
  if (!answer.ok()) return Given(answer.status());
  if (answer->has_value()) return Given(absl::StatusOr<Document>(**answer));
  return {.status = {}, .missing = true, .value = {}, .items = {}};
}

Outcome GivenItems(Array items, absl::Status status) {
  return {.status = std::move(status), .missing = false, .value = {}, .items = std::move(items)};
}

int64_t LimitOf(Arguments& arguments) {
  return arguments.Has("take") ? arguments.Get<int64_t>("take")
                               : std::numeric_limits<int64_t>::max();
}

template <typename T>
Outcome Listed(Range<T> range, int64_t limit) {
  Array items;
  while (static_cast<int64_t>(items.size()) < limit) {
    const std::optional<T> item = range.Next();
    if (!item.has_value()) break;
    items.push_back(Describe(*item));
  }
  return GivenItems(std::move(items), range.status());
}

Outcome Watched(Watch watch, int64_t limit) {
  Array items;
  while (static_cast<int64_t>(items.size()) < limit) {
    const auto item = watch.Next();
    if (!item.has_value()) break;
    items.push_back(item->event ? Describe(*item->event) : Describe(*item->document));
  }
  return GivenItems(std::move(items), watch.status());
}

Change ChangeOf(Arguments& arguments) {
  Change change;
  change.replace = arguments.Get<std::optional<Value>>("replace");
  change.merge = arguments.Get<std::optional<Value>>("merge");
  change.operations = arguments.Get<std::vector<Operation>>("operations");
  return change;
}

// "increment:/n", "nothing", "throw", "conflict_once:/n".
ModifyFunction FunctionOf(const std::string& text, const Collection& things,
                          const std::string& id) {
  const std::string kind = text.substr(0, text.find(':'));
  const std::string member = text.substr(std::min(text.size(), kind.size() + 2));
  const auto increment = [member](std::optional<Value> content) -> std::optional<Value> {
    Value next = content.value_or(Object{});
    const auto count = std::as_const(next)[member].AsInteger().value_or(0) + 1;
    if (std::as_const(next)[member].As<int64_t>() != nullptr) {
      next[member] = count;
    } else {
      next[member] = static_cast<int32_t>(count);
    }
    return next;
  };
  if (kind == "nothing") return [](auto) { return std::optional<Value>(); };
  if (kind == "throw") {
    return
        [](auto) -> absl::StatusOr<std::optional<Value>> { return absl::CancelledError("thrown"); };
  }
  if (kind == "increment") return increment;
  // The first time somebody else is faster.
  auto first = std::make_shared<bool>(true);
  return [=](std::optional<Value> content) -> absl::StatusOr<std::optional<Value>> {
    if (std::exchange(*first, false)) {
      const auto other = things.Modify(id, increment);
      if (!other.ok()) return other.status();
    }
    return increment(std::move(content));
  };
}

Outcome Applied(ApplyStream stream, const std::vector<EnrollmentMessage>& messages) {
  for (const EnrollmentMessage& message : messages) {
    if (absl::Status status = stream.Send(message); !status.ok()) break;
  }
  stream.Finish();
  Array items;
  while (const auto result = stream.Next()) {
    Value item = Object{{"result", Describe(result->result)},
                        {"enrolled", result->enrolled},
                        {"version", std::to_string(result->version)}};
    if (!result->status.ok()) {
      const Error error = ErrorOf(result->status);
      item["error"] = Object{{"code", static_cast<int32_t>(error.code)},
                             {"reason", error.reason_name},
                             {"message", error.message},
                             {"metadata", Describe(error.metadata)}};
    }
    items.push_back(std::move(item));
  }
  return GivenItems(std::move(items), stream.status());
}

// A step of what a case does with a stream: "next", or an object of what is said, and of which of
// those that were taken.
struct StreamStep {
  std::string kind = "next";
  size_t number = 0;
  std::string reason = {};
  bool park = false;
};

std::vector<StreamStep> StepsOf(Arguments& arguments) {
  std::vector<StreamStep> steps;
  const auto* given = arguments.Take("steps").As<Array>();
  if (given == nullptr) return steps;
  for (const Value& one : *given) {
    StreamStep& step = steps.emplace_back();
    const auto* object = one.As<Object>();
    if (object == nullptr || object->empty()) continue;
    step.kind = object->begin()->name;
    step.number = static_cast<size_t>(object->begin()->value.AsInteger().value_or(0));
    if (const auto* reason = one["reason"].As<std::string>()) step.reason = *reason;
    step.park = one["park"] == Value(true);
  }
  return steps;
}

// A library that waits for what never comes fails.
constexpr absl::Duration kStepPatience = absl::Seconds(20);

Outcome ConsumedBySteps(Consumer consumer, const std::vector<StreamStep>& steps) {
  std::vector<Delivery> taken;
  for (const StreamStep& step : steps) {
    if (step.kind == "next") {
      auto delivery = consumer.Next(kStepPatience);
      if (!delivery.has_value()) break;
      taken.push_back(*std::move(delivery));
    } else if (step.kind == "ack") {
      consumer.Ack(taken.at(step.number));
    } else if (step.kind == "nack") {
      consumer.Nack(taken.at(step.number), step.reason, step.park);
    } else {
      return Given(absl::InvalidArgumentError("there is no step " + step.kind));
    }
  }
  const absl::Status status = consumer.status();
  consumer.Close();
  Array items;
  for (const Delivery& delivery : taken) items.push_back(Describe(delivery));
  return GivenItems(std::move(items), status);
}

Outcome ReceivedBySteps(Receiver receiver, const std::vector<StreamStep>& steps) {
  std::vector<QueueMessage> taken;
  struct Asked {
    std::string message_id;
    std::future<absl::StatusOr<TokenResult>> answer;
  };
  std::vector<Asked> asked;
  for (const StreamStep& step : steps) {
    if (step.kind == "next") {
      auto message = receiver.Next(kStepPatience);
      if (!message.has_value()) break;
      taken.push_back(*std::move(message));
      continue;
    }
    const QueueMessage& message = taken.at(step.number);
    if (step.kind == "acknowledge") {
      asked.push_back({message.message_id, receiver.Acknowledge(message)});
    } else if (step.kind == "rollback") {
      asked.push_back({message.message_id, receiver.Rollback(message)});
    } else if (step.kind == "extend") {
      asked.push_back({message.message_id, receiver.Extend(message)});
    } else {
      return Given(absl::InvalidArgumentError("there is no step " + step.kind));
    }
  }
  const absl::Status status = receiver.status();
  receiver.Close();
  Array items;
  for (const QueueMessage& message : taken) items.push_back(Describe(message));
  for (Asked& each : asked) {
    const absl::StatusOr<TokenResult> answer = each.answer.get();
    const absl::Status& refusal = answer.ok() ? answer->status : answer.status();
    if (refusal.ok()) continue;
    const Error error = ErrorOf(refusal);
    items.push_back(Object{{"message_id", each.message_id},
                           {"error", Object{{"reason", error.reason_name},
                                            {"outcome_unknown", error.outcome_unknown}}}});
  }
  return GivenItems(std::move(items), status);
}

Outcome Consumed(Consumer consumer, int64_t limit) {
  Array items;
  while (static_cast<int64_t>(items.size()) < limit) {
    const auto delivery = consumer.Next();
    if (!delivery.has_value()) break;
    items.push_back(Describe(*delivery));
    consumer.Ack(*delivery);
  }
  const absl::Status status = consumer.status();
  consumer.Close();
  return GivenItems(std::move(items), status);
}

Outcome ReceivedBy(Receiver receiver, int64_t limit) {
  Array items;
  while (static_cast<int64_t>(items.size()) < limit) {
    const auto message = receiver.Next();
    if (!message.has_value()) break;
    items.push_back(Describe(*message));
    receiver.Acknowledge(*message);
  }
  const absl::Status status = receiver.status();
  receiver.Close();
  return GivenItems(std::move(items), status);
}

Outcome GivenResults(const absl::StatusOr<std::vector<TokenResult>>& results) {
  if (!results.ok()) return Given(results.status());
  Array items;
  for (const TokenResult& result : *results) {
    Value item = Object{{"replayed", result.replayed}};
    if (!result.status.ok()) {
      item["error"] = Object{{"reason", ErrorOf(result.status).reason_name}};
    }
    items.push_back(std::move(item));
  }
  return {.status = {}, .missing = false, .value = std::move(items), .items = {}};
}

Outcome GivenPushes(const absl::StatusOr<std::vector<PushResult>>& results) {
  if (!results.ok()) return Given(results.status());
  Array items;
  for (const PushResult& result : *results) {
    Value item = Object{{"message_id", result.message_id}, {"replayed", result.replayed}};
    if (!result.status.ok()) {
      item["error"] = Object{{"reason", ErrorOf(result.status).reason_name}};
    }
    items.push_back(std::move(item));
  }
  return {.status = {}, .missing = false, .value = std::move(items), .items = {}};
}

Collection CollectionOf(Scene& scene) { return scene.client.collection(scene.collection); }

void AddDocuments(std::map<std::string, Action>& actions) {
  actions["create"] = [](Scene& scene, Arguments& a) {
    return Given(CollectionOf(scene).Create(a.Get<std::string>("id"), a.Get<Value>("content"),
                                            a.Options<CreateOptions>()));
  };
  actions["get"] = [](Scene& scene, Arguments& a) {
    return Given(CollectionOf(scene).Get(a.Get<std::string>("id"), a.Options<GetOptions>()));
  };
  actions["batch_get"] = [](Scene& scene, Arguments& a) {
    const auto answer = CollectionOf(scene).BatchGet(a.Get<std::vector<std::string>>("ids"),
                                                     a.Options<BatchGetOptions>());
    if (!answer.ok()) return Given(answer.status());
    Outcome outcome;
    outcome.value = Object{{"documents", Describe(answer->documents)},
                           {"missing_ids", Describe(answer->missing_ids)}};
    return outcome;
  };
  actions["update"] = [](Scene& scene, Arguments& a) {
    return Given(CollectionOf(scene).Update(a.Get<std::string>("id"), ChangeOf(a),
                                            a.Options<UpdateOptions>()));
  };
  actions["modify"] = [](Scene& scene, Arguments& a) {
    const Collection things = CollectionOf(scene);
    const auto id = a.Get<std::string>("id");
    return Given(things.Modify(id, FunctionOf(a.Get<std::string>("fn"), things, id),
                               a.Options<ModifyOptions>()));
  };
  actions["delete"] = [](Scene& scene, Arguments& a) {
    return Given(CollectionOf(scene).Delete(a.Get<std::string>("id"), a.Options<DeleteOptions>()));
  };
  actions["restore"] = [](Scene& scene, Arguments& a) {
    return Given(CollectionOf(scene).Restore(a.Get<std::string>("id"), a.Get<int64_t>("version"),
                                             a.Options<RestoreOptions>()));
  };
  actions["history"] = [](Scene& scene, Arguments& a) {
    return Listed(
        CollectionOf(scene).History(a.Get<std::string>("id"), a.Options<HistoryOptions>()),
        LimitOf(a));
  };
  actions["diff"] = [](Scene& scene, Arguments& a) {
    return Listed(CollectionOf(scene).Diff(a.Get<std::string>("id"), a.Get<int64_t>("from_version"),
                                           a.Get<int64_t>("to_version"), a.Options<DiffOptions>()),
                  LimitOf(a));
  };
  actions["audit"] = [](Scene& scene, Arguments& a) {
    return Listed(CollectionOf(scene).Audit(a.Options<AuditOptions>()), LimitOf(a));
  };
  actions["list"] = [](Scene& scene, Arguments& a) {
    return Listed(CollectionOf(scene).List(a.Options<ListOptions>()), LimitOf(a));
  };
  actions["watch"] = [](Scene& scene, Arguments& a) {
    return Watched(CollectionOf(scene).Watch(a.Options<WatchOptions>()), LimitOf(a));
  };
}

void AddClient(std::map<std::string, Action>& actions) {
  actions["client.audit"] = [](Scene& scene, Arguments& a) {
    return Listed(scene.client.Audit(a.Options<AuditOptions>()), LimitOf(a));
  };
  actions["client.watch"] = [](Scene& scene, Arguments& a) {
    return Watched(scene.client.Watch(a.Options<WatchOptions>()), LimitOf(a));
  };
  actions["feed"] = [](Scene& scene, Arguments&) { return Given(scene.client.GetFeed()); };
  actions["server_info"] = [](Scene& scene, Arguments&) {
    return Given(scene.client.GetServerInfo());
  };
  for (const char* name : {"client.feed", "client.server_info"}) {
    actions[name] = actions[std::string(name).substr(7)];
  }
}

void AddCollections(std::map<std::string, Action>& actions) {
  actions["collections.create"] = [](Scene& scene, Arguments& a) {
    auto options = a.Options<CreateCollectionOptions>();
    if (a.Has("keyframe_interval")) options.options = a.Options<CollectionOptions>();
    return Given(scene.client.collections().Create(a.Get<std::string>("name"), options));
  };
  actions["collections.get"] = [](Scene& scene, Arguments& a) {
    return Given(scene.client.collections().Get(a.Get<std::string>("name")));
  };
  actions["collections.list"] = [](Scene& scene, Arguments& a) {
    return Listed(scene.client.collections().List(a.Options<ListCollectionsOptions>()), LimitOf(a));
  };
  actions["collections.delete"] = [](Scene& scene, Arguments& a) {
    const auto replayed = scene.client.collections().Delete(a.Get<std::string>("name"),
                                                            a.Options<DeleteCollectionOptions>());
    if (!replayed.ok()) return Given(replayed.status());
    Outcome outcome;
    outcome.value = Object{{"replayed", *replayed}};
    return outcome;
  };
  actions["collections.ledger_head"] = [](Scene& scene, Arguments&) {
    return Given(scene.client.collections().GetLedgerHead());
  };
  actions["collections.verify"] = [](Scene& scene, Arguments& a) {
    const auto name = a.Get<std::string>(a.Has("name") ? "name" : "collection");
    return Listed(scene.client.collections().Verify(name, a.Options<VerifyOptions>()), LimitOf(a));
  };
}

void AddEnrollments(std::map<std::string, Action>& actions) {
  actions["enrollments.enroll"] = [](Scene& scene, Arguments& a) {
    return Given(scene.client.enrollments().Enroll(
        a.Get<std::string>("student_id"), a.Get<std::string>("class_name"),
        a.Get<int64_t>("sequence_number"), a.Options<EnrollOptions>()));
  };
  actions["enrollments.unenroll"] = [](Scene& scene, Arguments& a) {
    return Given(scene.client.enrollments().Unenroll(
        a.Get<std::string>("student_id"), a.Get<std::string>("class_name"),
        a.Get<int64_t>("sequence_number"), a.Options<EnrollOptions>()));
  };
  actions["enrollments.get"] = [](Scene& scene, Arguments& a) {
    return Given(scene.client.enrollments().Get(a.Get<std::string>("student_id"),
                                                a.Options<GetEnrollmentsOptions>()));
  };
  actions["enrollments.roster"] = [](Scene& scene, Arguments& a) {
    return Listed(scene.client.enrollments().Roster(a.Get<std::string>("class_name"),
                                                    a.Options<RosterOptions>()),
                  LimitOf(a));
  };
  actions["enrollments.apply"] = [](Scene& scene, Arguments& a) {
    return Applied(scene.client.enrollments().Apply(),
                   a.Get<std::vector<EnrollmentMessage>>("messages"));
  };
  actions["enrollments.purge_tombstones"] = [](Scene& scene, Arguments& a) {
    return Given(scene.client.enrollments().PurgeTombstones(
        a.Get<int64_t>("through_sequence_number"), a.Options<PurgeOptions>()));
  };
}

void AddFeed(std::map<std::string, Action>& actions) {
  actions["subscriptions.create"] = [](Scene& scene, Arguments& a) {
    return Given(scene.client.subscriptions().Create(a.Get<std::string>("name"),
                                                     a.Options<CreateSubscriptionOptions>()));
  };
  actions["subscriptions.get"] = [](Scene& scene, Arguments& a) {
    return Given(scene.client.subscriptions().Get(a.Get<std::string>("name")));
  };
  actions["subscriptions.list"] = [](Scene& scene, Arguments& a) {
    return Listed(scene.client.subscriptions().List(a.Options<ListSubscriptionsOptions>()),
                  LimitOf(a));
  };
  actions["subscriptions.delete"] = [](Scene& scene, Arguments& a) {
    return Given(scene.client.subscriptions().Delete(a.Get<std::string>("name")));
  };
  actions["subscriptions.consume"] = [](Scene& scene, Arguments& a) {
    const auto name = a.Get<std::string>(a.Has("name") ? "name" : "subscription");
    Consumer consumer = scene.client.subscriptions().Consume(name, a.Get<std::string>("consumer"),
                                                             a.Options<ConsumeOptions>());
    if (a.Has("steps")) return ConsumedBySteps(std::move(consumer), StepsOf(a));
    return Consumed(std::move(consumer), LimitOf(a));
  };
  actions["subscriptions.parked"] = [](Scene& scene, Arguments& a) {
    return Listed(scene.client.subscriptions().Parked(a.Get<std::string>("name"),
                                                      a.Options<ListParkedOptions>()),
                  LimitOf(a));
  };
}

void AddLeases(std::map<std::string, Action>& actions) {
  actions["leases.acquire"] = [](Scene& scene, Arguments& a) {
    return Given(scene.client.leases().Acquire(
        a.Get<std::string>("name"), a.Get<std::string>("holder"), a.Options<AcquireOptions>()));
  };
  actions["leases.renew"] = [](Scene& scene, Arguments& a) {
    return Given(scene.client.leases().Renew(a.Get<std::string>("name"), a.Get<int64_t>("token"),
                                             a.Options<RenewOptions>()));
  };
  actions["leases.release"] = [](Scene& scene, Arguments& a) {
    return Given(
        scene.client.leases().Release(a.Get<std::string>("name"), a.Get<int64_t>("token")));
  };
  actions["leases.get"] = [](Scene& scene, Arguments& a) {
    return Given(scene.client.leases().Get(a.Get<std::string>("name")));
  };
  actions["leases.list"] = [](Scene& scene, Arguments& a) {
    return Listed(scene.client.leases().List(a.Options<ListLeasesOptions>()), LimitOf(a));
  };
}

void AddQueues(std::map<std::string, Action>& actions) {
  actions["queues.create"] = [](Scene& scene, Arguments& a) {
    return Given(
        scene.client.queues().Create(a.Get<std::string>("name"), a.Options<QueueSettings>()));
  };
  actions["queues.get"] = [](Scene& scene, Arguments& a) {
    return Given(scene.client.queues().Get(a.Get<std::string>("name")));
  };
  actions["queues.list"] = [](Scene& scene, Arguments& a) {
    return Listed(scene.client.queues().List(a.Options<ListQueuesOptions>()), LimitOf(a));
  };
  actions["queues.delete"] = [](Scene& scene, Arguments& a) {
    return Given(
        scene.client.queues().Delete(a.Get<std::string>("name"), a.Options<DeleteQueueOptions>()));
  };
  actions["queues.push"] = [](Scene& scene, Arguments& a) {
    const auto queue = a.Get<std::string>("queue");
    if (a.Has("messages")) {
      return GivenPushes(
          scene.client.queues().Push(queue, a.Get<std::vector<PushedMessage>>("messages")));
    }
    const auto result = scene.client.queues().Push(queue, a.Options<PushedMessage>());
    if (!result.ok()) return Given(result.status());
    Outcome outcome;
    outcome.value = Object{{"message_id", result->message_id}, {"replayed", result->replayed}};
    return outcome;
  };
  actions["queues.pop"] = [](Scene& scene, Arguments& a) {
    return Given(scene.client.queues().Pop(a.Get<std::string>("queue"), a.Options<PopOptions>()));
  };
  actions["queues.reserve"] = [](Scene& scene, Arguments& a) {
    return Given(
        scene.client.queues().Reserve(a.Get<std::string>("queue"), a.Options<ReserveOptions>()));
  };
  actions["queues.acknowledge"] = [](Scene& scene, Arguments& a) {
    return GivenResults(
        scene.client.queues().Acknowledge(a.Get<std::vector<std::string>>("tokens")));
  };
  actions["queues.rollback"] = [](Scene& scene, Arguments& a) {
    return GivenResults(scene.client.queues().Rollback(a.Get<std::vector<std::string>>("tokens"),
                                                       a.Options<RollbackOptions>()));
  };
  actions["queues.extend"] = [](Scene& scene, Arguments& a) {
    return GivenResults(scene.client.queues().Extend(a.Get<std::vector<std::string>>("tokens"),
                                                     a.Options<ExtendOptions>()));
  };
  actions["queues.move"] = [](Scene& scene, Arguments& a) {
    return Given(scene.client.queues().Move(a.Get<std::string>("token"),
                                            a.Get<std::string>("queue"), a.Options<MoveOptions>()));
  };
  actions["queues.receive"] = [](Scene& scene, Arguments& a) {
    Receiver receiver =
        scene.client.queues().Receive(a.Get<std::string>("queue"), a.Options<ReceiveOptions>());
    if (a.Has("steps")) return ReceivedBySteps(std::move(receiver), StepsOf(a));
    return ReceivedBy(std::move(receiver), LimitOf(a));
  };
  actions["queues.message"] = [](Scene& scene, Arguments& a) {
    return Given(scene.client.queues().Message(a.Get<std::string>("queue"),
                                               a.Get<std::string>("message_id")));
  };
  actions["queues.messages"] = [](Scene& scene, Arguments& a) {
    return Listed(scene.client.queues().Messages(a.Get<std::string>("queue"),
                                                 a.Options<ListMessagesOptions>()),
                  LimitOf(a));
  };
  actions["queues.replay"] = [](Scene& scene, Arguments& a) {
    return Given(
        scene.client.queues().Replay(a.Get<std::string>("queue"), a.Options<ReplayOptions>()));
  };
  actions["queues.purge"] = [](Scene& scene, Arguments& a) {
    return Given(scene.client.queues().Purge(a.Get<std::string>("queue"),
                                             a.Options<PurgeMessagesOptions>()));
  };
}

// A part is an object with the name of a builder's function and what it takes, or an object of
// them under "op" and "args".
void AddPart(const Value& part, Arguments& outer, Scene& scene, Transaction& transaction) {
  const auto* op = part["op"].As<std::string>();
  const auto* object = part.As<Object>();
  if (op == nullptr && (object == nullptr || object->empty())) return;
  const std::string name = op == nullptr ? object->begin()->name : *op;
  const Value& inner = op == nullptr ? object->begin()->value : part["args"];
  Arguments a(op != nullptr && inner.is_null() ? part : inner);
  const auto collection = a.Has("collection") ? a.Get<std::string>("collection") : scene.collection;
  const auto id = a.Get<std::string>("id");
  if (name == "create") {
    transaction.Create(collection, id, a.Get<Value>("content"), a.Options<CreateOptions>());
  } else if (name == "update") {
    transaction.Update(collection, id, ChangeOf(a), a.Options<UpdateOptions>());
  } else if (name == "delete") {
    transaction.Delete(collection, id, a.Options<DeleteOptions>());
  } else if (name == "restore") {
    transaction.Restore(collection, id, a.Get<int64_t>("version"), a.Options<RestoreOptions>());
  } else if (name == "check") {
    transaction.Check(collection, id, a.Get<int64_t>("version"));
  } else if (name == "acknowledge") {
    transaction.Acknowledge(a.Get<std::string>("token"));
  } else if (name == "push") {
    transaction.Push(a.Get<std::string>("queue"), a.Options<PushedMessage>());
  } else {
    outer.Take("unknown part " + name);
  }
}

void AddTransactions(std::map<std::string, Action>& actions) {
  const Action commit = [](Scene& scene, Arguments& a) {
    Transaction transaction = scene.client.transaction();
    for (const char* name : {"parts", "writes", "do", "steps"}) {
      if (const auto* parts = a.Take(name).As<Array>()) {
        for (const Value& part : *parts) AddPart(part, a, scene, transaction);
      }
    }
    return Given(transaction.Commit(a.Options<CommitOptions>()));
  };
  actions["transaction"] = commit;
  actions["transaction.commit"] = commit;
  actions["transactions.read"] = [](Scene& scene, Arguments& a) {
    return Given(scene.client.transactions().Read(a.Get<std::vector<DocumentName>>("documents")));
  };
  actions["transactions.get"] = [](Scene& scene, Arguments& a) {
    return Given(scene.client.transactions().Get(a.Get<std::string>("id")));
  };
  actions["transactions.list"] = [](Scene& scene, Arguments& a) {
    return Listed(scene.client.transactions().List(a.Options<ListTransactionsOptions>()),
                  LimitOf(a));
  };
  actions["transactions.cancel"] = [](Scene& scene, Arguments& a) {
    return Given(
        scene.client.transactions().Cancel(a.Get<std::string>("id"), a.Options<CancelOptions>()));
  };
  actions["transactions.resume"] = [](Scene& scene, Arguments& a) {
    return Given(scene.client.transactions().Resume(a.Get<std::string>("id")));
  };
}

const std::map<std::string, Action>& Actions() {
  static const auto* const kActions = [] {
    auto* actions = new std::map<std::string, Action>();
    AddDocuments(*actions);
    AddClient(*actions);
    AddCollections(*actions);
    AddEnrollments(*actions);
    AddFeed(*actions);
    AddLeases(*actions);
    AddQueues(*actions);
    AddTransactions(*actions);
    return actions;
  }();
  return *kActions;
}

}  // namespace

std::optional<Outcome> Perform(const std::string& operation, Scene& scene, Arguments& arguments) {
  const auto action = Actions().find(operation);
  if (action == Actions().end()) return std::nullopt;
  return action->second(scene, arguments);
}

}  // namespace strata::client
