// Every reason's metadata, driven where the reason is born, is what error_reason.proto says of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <thread>

#include "schemas/feed/subscriptions.h"
#include "schemas/queue/queues.h"
#include "schemas/store/key_codec.h"
#include "schemas/versioning/documents.h"
#include "service/engines/engines.h"
#include "service/server/status_mapping.h"
#include "strata/v1/enrollment_service.grpc.pb.h"
#include "tests/rpc/secured_server.h"
#include "tests/rpc/test_server.h"
#include "tests/rpc/watching.h"
#include "tests/support/await_commit.h"
#include "tests/support/executors.h"
#include "tests/support/single_record_store.h"
#include "tests/support/temporary_directory.h"

namespace strata::rpc_test {
namespace {

using store::Keyspace;
using testing::IsEmpty;
using testing::Not;

std::unique_ptr<store::Store> MemoryStore() {
  return *engines::OpenEngine("memory", engines::OpenOptions());
}

class Metadata : public testing::Test {
 protected:
  Metadata() {
    auto owned = std::make_unique<InterposedStore>(MemoryStore());
    store_ = owned.get();
    server_ = std::make_unique<TestServer>(TestOptions(), std::move(owned));
    Must(server_->Create(R"({"collection": "books", "id": "moby", "request_id": "first",
                             "content": {"json": {"title": "Moby", "stock": 3}}})"));
    for (int i = 0; i < 2; ++i) {
      Must(server_->Update(
          Moby(R"("patch": {"operations": [{"path": "/stock", "increment": 1}]})")));
    }
    Must(server_->Create(R"({"collection": "books", "id": "gone", "content": {"json": {}}})"));
    Must(server_->Delete(R"({"collection": "books", "id": "gone"})"));
  }

  template <typename Response>
  static void Must(const Outcome<Response>& outcome) {
    ASSERT_TRUE(outcome.ok()) << outcome.status.error_message();
  }
  static std::string Moby(const std::string& rest) {
    return R"({"collection": "books", "id": "moby", )" + rest + "}";
  }
  static std::string Patch(const std::string& operation) {
    return Moby(R"("patch": {"operations": [)" + operation + "]}");
  }

  // Takes part in the comparison.
  void Saw(const grpc::Status& status) {
    const Details details = DetailsOf(status);
    ASSERT_FALSE(details.reason.empty()) << status.error_message();
    ExpectDocumentedMetadata(status);
    std::set<std::string>& keys = seen_[details.reason];
    keys.merge(KeysOfReason(details));
  }
  void SawCall(const std::string& method, const std::string& request) {
    SCOPED_TRACE(method + " " + request.substr(0, 200));
    Saw(server_->CallByName(
        (method.find('/') == std::string::npos ? "strata.v1.DocumentService/" : "strata.v1.") +
            method,
        request));
  }
  void SawCommitEndingWith(const absl::Status& status) {
    store_->set_interposer([status](const store::WriteBatch&) {
      store::CommitResult result;
      result.status = status;
      return result;
    });
    SawCall("Update", Moby(R"("replace": {"json": {}}, "max_attempts": 2)"));
    store_->set_interposer(nullptr);
  }
  void Change(Keyspace keyspace, const std::string& key, std::optional<std::string> value) {
    store::WriteBatch batch;
    value ? batch.Put(keyspace, key, *value) : batch.Delete(keyspace, key);
    ASSERT_TRUE(test_support::AwaitCommit(store_->inner(), std::move(batch)).committed);
  }
  std::string FirstKey(Keyspace keyspace) const {
    return std::string(store_->Scan(keyspace, store::Range())->key());
  }

  void DriveRequests();
  void DriveState();
  void DriveTransactions();
  void DriveLeases();
  void DriveQueues();
  void SawToken(const std::string& token);
  void DriveEngines();
  void DriveWaiting();
  void DriveCallers();
  void DriveFeed();
  void DriveDamage();

