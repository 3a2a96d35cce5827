// Documents, collections, transactions, leases and queues' calls over the real server.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "strata/client/client.h"
#include "strata/client/typed.h"
#include "tests/client/serving.h"

namespace strata::client {

struct Book {
  std::string title;
  int64_t stock = 0;
};

Value ToValue(const Book& book) { return Object{{"title", book.title}, {"stock", book.stock}}; }

absl::Status FromValue(const Value& value, Book* book) {
  const auto* title = value["title"].As<std::string>();
  const auto stock = value["stock"].AsInteger();
  if (title == nullptr || !stock) return absl::InvalidArgumentError("no book");
  *book = {*title, *stock};
  return absl::OkStatus();
}

namespace {

using Documents = Serving;

TEST_F(Documents, AreWrittenReadAndLookedBackAt) {
  const Collection books = client_->collection("books");
  const Value moby = Object{{"title", "Moby Dick"}, {"stock", int64_t{3}}, {"a", Date{7}}};
  const auto created = books.Create("moby", moby, {.reason = "catalogue"});
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_EQ(created->document.version, 1);
  EXPECT_EQ(*created->document.content, moby);
  EXPECT_TRUE(created->changed);

  const auto again = books.Create("moby", moby);
  EXPECT_EQ(ReasonOf(again.status()), Reason::kDocumentExists);

  const auto sold = books.Update("moby", Patch({Increment("/stock", -1), Set("/sold", true)}),
                                 {.if_version = 1, .reason = "sold"});
  ASSERT_TRUE(sold.ok()) << sold.status();
  EXPECT_EQ(*(*sold->document.content)["stock"].AsInteger(), 2);
  const auto late = books.Update("moby", Merge(Object{{"x", 1}}), {.if_version = 1});
  ASSERT_FALSE(late.ok());
  const Error error = ErrorOf(late.status());
  EXPECT_EQ(error.reason, Reason::kVersionConflict);
  EXPECT_EQ(error.metadata.at("actual"), "2");
  EXPECT_FALSE(error.request_id.empty());
  EXPECT_FALSE(error.outcome_unknown);

  ASSERT_TRUE(books.Delete("moby").ok());
  const auto deleted = books.Get("moby");
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_FALSE(deleted->has_value());
  EXPECT_EQ(*(*books.Get("moby", {.version = 1}))->content, moby);
  EXPECT_EQ(ReasonOf(books.Get("moby", {.version = 9}).status()), Reason::kVersionNotFound);
  ASSERT_TRUE(books.Restore("moby", 1).ok());

  auto history = books.History("moby", {.include_content = true, .page_size = 1});
  std::vector<int64_t> versions;
  while (const auto version = history.Next()) {
    versions.push_back(version->version);
    EXPECT_EQ(version->change.actor, "ann");
    EXPECT_EQ(version->content.has_value(), version->kind != VersionKind::kDeleted);
  }
  EXPECT_TRUE(history.status().ok()) << history.status();
  EXPECT_EQ(versions, (std::vector<int64_t>{4, 3, 2, 1}));

  const auto changes = All(books.Diff("moby", 1, 2));
  ASSERT_TRUE(changes.ok()) << changes.status();
  ASSERT_EQ(changes->size(), 2u);
  EXPECT_EQ((*changes)[0].path, "/stock");
  EXPECT_EQ(*(*changes)[0].before->AsInteger(), 3);
  EXPECT_EQ(All(client_->Audit({.newest_first = true}))->size(), 4u);
  EXPECT_EQ(All(books.List({.filter = Object{{"stock", Object{{"$gt", 0}}}}}))->size(), 1u);
  EXPECT_FALSE(All(books.History("nobody")).ok());
  const auto batch = books.BatchGet({"moby", "nobody"});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->documents.size(), 1u);
  EXPECT_EQ(batch->missing_ids, (std::vector<std::string>{"nobody"}));
}

TEST_F(Documents, WhatCannotBeSentIsRefusedWithoutACall) {
  const Collection books = client_->collection("books");
  const Value bad = Object{{"a", Array{0.0 / 0.0}}};
  EXPECT_EQ(ErrorOf(books.Create("a", bad).status()).metadata["path"], "/a/0");
  EXPECT_EQ(ErrorOf(books.CreateAsync("a", bad).get().status()).metadata["path"], "/a/0");
  EXPECT_FALSE(books.Update("a", Change()).ok());
  EXPECT_EQ(ErrorOf(books.Update("a", Patch({Set("/x", bad)})).status()).metadata["path"],
            "/x/a/0");
  EXPECT_EQ(ErrorOf(books.Update("a", Patch({Append("/x", {Object{{"b", "\xff"}}})})).status())
                .metadata["path"],
            "/x/b");
  EXPECT_FALSE(All(books.List({.filter = bad})).ok());
  EXPECT_FALSE(client_->transaction().Create("books", "a", bad).Commit().ok());
  EXPECT_EQ(All(client_->Audit())->size(), 0u);
  EXPECT_FALSE(Client::Connect({.target = "http://localhost:1"}).ok());
  EXPECT_FALSE(Client::Connect({.target = "example.org", .token = "secret"}).ok());
  EXPECT_FALSE(Client::Connect({.tls = Tls{.authorities = "/nowhere"}}).ok());
}

TEST_F(Documents, ModifyCreatesChangesLeavesAndGivesUp) {
  const Collection books = client_->collection("books");
  const auto increment = [](std::optional<Value> content) -> std::optional<Value> {
    Value next = content.value_or(Object{{"n", 0}});
    next["n"] = *next["n"].AsInteger() + 1;
    return next;
  };
  EXPECT_EQ(books.Modify("a", increment)->document.version, 1);
  EXPECT_EQ(books.Modify("a", increment)->document.version, 2);
  ASSERT_TRUE(books.Delete("a").ok());
  const auto revived = books.Modify("a", increment, {.reason = "back"});
  ASSERT_TRUE(revived.ok()) << revived.status();
  EXPECT_EQ(*revived->document.content, Value(Object{{"n", int64_t{1}}}));

  const auto left = books.Modify("a", [](auto) { return std::optional<Value>(); });
  ASSERT_TRUE(left.ok());
  EXPECT_FALSE(left->changed);
  EXPECT_EQ(left->document.version, 4);
  const auto given_up = books.Modify(
      "a", [](auto) -> absl::StatusOr<std::optional<Value>> { return absl::AbortedError("no"); });
  EXPECT_EQ(given_up.status().message(), "no");
  EXPECT_EQ((*books.Get("a"))->version, 4);
  EXPECT_EQ(books.ModifyAsync("a", increment).get()->document.version, 5);
}

TEST_F(Documents, ALostRaceIsRunAgain) {
  const Collection books = client_->collection("books");
  int calls = 0;
  const auto written = books.Modify("a", [&](std::optional<Value> content) -> std::optional<Value> {
    if (++calls <= 3) {
      EXPECT_TRUE(books.Update("a", Merge(Object{{"x", calls}}), {.allow_missing = true}).ok());
    }
    return Object{{"seen", content.has_value() ? *content : Value()}};
  });
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(*written->document.content->At("/seen/x"), Value(3));
}

TEST_F(Documents, ManyFuturesAreUnderWayAtOnce) {
  const Collection books = client_->collection("books");
  std::vector<std::future<absl::StatusOr<Written>>> futures;
  for (int i = 0; i < 300; ++i) {
    futures.push_back(books.CreateAsync("b" + std::to_string(i), Object{{"i", i}}));
  }
  for (auto& future : futures) EXPECT_TRUE(future.get().ok());
  EXPECT_FALSE(books.GetAsync("nobody").get()->has_value());
  EXPECT_EQ(*(*books.GetAsync("b7").get())->content, Value(Object{{"i", 7}}));
  EXPECT_TRUE(books.UpdateAsync("b7", Replace(Object{{"i", 8}})).get().ok());
  EXPECT_TRUE(books.DeleteAsync("b7").get().ok());
  EXPECT_TRUE(books.RestoreAsync("b7", 1).get().ok());
}

TEST_F(Documents, CallsUnderWayEndWithTheClient) {
  // Nobody is there, so the call would be made again for a minute.
  std::future<absl::StatusOr<Written>> future;
  {
    const auto client = Client::Connect({.target = "127.0.0.1:1", .retry_for = absl::Minutes(1)});
    ASSERT_TRUE(client.ok());
    future = client->collection("books").CreateAsync("a", Object{});
  }
  const auto written = future.get();
  ASSERT_FALSE(written.ok());
  EXPECT_TRUE(ErrorOf(written.status()).outcome_unknown);
}

TEST_F(Documents, WithoutAServerACallEndsSoonAndDidNothing) {
  const auto client =
      Client::Connect({.target = "127.0.0.1:1", .connect_timeout = absl::Milliseconds(300)});
  const absl::Time begun = absl::Now();
  const auto written = client->collection("books").Create("a", Object{}, {.request_id = "r"});
  const Error error = ErrorOf(written.status());
  EXPECT_EQ(error.code, absl::StatusCode::kUnavailable);
  EXPECT_EQ(error.reason, Reason::kNone);
  EXPECT_FALSE(error.outcome_unknown);
  EXPECT_EQ(error.request_id, "r");
  EXPECT_NE(error.message.find("no connection to 127.0.0.1:1: is stratad running there?"),
            std::string::npos)
      << error.message;
  auto watch = client->collection("books").Watch(WatchOptions());
  EXPECT_FALSE(watch.Next().has_value());
  EXPECT_EQ(watch.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_LT(absl::Now() - begun, absl::Seconds(10));
}

TEST_F(Documents, AreTypedByTwoFunctions) {
  const auto books = client_->collection("books").Of<Book>();
  ASSERT_TRUE(books.Create("moby", {"Moby Dick", 3}).ok());
  const auto sold = books.Modify("moby", [](std::optional<Book> book) -> std::optional<Book> {
    --book->stock;
    return book;
  });
  ASSERT_TRUE(sold.ok()) << sold.status();
  EXPECT_EQ((*books.Get("moby"))->content.stock, 2);
  EXPECT_EQ((*books.Get("moby"))->document.version, 2);
  EXPECT_FALSE(books.Get("nobody")->has_value());
  EXPECT_EQ(All(books.List())->size(), 1u);
  ASSERT_TRUE(books.untyped().Create("z", Object{{"no", "book"}}).ok());
  EXPECT_EQ(books.Get("z").status().message(), "no book");
  EXPECT_FALSE(All(books.List()).ok());
}

TEST_F(Documents, CollectionsAreMadeVerifiedAndDeleted) {
  const Collections collections = client_->collections();
  const auto made = collections.Create(
      "books",
      {.strategy = Strategy::kDeltas, .options = CollectionOptions{.keyframe_interval = 4}});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->options.keyframe_interval, 4);
  ASSERT_TRUE(client_->collection("books").Create("a", Object{{"x", 1}}).ok());
  EXPECT_TRUE(collections.Get("books")->statistics.has_value());
  EXPECT_EQ(All(collections.List())->size(), 1u);
  const auto progress = All(collections.Verify("books"));
  ASSERT_TRUE(progress.ok()) << progress.status();
  EXPECT_TRUE(progress->back().complete);
  EXPECT_EQ(progress->back().versions, 1);
  EXPECT_EQ(collections.GetLedgerHead()->hash.size(), 32u);
  EXPECT_EQ(ReasonOf(collections.Delete("books").status()), Reason::kCollectionNotEmpty);
  EXPECT_FALSE(*collections.Delete("books", {.force = true, .request_id = "gone"}));
  EXPECT_TRUE(*collections.Delete("books", {.force = true, .request_id = "gone"}));
  EXPECT_FALSE(client_->GetServerInfo()->version.empty());
}

TEST_F(Documents, TransactionsTakeEffectTogether) {
  const Collection accounts = client_->collection("accounts");
  ASSERT_TRUE(accounts.Create("a", Object{{"balance", 10}}).ok());
  ASSERT_TRUE(accounts.Create("b", Object{{"balance", 0}}).ok());
  Transaction transaction = client_->transaction();
  transaction.Update("accounts", "a", Patch({Increment("/balance", -5)}), {.if_version = 1})
      .Update("accounts", "b", Patch({Increment("/balance", 5)}))
      .Create("accounts", "c", Object{})
      .Check("accounts", "nobody", 0);
  const auto committed = transaction.Commit({.reason = "rent"});
  ASSERT_TRUE(committed.ok()) << committed.status();
  EXPECT_EQ(committed->results.size(), 3u);
  EXPECT_EQ(*committed->results[0].document.content->At("/balance")->AsInteger(), 5);
  EXPECT_TRUE(transaction.Commit({.reason = "rent"})->replayed);
  const auto read = client_->transactions().Read({{"accounts", "b"}, {"accounts", "nobody"}});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->documents.size(), 1u);
  EXPECT_EQ(read->missing.size(), 1u);
  const auto known = client_->transactions().Get(committed->transaction_id);
  ASSERT_TRUE(known.ok()) << known.status();
  EXPECT_EQ(known->change.reason, "rent");
  EXPECT_EQ(All(client_->transactions().List())->size(), 1u);
  EXPECT_EQ(ReasonOf(client_->transactions().Cancel(known->id).status()),
            Reason::kTransactionApplied);
}