  InterposedStore* store_ = nullptr;
  std::unique_ptr<TestServer> server_;
  std::map<std::string, std::set<std::string>> seen_;  // keys by reason
};

void Metadata::DriveRequests() {
  SawCall("Get", R"({"collection": "books", "id": ""})");
  SawCall("Diff", Moby(R"("from_version": 1, "page_size": 1001)"));
  SawCall("Update", Moby(""));
  SawCall("Update", Patch(R"({"path": "stock", "unset": true})"));
  SawCall("Update", Patch(R"({"path": "/title", "increment": 1})"));
  SawCall("Update", Moby(R"("replace": {"json": {"a": {"$numberLong": "x"}}})"));
  SawCall("List", R"({"collection": "books", "filter": {"stock": {"$gte2": 1}}})");
  SawCall("List", R"({"collection": "books", "filter": {"stock": {"$regex": ")" +
                      std::string(1025, 'x') + R"("}}})");
  SawCall("List", R"({"collection": "books", "page_token": "x"})");
  std::string deep = "{}";
  for (int level = 0; level < 25; ++level) deep = R"({"a": )" + deep + "}";
  SawCall("Update", Moby(R"("replace": {"json": )" + deep + "}"));
  SawCall("Create", R"({"collection": "books", "id": "moby", "request_id": "first",
                        "content": {"json": {"other": 1}}})");
  const std::string large = R"({"json": {"a": ")" + std::string(1'100'000, 'x') + R"("}})";
  SawCall("Create", R"({"collection": "books", "content": )" + large + "}");
  SawCall("Update", Moby(R"("replace": )" + large));
  SawCall("Update", Moby(R"("patch": {"merge": )" + large + "}"));
  Saw(server_->CallRaw("strata.v1.DocumentService/Get", "\x0A\xFF"));
  Saw(server_->CallRaw("strata.v1.DocumentService/Put", ""));
  Saw(server_->CallByName("grpc.health.v1.Health/Check", R"({"service": "strata.v1.Nothing"})"));

  // A message of a stream is refused in the stream.
  grpc::ClientContext context;
  const auto stub = v1::EnrollmentService::NewStub(server_->channel());
  const auto stream = stub->Apply(&context);
  v1::ApplyRequest message;
  message.set_class_name(std::string(100'000, 'x'));
  v1::ApplyResponse answer;
  ASSERT_TRUE(stream->Write(message));
  ASSERT_TRUE(stream->Read(&answer));
  Error refusal(ErrorReason::kInvalidMessage, answer.error().message());
  ASSERT_EQ(answer.error().reason(), ReasonName(ErrorReason::kInvalidMessage));
  for (const auto& [key, value] : answer.error().metadata())
    refusal.With(key, std::string_view(value));
  Saw(server::ToGrpc(refusal));
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

void Metadata::DriveState() {
  const std::string none = R"({"collection": "books", "id": "none"})";
  SawCall("Update", Moby(R"("precondition": {"version": 1}, "patch": {})"));
  SawCall("Update", Moby(R"("precondition": {"exists": false}, "patch": {})"));
  SawCall("Update", Moby(R"("precondition": {"filter": {"stock": 0}}, "patch": {})"));
  SawCall("Update",
          Moby(R"("precondition": {"newer": {"path": "/title", "value": 1}}, "patch": {})"));
  SawCall("Create", Moby(R"("content": {"json": {}})"));
  SawCall("Get", none);
  SawCall("History", none);
  SawCall("Get", R"({"collection": "books", "id": "gone"})");
  SawCall("Get", Moby(R"("version": 9)"));
  SawCall("Get", Moby(R"("at_time": "1980-01-01T00:00:00Z")"));
  SawCall("Get", Moby(R"("at_position": 0)"));
  SawCall("Get", Moby(R"("at_position": 1)"));  // of an earlier life
  SawCall("Get", Moby(R"("at_position": 9000000000000000000)"));
  SawCall("Restore", Moby(R"("version": 9)"));
  SawCall("Diff", Moby(R"("from_version": 1, "to_version": 9)"));
  SawCall("List", R"({"collection": "none"})");
  const std::string deletion = "CollectionService/DeleteCollection";
  SawCall("CollectionService/CreateCollection", R"({"name": "books"})");
  SawCall(deletion, R"({"name": "books"})");
  SawCall(deletion, R"({"name": "books", "force": true, "incarnation": 99})");
  Must(server_->CreateCollection(R"({"name": "short"})"));
  Must(server_->DeleteCollection(R"({"name": "short", "request_id": "r"})"));
  SawCall(deletion, R"({"name": "short", "request_id": "r", "force": true})");
  Must(server_->Create(R"({"collection": "students", "id": "1",
                           "content": {"json": {"classes": "none"}}})"));
  const std::string enroll = R"("class_name": "CS 101", "sequence_number": 1})";
  SawCall("EnrollmentService/Enroll", R"({"student_id": "1", )" + enroll);
  Must(server_->Delete(R"({"collection": "students", "id": "1"})"));
  SawCall("EnrollmentService/Enroll", R"({"student_id": "1", )" + enroll);
  app::ServerOptions small = TestOptions();
  small.collections_max = 1;
  TestServer full(small);
  Must(full.CreateCollection(R"({"name": "one"})"));
  Saw(full.CreateCollection(R"({"name": "two"})").status);
  Saw(full.Create(R"({"collection": "two", "content": {"json": {}}})").status);
}

void Metadata::DriveTransactions() {
  const std::string moby = R"({"update": {"collection": "books", "id": "moby", "patch": {}}})";
  const std::string done = R"({"request_id": "t1", "writes": [)" + moby + "]}";
  Must(server_->Commit(done));
  SawCall("TransactionService/GetTransaction", R"({"id": "none"})");
  SawCall("TransactionService/CancelTransaction", R"({"id": "t1"})");
  SawCall("TransactionService/Commit", R"({"writes": [)" + moby + ", " + moby + "]}");
  SawCall("TransactionService/Commit",
          R"({"writes": [{"update": {"collection": "books", "id": "moby", "patch": {},
                                     "precondition": {"version": 99}}}]})");

  // One that others cancelled, asked for again.
  const std::unique_ptr<store::Store> memory = MemoryStore();
  const std::string create =
      R"({"request_id": "t1", "mode": "TRANSACTION_MODE_TWO_PHASE",
          "writes": [{"create": {"collection": "books", "id": "x", "content": {"json": {}}}}]})";
  {
    app::ServerOptions holding = TestOptions();
    holding.transactions.hold_after = transaction::HoldAfter::kPending;
    TestServer held(holding, std::make_unique<test_support::SingleRecordStore>(*memory));
    Saw(held.Commit(create).status);  // once it is held
    const auto found = held.GetTransaction(R"({"id": "t1"})");
    ASSERT_EQ(found.response.transaction().status(), v1::TRANSACTION_STATUS_PENDING);
  }
  TestServer later(TestOptions(), std::make_unique<test_support::SingleRecordStore>(*memory));
  Must(later.CancelTransaction(R"({"id": "t1", "change": {"actor": "anna"}})"));
  Saw(later.Commit(create).status);
}

void Metadata::DriveLeases() {
  const auto acquired = server_->Acquire(R"({"name": "jobs", "holder": "anna"})");
  Must(acquired);
  const std::string token = std::to_string(acquired.response.lease().token());
  const auto update = [&](const std::string& lease) {
    SawCall("Update", Moby(R"("patch": {}, "lease": {"name": "jobs", "token": )" + lease + "}"));
  };
  SawCall("LeaseService/Acquire", R"({"name": "jobs", "holder": "bob"})");
  SawCall("LeaseService/GetLease", R"({"name": "none"})");
  update("1");
  update(token + R"(, "position": 9223372036854775807)");
  update(token + R"(, "position": 2, "index": 1, "after_position": 1, "after_index": 0)");
  Must(server_->Update(Moby(R"("patch": {}, "lease": {"name": "jobs", "position": 2, "index": 1,
                                                      "token": )" +
                            token + "}")));
  update(token + R"(, "position": 2, "index": 1)");
  update(token + R"(, "position": 3, "index": 1, "after_position": 2, "after_index": 2)");
}

// What becomes of a token by itself, and of one in a commit.
void Metadata::SawToken(const std::string& token) {
  const auto answered = server_->Acknowledge(R"({"tokens": [")" + token + "\"]}");
  Must(answered);
  const v1::ApplyError& refused = answered.response.results(0).error();
  const std::string reason = refused.reason();
  for (const ErrorReason known : AllErrorReasons()) {
    if (ReasonName(known) != reason) continue;
    Error error(known, refused.message());
    for (const auto& [key, value] : refused.metadata()) error.With(key, std::string_view(value));
    Saw(server::ToGrpc(error));
  }
  SawCall("TransactionService/Commit", R"({"acknowledge": [")" + token + R"("], "writes": [)" +
                                           R"({"update": )" + Moby(R"("patch": {})") + "}]}");
}