TEST_F(Documents, WhatIsOfAWholeTransactionIsRefusedInAPart) {
  const auto refused = [&](const UpdateOptions& options) {
    return client_->transaction()
        .Update("accounts", "a", Replace(Object{}), options)
        .Commit()
        .status();
  };
  for (const auto& [options, name] : std::vector<std::pair<UpdateOptions, std::string>>{
           {{.max_attempts = 2}, "max_attempts"},
           {{.request_id = "r"}, "request_id"},
           {{.validate_only = true}, "validate_only"},
           {{.omit_content = true}, "omit_content"}}) {
    const Error error = ErrorOf(refused(options));
    EXPECT_EQ(error.reason, Reason::kInvalidField);
    EXPECT_EQ(error.metadata.at("field"), name);
  }
}

TEST_F(Documents, LeasesAreHeldAndFenceWrites) {
  const Leases leases = client_->leases();
  const auto lease = leases.Acquire("jobs", "w1", {.ttl = absl::Seconds(60)});
  ASSERT_TRUE(lease.ok()) << lease.status();
  EXPECT_EQ(lease->ttl, absl::Seconds(60));
  // At once, although RetryInfo says when it expires.
  const absl::Time before = absl::Now();
  const auto held = leases.Acquire("jobs", "w2");
  EXPECT_EQ(ReasonOf(held.status()), Reason::kLeaseHeld);
  EXPECT_TRUE(ErrorOf(held.status()).retry_delay.has_value());
  EXPECT_LT(absl::Now() - before, absl::Seconds(5));
  EXPECT_TRUE(leases.Renew("jobs", lease->token)->expire_time >= lease->expire_time);
  const Collection books = client_->collection("books");
  EXPECT_TRUE(
      books.Create("a", Object{}, {.lease = LeaseToken{.name = "jobs", .token = lease->token}})
          .ok());
  ASSERT_TRUE(leases.Release("jobs", lease->token).ok());
  EXPECT_EQ(
      ReasonOf(
          books.Create("b", Object{}, {.lease = LeaseToken{.name = "jobs", .token = lease->token}})
              .status()),
      Reason::kLeaseLost);
  EXPECT_TRUE(leases.Get("jobs")->holder.empty());
  EXPECT_EQ(All(leases.List())->size(), 1u);
}