void Metadata::DriveQueues() {
  const std::string mails = R"({"name": "mails"})";
  Must(server_->CreateQueue(R"({"name": "mails", "settings": {"history_retention": "60s"}})"));
  SawCall("QueueService/CreateQueue", mails);
  SawCall("QueueService/Pop", R"({"queue": "none"})");
  SawCall("TransactionService/Commit", R"({"pushes": [{"queue": "none"}], "writes": [{"update": )" +
                                           Moby(R"("patch": {})") + "}]}");
  SawCall("QueueService/Push", R"({"queue": "mails", "messages": [{"payload": {"json": {"a": ")" +
                                   std::string(1'100'000, 'x') + R"("}}}]})");
  Must(server_->Push(R"({"queue": "mails", "messages": [{"request_id": "first"}]})"));
  SawCall("QueueService/DeleteQueue", mails);
  SawCall("QueueService/Push",
          R"({"queue": "mails", "messages": [{"request_id": "first", "priority": 1}]})");
  const auto reserved = server_->Reserve(R"({"queue": "mails"})");
  Must(reserved);
  ASSERT_EQ(reserved.response.messages_size(), 1);
  queue::Token token = *queue::Token::FromText("", reserved.response.messages(0).token());
  ++token.delivery;
  SawToken(token.ToText());
  --token.delivery;
  ++token.timeline;
  SawToken(token.ToText());
  SawToken(queue::Token{"mails", queue::MessageId(), 1, 0}.ToText());
  --token.timeline;
  Must(server_->Acknowledge(R"({"tokens": [")" + token.ToText() + "\"]}"));
  SawCall("TransactionService/Commit", R"({"acknowledge": [")" + token.ToText() +
                                           R"("], "writes": [{"update": )" +
                                           Moby(R"("patch": {})") + "}]}");
  SawCall("QueueService/GetMessage",
          R"({"queue": "mails", "message_id": "00000000000000000000000000000000"})");
  SawCall("QueueService/CreateSchedule",
          R"({"queue": "mails", "name": "hourly", "cron": "60 * * * *"})");
  SawCall("QueueService/DeleteSchedule", R"({"queue": "mails", "name": "hourly"})");

  const std::unique_ptr<store::Store> memory = MemoryStore();
  test_support::InlineExecutor executor;
  queue::Queues full(*memory, Clock::System(), Entropy::System(), executor, {.queues_max = 1});
  full.Create("one", {}, queue::kNoDeadline, [](const absl::StatusOr<queue::Queue>& queue) {
    EXPECT_TRUE(queue.ok()) << queue.status();
  });
  full.Create("two", {}, queue::kNoDeadline, [&](const absl::StatusOr<queue::Queue>& queue) {
    Saw(server::ToGrpc(queue.status()));
  });

  const std::unique_ptr<store::Store> other = MemoryStore();
  TestServer single(TestOptions(), std::make_unique<test_support::SingleRecordStore>(*other));
  Must(single.CreateQueue(mails));
  Saw(single.Push(R"({"queue": "mails", "messages": [{"ordering_key": "k"}]})").status);
}

void Metadata::DriveEngines() {
  SawCommitEndingWith(Error(ErrorReason::kStoreUnavailable, "storage is full"));
  SawCommitEndingWith(Error(ErrorReason::kOutcomeUnknown, "storage failed"));
  SawCommitEndingWith(Error(ErrorReason::kOverloaded, "too many commits wait"));
  // Of what is in flight, which takes several callers; tests/server/admission_test.cc makes them.
  SawCommitEndingWith(Error(ErrorReason::kOverloaded, "too much is in flight").With("limit", 1));
  SawCommitEndingWith(Error(ErrorReason::kOverloaded, "more than a share").With("share", 1));
  SawCommitEndingWith(absl::InternalError("a bug"));
  SawCommitEndingWith(absl::OkStatus());  // not committed: a lost race

  const std::unique_ptr<store::Store> memory = MemoryStore();
  TestServer single(TestOptions(), std::make_unique<test_support::SingleRecordStore>(*memory));
  Saw(single.Audit("{}").status);

  const test_support::TemporaryDirectory directory;
  engines::OpenOptions options;
  options.directory = directory.Join("data");
  const auto rocksdb = engines::OpenEngine("rocksdb", options);
  ASSERT_TRUE(rocksdb.ok());
  store::WriteBatch large;
  large.Put(Keyspace::kMeta, "large", std::string(size_t{33} << 20, 'x'));
  Saw(server::ToGrpc(test_support::AwaitCommit(**rocksdb, std::move(large)).status));

  engines::OpenOptions full;
  full.directory = directory.Join("full");
  full.values["disk-reserve-mib"] = "1073741824";
  const auto refusing = engines::OpenEngine("rocksdb", full);
  ASSERT_TRUE(refusing.ok());
  store::WriteBatch small;
  small.Put(Keyspace::kMeta, "small", "x");
  Saw(server::ToGrpc(test_support::AwaitCommit(**refusing, std::move(small)).status));

  Must(server_->CreateCollection(R"({"name": "c", "strategy": "STRATEGY_EMBEDDED_HISTORY"})"));
  for (int i = 0; seen_["LAYOUT_LIMIT"].count("strategy") == 0; ++i) {
    ASSERT_LT(i, 20);
    const auto made = server_->Update(
        R"({"collection": "c", "id": "x", "allow_missing": true, "omit_content": true,
            "replace": {"json": {"a": ")" +
        std::string(1, static_cast<char>('a' + i)) + std::string(1'000'000, 'x') + R"("}}})");
    if (!made.ok()) Saw(made.status);
  }
}

// What ends while others wait: a deadline, the server.
void Metadata::DriveWaiting() {
  const std::unique_ptr<store::Store> memory = MemoryStore();
  test_support::InlineExecutor executor;
  versioning::Documents documents(*memory, Clock::System(), Entropy::System(), executor, {});
  versioning::WriteRequest late;
  late.name = {"books", "late"};
  late.deadline = std::chrono::steady_clock::time_point::min();
  documents.Delete(late, [&](const absl::StatusOr<versioning::WriteResult>& result) {
    Saw(server::ToGrpc(result.status()));
  });

  TestServer closing;
  grpc::ClientContext context;
  const auto stub = v1::EnrollmentService::NewStub(closing.channel());
  const auto stream = stub->Apply(&context);
  v1::ApplyResponse answer;
  stream->Write(v1::ApplyRequest());
  ASSERT_TRUE(stream->Read(&answer));
  std::thread closer([&] { closing.server().Shutdown(); });
  EXPECT_FALSE(stream->Read(&answer));
  Saw(stream->Finish());
  closer.join();
}