TEST_F(Documents, QueuesHandMessagesOut) {
  const Queues queues = client_->queues();
  ASSERT_TRUE(queues.Create("mails", {.max_tries = 3}).ok());
  const auto pushed = queues.Push(
      "mails", {.payload = Object{{"to", "ann"}}, .headers = {{"h", "1"}}, .sequence_number = 7});
  ASSERT_TRUE(pushed.ok()) << pushed.status();
  EXPECT_EQ(*queues.Message("mails", pushed->message_id)->payload, Value(Object{{"to", "ann"}}));
  EXPECT_EQ(All(queues.Messages("mails"))->size(), 1u);
  const auto reserved = queues.Reserve("mails", {.wait = absl::Seconds(1)});
  ASSERT_TRUE(reserved.ok() && reserved->size() == 1) << reserved.status();
  EXPECT_EQ(reserved->front().sequence_number, 7);
  EXPECT_TRUE(queues.Extend({reserved->front().token})->front().status.ok());
  EXPECT_TRUE(queues.Rollback({reserved->front().token}, {.delay = absl::ZeroDuration()})
                  ->front()
                  .status.ok());
  EXPECT_EQ(ReasonOf(queues.Acknowledge({reserved->front().token})->front().status),
            Reason::kReservationLost);
  EXPECT_EQ(queues.Pop("mails", {.wait = absl::Seconds(5)})->size(), 1u);
  EXPECT_EQ(queues.Get("mails")->counts->pushed, 1);
  EXPECT_TRUE(queues.Update("mails", {.paused = true}, {"paused"})->settings.paused);
  EXPECT_EQ(All(queues.List())->size(), 1u);
  const auto schedule = queues.schedules().Create("mails", "nightly", {.cron = "0 6 * * *"});
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(schedule->cron, "0 6 * * *");
  EXPECT_EQ(All(queues.schedules().List("mails"))->size(), 1u);
  EXPECT_TRUE(queues.schedules().Delete("mails", "nightly").ok());
  EXPECT_EQ(queues.Purge("mails", {.states = {MessageState::kReady}})->messages, 0);
  EXPECT_TRUE(queues.Delete("mails").ok());
  EXPECT_EQ(ReasonOf(queues.Get("mails").status()), Reason::kQueueNotFound);
}

}  // namespace
}  // namespace strata::client