void Metadata::DriveCallers() {
  const SecuredServer known(
      R"({"principals": ["user:*"], "role": "writer", "resources": ["collection/*"]})",
      {"anna", "slow"}, R"({"principals": ["user:slow"], "calls_per_second": 1})");
  const auto saw = [&](const std::string& authorization, std::string_view method,
                       std::string_view json) {
    Saw(CallAnything(known.Connect({}), "strata.v1." + std::string(method), json, authorization)
            .status);
  };
  const std::string anna = "Bearer " + known.token("anna");
  saw("", "CollectionService/ListCollections", "{}");
  saw("Bearer wrong", "CollectionService/ListCollections", "{}");
  saw(anna, "CollectionService/GetLedgerHead", "{}");
  saw(anna, "DocumentService/Create",
      R"({"collection": "books", "id": "x", "content": {"json": {}}, "change": {"actor": "bob"}})");
  grpc::Status status;
  const auto channel = known.Connect({});
  const std::string slow = "Bearer " + known.token("slow");
  do {
    status =
        CallAnything(channel, "strata.v1.CollectionService/ListCollections", "{}", slow).status;
  } while (status.ok());
  Saw(status);
}

// Places in the feed that there are no more, and not yet; subscriptions.
void Metadata::DriveFeed() {
  const std::string mail = R"({"name": "mail"})";
  SawCall("FeedService/GetSubscription", mail);
  Must(server_->CreateSubscription(mail));
  SawCall("FeedService/CreateSubscription", mail);
  for (int64_t i = 1; i < feed::kSubscriptionsMax; ++i) {
    Must(server_->CreateSubscription(R"({"name": "s)" + std::to_string(i) + "\"}"));
  }
  SawCall("FeedService/CreateSubscription", R"({"name": "one too many"})");
  for (const char* const place : {"1", "9223372036854775807"}) {
    Watching watching(*server_, R"({"after_position": ")" + std::string(place) + "\"}");
    Saw(watching.AwaitEnd());
  }
}

// Last, since nothing is whole after it.
void Metadata::DriveDamage() {
  Change(Keyspace::kVersions, store::VersionKey(1, "moby", 2), std::nullopt);
  grpc::ClientContext context;
  const auto reader = server_->collections().Verify(
      &context, Parse<v1::VerifyRequest>(R"({"collection": "books"})"));
  v1::VerifyResponse found;
  while (reader->Read(&found)) {
  }
  Saw(reader->Finish());

  for (auto cursor = store_->Scan(Keyspace::kLedger, store::Range()); cursor->Valid();
       cursor->Next()) {
    Change(Keyspace::kLedger, std::string(cursor->key()), std::nullopt);
  }
  SawCall("Audit", R"({"collection": "books", "id": "gone"})");
  SawCall("Get", Moby(R"("version": 2)"));
  Change(Keyspace::kHeads, FirstKey(Keyspace::kHeads), "damaged");
  SawCall("List", R"({"collection": "books"})");
  Change(Keyspace::kCollections, "books", "damaged");
  SawCall("List", R"({"collection": "books"})");
}

TEST_F(Metadata, OfEachReasonIsWhatItsCommentSays) {
  DriveRequests();
  DriveState();
  DriveTransactions();
  DriveLeases();
  DriveQueues();
  DriveFeed();
  DriveEngines();
  DriveWaiting();
  DriveCallers();
  DriveDamage();
  for (const auto& [reason, documented] : AllDocumentedMetadata()) {
    // Who gave up hears no answer.
    if (reason == "UNSPECIFIED" || reason == "CANCELLED") continue;
    ASSERT_EQ(seen_.count(reason), 1u) << reason << " was not driven";
    EXPECT_EQ(seen_[reason], documented.all()) << reason;
  }
}

// The comments are read as they are meant.
TEST(DocumentedMetadata, IsReadFromTheComments) {
  const auto& all = AllDocumentedMetadata();
  EXPECT_EQ(all.size(), AllErrorReasons().size());
  EXPECT_EQ(all.at("VERSION_CONFLICT").always,
            (std::set<std::string>{"actual", "collection", "expected", "id"}));
  EXPECT_THAT(all.at("VERSION_CONFLICT").sometimes, IsEmpty());
  EXPECT_EQ(all.at("VERSION_NOT_FOUND").always,
            (std::set<std::string>{"actual", "collection", "id"}));
  EXPECT_EQ(all.at("VERSION_NOT_FOUND").sometimes,
            (std::set<std::string>{"first_position", "first_time", "position", "time", "version"}));
  EXPECT_THAT(all.at("RECORD_CORRUPT").always, IsEmpty());
  EXPECT_THAT(all.at("RECORD_CORRUPT").sometimes, Not(IsEmpty()));
  EXPECT_THAT(all.at("INTERNAL").all(), IsEmpty());
}

}  // namespace
}  // namespace strata::rpc_test
