// TransactionService over a real socket: what each RPC does, and for whom.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "schemas/store/single_record_store.h"
#include "service/engines/engines.h"
#include "strata/v1/transaction_service.pb.h"
#include "tests/rpc/secured_server.h"
#include "tests/rpc/test_server.h"

namespace strata::rpc_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

std::string Account(const std::string& id, int balance) {
  return R"({"collection": "accounts", "id": ")" + id + R"(", "content": {"json": {"balance": )" +
         std::to_string(balance) + "}}}";
}

// One write: adds to the balance.
std::string Add(const std::string& id, int amount, const std::string& rest = "") {
  return R"({"update": {"collection": "accounts", "id": ")" + id +
         R"(", "patch": {"operations": [{"path": "/balance", "increment": )" +
         std::to_string(amount) + "}]}" + rest + "}}";
}

// A transfer of 100 from a to b.
std::string Transfer(const std::string& rest) {
  return R"({"writes": [)" + Add("a", -100) + ", " + Add("b", 100) + "], " + rest + "}";
}

double BalanceOf(const v1::Document& document) {
  return document.content().json().fields().at("balance").number_value();
}

class Transactions : public testing::Test {
 protected:
  explicit Transactions(const app::ServerOptions& options = TestOptions()) : server_(options) {
    EXPECT_TRUE(server_.Create(Account("a", 300)).ok());
    EXPECT_TRUE(server_.Create(Account("b", 50)).ok());
  }

  v1::Document Get(const std::string& id) {
    const auto got = server_.Get(R"({"collection": "accounts", "id": ")" + id + R"("})");
    EXPECT_TRUE(got.ok()) << got.status.error_message();
    return got.response.document();
  }

  v1::Transaction Find(const std::string& id) {
    const auto found = server_.GetTransaction(R"({"id": ")" + id + R"("})");
    EXPECT_TRUE(found.ok()) << found.status.error_message();
    return found.response.transaction();
  }

  TestServer server_;
};

TEST_F(Transactions, ATransferIsOneCommitUnderOneId) {
  const auto done = server_.Commit(Transfer(R"("request_id": "t1", "change": {"reason": "rent"})"));
  ASSERT_TRUE(done.ok()) << done.status.error_message();
  const v1::CommitResponse& response = done.response;
  EXPECT_EQ(response.transaction_id(), "t1");
  EXPECT_GT(response.commit_position(), 0);
  EXPECT_EQ(response.attempts(), 1);
  EXPECT_FALSE(response.replayed());
  ASSERT_EQ(response.results_size(), 2);
  EXPECT_EQ(response.results(0).document().id(), "a");
  EXPECT_EQ(BalanceOf(response.results(0).document()), 200);
  EXPECT_EQ(BalanceOf(response.results(1).document()), 150);
  for (const v1::CommitResult& result : response.results()) {
    EXPECT_TRUE(result.changed());
    EXPECT_EQ(result.document().version(), 2);
    EXPECT_EQ(result.enrollment(), v1::ENROLLMENT_RESULT_UNSPECIFIED);
  }
  EXPECT_EQ(BalanceOf(Get("a")), 200);
  const auto audit = server_.Audit(R"({"transaction_id": "t1"})");
  ASSERT_TRUE(audit.ok()) << audit.status.error_message();
  ASSERT_EQ(audit.response.entries_size(), 2);
  for (const v1::AuditEntry& entry : audit.response.entries()) {
    EXPECT_EQ(entry.commit_position(), response.commit_position());
    EXPECT_EQ(entry.version().transaction_id(), "t1");
    EXPECT_EQ(entry.version().change().reason(), "rent");
  }
}

TEST_F(Transactions, ARepeatedCallAnswersWhatTheFirstDid) {
  const std::string request = Transfer(R"("request_id": "t1")");
  const auto first = server_.Commit(request);
  ASSERT_TRUE(first.ok()) << first.status.error_message();
  const auto again = server_.Commit(request);
  ASSERT_TRUE(again.ok()) << again.status.error_message();
  EXPECT_TRUE(again.response.replayed());
  EXPECT_EQ(again.response.transaction_id(), "t1");
  EXPECT_EQ(again.response.commit_position(), first.response.commit_position());
  ASSERT_EQ(again.response.results_size(), 2);
  EXPECT_EQ(BalanceOf(again.response.results(0).document()), 200);
  EXPECT_TRUE(again.response.results(0).changed());
  EXPECT_EQ(Get("a").version(), 2);
  const auto other = server_.Commit(R"({"writes": [)" + Add("a", -1) + R"(], "request_id": "t1"})");
  EXPECT_EQ(other.details().reason, "REQUEST_ID_REUSED");
  EXPECT_EQ(other.details().field(), "request_id");
}

TEST_F(Transactions, EveryKindOfWriteStandsBesideEveryOther) {
  ASSERT_TRUE(server_.Create(Account("gone", 1)).ok());
  ASSERT_TRUE(server_.Commit(R"({"writes": [)" + Add("b", 7) + "]}").ok());
  const auto done = server_.Commit(R"({"change": {"reason": "whole"}, "writes": [
      {"create": {"collection": "books", "id": "new", "content": {"json": {"n": 1}}}},
      {"update": {"collection": "accounts", "id": "a", "replace": {"json": {"balance": 1}},
                  "change": {"reason": "part"}}},
      {"delete": {"collection": "accounts", "id": "gone"}},
      {"restore": {"collection": "accounts", "id": "b", "version": 1}},
      {"enroll": {"student_id": "1", "class_name": "CS 101", "sequence_number": 5}},
      {"unenroll": {"collection": "students", "student_id": "2", "class_name": "CS 101",
                    "sequence_number": 6}}]})");
  ASSERT_TRUE(done.ok()) << done.status.error_message();
  const auto& results = done.response.results();
  ASSERT_EQ(results.size(), 6);
  EXPECT_EQ(results[0].document().version(), 1);
  EXPECT_EQ(BalanceOf(results[1].document()), 1);
  EXPECT_EQ(results[2].document().version(), 2);
  EXPECT_FALSE(results[2].document().has_content());
  EXPECT_EQ(BalanceOf(results[3].document()), 50);
  EXPECT_EQ(results[4].document().collection(), "students");
  EXPECT_EQ(results[4].enrollment(), v1::ENROLLMENT_RESULT_APPLIED);
  EXPECT_EQ(results[5].enrollment(), v1::ENROLLMENT_RESULT_APPLIED);
  EXPECT_THAT(done.response.transaction_id(), Not(IsEmpty()));
  const auto reason = [&](const char* id) {
    const auto history =
        server_.History(std::string(R"({"collection": "accounts", "id": ")") + id + R"("})");
    return history.response.versions(0).change().reason();
  };
  EXPECT_EQ(reason("a"), "part");
  EXPECT_EQ(reason("b"), "whole");
}

TEST_F(Transactions, NothingOfARefusedOneIsWritten) {
  const auto refused = server_.Commit(
      R"({"writes": [)" + Add("a", -100) + ", " +
      Add("b", 100, R"(, "precondition": {"filter": {"balance": {"$gte": 1000}}})") + "]}");
  EXPECT_EQ(refused.details().reason, "FILTER_NOT_MATCHED");
  EXPECT_EQ(refused.details().field(), "writes[1].precondition");
  EXPECT_EQ(refused.details().metadata.at("index"), "1");
  EXPECT_EQ(Get("a").version(), 1);
  const auto stale = server_.Commit(R"({"writes": [)" + Add("a", -100) + R"(],
      "reads": [{"collection": "accounts", "id": "b", "version": 9}]})");
  EXPECT_EQ(stale.details().reason, "VERSION_CONFLICT");
  EXPECT_EQ(stale.details().field(), "reads[0].version");
  const auto valid = server_.Commit(Transfer(R"("validate_only": true, "request_id": "t1")"));
  ASSERT_TRUE(valid.ok()) << valid.status.error_message();
  EXPECT_EQ(BalanceOf(valid.response.results(1).document()), 150);
  EXPECT_EQ(valid.response.commit_position(), 0);
  EXPECT_EQ(Get("b").version(), 1);
}

TEST_F(Transactions, AnAnswerMayComeAsBsonOrWithoutContents) {
  const auto bson = server_.Commit(Transfer(R"("encoding": "ENCODING_BSON")"));
  ASSERT_TRUE(bson.ok()) << bson.status.error_message();
  EXPECT_TRUE(bson.response.results(0).document().content().has_bson());
  const auto omitted = server_.Commit(Transfer(R"("omit_content": true)"));
  ASSERT_TRUE(omitted.ok()) << omitted.status.error_message();
  EXPECT_FALSE(omitted.response.results(0).document().has_content());
  EXPECT_EQ(omitted.response.results(0).document().version(), 3);
}

TEST_F(Transactions, ReadAnswersAsOfOneCommit) {
  const auto done = server_.Commit(Transfer(R"("request_id": "t1")"));
  const auto read = server_.Read(R"({"documents": [
      {"collection": "accounts", "id": "b"}, {"collection": "accounts", "id": "none"},
      {"collection": "nowhere", "id": "x"}, {"collection": "accounts", "id": "a"}]})");
  ASSERT_TRUE(read.ok()) << read.status.error_message();
  ASSERT_EQ(read.response.documents_size(), 2);
  EXPECT_EQ(BalanceOf(read.response.documents(0)), 150);
  EXPECT_EQ(BalanceOf(read.response.documents(1)), 200);
  EXPECT_EQ(read.response.documents(1).version(), 2);
  ASSERT_EQ(read.response.missing_size(), 2);
  EXPECT_EQ(read.response.missing(0).id(), "none");
  EXPECT_EQ(read.response.missing(1).collection(), "nowhere");
  EXPECT_GE(read.response.commit_position(), done.response.commit_position());
}

TEST_F(Transactions, ReadAnswersNoMoreThanFitsIntoAMessage) {
  std::string documents;
  for (int i = 0; i < 4; ++i) {
    const std::string id = "large-" + std::to_string(i);
    ASSERT_TRUE(server_
                    .Create(R"({"collection": "accounts", "id": ")" + id +
                            R"(", "content": {"json": {"t": ")" + std::string(1'000'000, 'x') +
                            R"("}}, "omit_content": true})")
                    .ok());
    documents += (i == 0 ? "" : ",") + (R"({"collection": "accounts", "id": ")" + id + R"("})");
    const auto read = server_.Read(R"({"documents": [)" + documents + "]}");
    if (i < 3) {
      EXPECT_TRUE(read.ok()) << read.status.error_message();
    } else {
      EXPECT_EQ(read.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
      EXPECT_EQ(read.details().reason, "LAYOUT_LIMIT");
      EXPECT_EQ(read.details().metadata.at("limit"), "3145728");
    }
  }
}

TEST_F(Transactions, AreKnownAfterTheirEnd) {
  ASSERT_TRUE(server_.Commit(Transfer(R"("request_id": "t1", "change": {"actor": "ann"})")).ok());
  const v1::Transaction found = Find("t1");
  EXPECT_EQ(found.id(), "t1");
  EXPECT_EQ(found.status(), v1::TRANSACTION_STATUS_DONE);
  EXPECT_EQ(found.mode(), v1::TRANSACTION_MODE_ONE_COMMIT);
  EXPECT_EQ(found.change().actor(), "ann");
  EXPECT_TRUE(found.has_create_time());
  EXPECT_TRUE(found.has_last_modified());
  ASSERT_EQ(found.participants_size(), 2);
  EXPECT_EQ(found.participants(0).id(), "a");
  EXPECT_EQ(found.participants(0).version(), 2);
  EXPECT_EQ(found.reason(), "");
  // One that nobody can ask for again leaves nothing behind.
  ASSERT_TRUE(server_.Commit(Transfer(R"("max_attempts": 3)")).ok());
  EXPECT_EQ(server_.ListTransactions("{}").response.transactions_size(), 1);
}

TEST_F(Transactions, InTwoPhasesAnswerAlike) {
  const auto done =
      server_.Commit(Transfer(R"("request_id": "t1", "mode": "TRANSACTION_MODE_TWO_PHASE")"));
  ASSERT_TRUE(done.ok()) << done.status.error_message();
  EXPECT_EQ(done.response.transaction_id(), "t1");
  EXPECT_GT(done.response.commit_position(), 0);
  ASSERT_EQ(done.response.results_size(), 2);
  EXPECT_EQ(BalanceOf(done.response.results(0).document()), 200);
  EXPECT_EQ(BalanceOf(Get("b")), 150);
  const auto resumed = server_.ResumeTransaction(R"({"id": "t1"})");
  ASSERT_TRUE(resumed.ok()) << resumed.status.error_message();
  const v1::Transaction& transaction = resumed.response.transaction();
  EXPECT_EQ(transaction.status(), v1::TRANSACTION_STATUS_DONE);
  EXPECT_EQ(transaction.mode(), v1::TRANSACTION_MODE_TWO_PHASE);
  ASSERT_EQ(transaction.participants_size(), 2);
  EXPECT_EQ(transaction.participants(0).base_version(), 1);
  EXPECT_EQ(transaction.participants(0).version(), 2);
  const auto cancelled = server_.CancelTransaction(R"({"id": "t1"})");
  EXPECT_EQ(cancelled.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(cancelled.details().reason, "TRANSACTION_APPLIED");
  EXPECT_EQ(cancelled.details().metadata.at("transaction_id"), "t1");
  EXPECT_EQ(BalanceOf(Get("b")), 150);
}

std::vector<std::string> IdsOf(const v1::ListTransactionsResponse& response) {
  std::vector<std::string> ids;
  for (const v1::Transaction& transaction : response.transactions()) {
    ids.push_back(transaction.id());
  }
  return ids;
}

TEST_F(Transactions, AreListedByPageAndStatus) {
  std::vector<std::string> all;
  for (const char* const id : {"t1", "t2", "t3", "t4", "t5"}) {
    ASSERT_TRUE(server_
                    .Commit(R"({"writes": [)" + Add("a", 1) + R"(], "request_id": ")" +
                            std::string(id) + R"("})")
                    .ok());
    all.emplace_back(id);
  }
  std::vector<std::string> listed;
  std::string token;
  int pages = 0;
  do {
    const auto page =
        server_.ListTransactions(R"({"page_size": 2, "page_token": ")" + token + R"("})");
    ASSERT_TRUE(page.ok()) << page.status.error_message();
    for (const std::string& id : IdsOf(page.response)) listed.push_back(id);
    token = page.response.next_page_token();
    ++pages;
  } while (!token.empty());
  EXPECT_EQ(listed, all);
  EXPECT_EQ(pages, 3);
  const auto done = server_.ListTransactions(R"({"status": "TRANSACTION_STATUS_DONE"})");
  EXPECT_EQ(IdsOf(done.response), all);
  const auto pending = server_.ListTransactions(R"({"status": "TRANSACTION_STATUS_PENDING"})");
  EXPECT_THAT(IdsOf(pending.response), IsEmpty());
  const auto other = server_.ListTransactions(
      R"({"status": "TRANSACTION_STATUS_PENDING", "page_token": ")" +
      server_.ListTransactions(R"({"page_size": 1})").response.next_page_token() + R"("})");
  EXPECT_EQ(other.details().reason, "INVALID_PAGE_TOKEN");
}

constexpr std::chrono::seconds kPatience{30};

// A transfer that a server left at a step, since it was told to hold there: over an engine without
// atomic batches, on which others come after it.
class Held {
 public:
  explicit Held(transaction::HoldAfter step) {
    {
      TestServer server(TestOptions(), Single());
      EXPECT_TRUE(server.Create(Account("a", 300)).ok());
      EXPECT_TRUE(server.Create(Account("b", 50)).ok());
    }
    app::ServerOptions options = TestOptions();
    options.transactions.hold_after = step;
    options.grace = std::chrono::milliseconds(0);
    TestServer holding(options, Single());
    grpc::Status answer;
    std::thread caller([&] { answer = holding.Commit(Transfer(R"("request_id": "t1")")).status; });
    const auto end = std::chrono::steady_clock::now() + kPatience;
    bool reached = Reached(holding, step);
    while (!reached && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
      reached = Reached(holding, step);
    }
    holding.server().Shutdown();
    caller.join();
    EXPECT_TRUE(reached) << "the transaction did not come to step " << static_cast<int>(step)
                         << "; its call: " << answer.error_message();
  }

  std::unique_ptr<store::Store> Single() const {
    return std::make_unique<store::SingleRecordStore>(*memory_);
  }

 private:
  static bool Reached(TestServer& server, transaction::HoldAfter step) {
    const auto found = server.GetTransaction(R"({"id": "t1"})");
    if (!found.ok()) return false;
    const v1::TransactionStatus status = found.response.transaction().status();
    switch (step) {
      case transaction::HoldAfter::kNew:
        return status == v1::TRANSACTION_STATUS_NEW;
      case transaction::HoldAfter::kPending:
        return status == v1::TRANSACTION_STATUS_PENDING;
      case transaction::HoldAfter::kFirstSlot:
        return server.History(R"({"collection": "accounts", "id": "a"})")
                   .response.versions_size() == 2;
      default:
        return status == v1::TRANSACTION_STATUS_APPLIED;
    }
  }

  const std::unique_ptr<store::Store> memory_ =
      *engines::OpenEngine("memory", engines::OpenOptions());
};

double Balance(TestServer& server, const char* id) {
  const auto got = server.Get(std::string(R"({"collection": "accounts", "id": ")") + id + R"("})");
  EXPECT_TRUE(got.ok()) << got.status.error_message();
  return BalanceOf(got.response.document());
}

TEST(HeldTransactions, AnUnfinishedOneIsToldOfAndItsVersionsDoNotCount) {
  const Held held(transaction::HoldAfter::kFirstSlot);
  TestServer server(TestOptions(), held.Single());
  const auto found = server.GetTransaction(R"({"id": "t1"})");
  ASSERT_TRUE(found.ok()) << found.status.error_message();
  EXPECT_EQ(found.response.transaction().status(), v1::TRANSACTION_STATUS_PENDING);
  const auto a = server.Get(R"({"collection": "accounts", "id": "a"})");
  ASSERT_TRUE(a.ok()) << a.status.error_message();
  EXPECT_EQ(a.response.document().version(), 1);
  EXPECT_EQ(BalanceOf(a.response.document()), 300);
  EXPECT_EQ(a.response.document().pending_transaction_id(), "t1");
  const auto list = server.List(R"({"collection": "accounts"})");
  ASSERT_EQ(list.response.documents_size(), 2);
  EXPECT_EQ(list.response.documents(0).pending_transaction_id(), "t1");
  EXPECT_EQ(list.response.documents(1).pending_transaction_id(), "");
  const auto batch = server.BatchGet(R"({"collection": "accounts", "ids": ["a", "b"]})");
  ASSERT_EQ(batch.response.documents_size(), 2);
  EXPECT_EQ(batch.response.documents(0).pending_transaction_id(), "t1");
  const auto read = server.Read(R"({"documents": [{"collection": "accounts", "id": "a"}]})");
  ASSERT_EQ(read.response.documents_size(), 1);
  EXPECT_EQ(read.response.documents(0).pending_transaction_id(), "t1");
  const auto history = server.History(R"({"collection": "accounts", "id": "a"})");
  ASSERT_EQ(history.response.versions_size(), 2);
  EXPECT_EQ(history.response.versions(0).transaction_id(), "t1");
  // Whoever writes does not build on what is not decided.
  ASSERT_TRUE(server.Commit(R"({"writes": [)" + Add("a", -1) + "]}").ok());
  const double together = Balance(server, "a") + Balance(server, "b");
  EXPECT_EQ(together, 349);
}

TEST(HeldTransactions, AreCancelledUntilTheyHaveTakenEffect) {
  using Step = transaction::HoldAfter;
  for (const Step step : {Step::kNew, Step::kPending, Step::kFirstSlot, Step::kApplied}) {
    SCOPED_TRACE(static_cast<int>(step));
    const Held held(step);
    TestServer server(TestOptions(), held.Single());
    const std::string cancel = R"({"id": "t1", "change": {"actor": "ann", "reason": "late"}})";
    for (int time = 0; time < 2; ++time) {
      const auto ended = server.CancelTransaction(cancel);
      if (step == Step::kApplied) {
        EXPECT_EQ(ended.details().reason, "TRANSACTION_APPLIED") << ended.status.error_message();
      } else {
        ASSERT_TRUE(ended.ok()) << ended.status.error_message();
        EXPECT_EQ(ended.response.transaction().status(), v1::TRANSACTION_STATUS_CANCELLED);
        EXPECT_THAT(ended.response.transaction().reason(), HasSubstr("late"));
      }
    }
    const double moved = step == Step::kApplied ? 100 : 0;
    EXPECT_EQ(Balance(server, "a"), 300 - moved);
    EXPECT_EQ(Balance(server, "b"), 50 + moved);
  }
}

TEST(HeldTransactions, AreResumedToTheirEnd) {
  using Step = transaction::HoldAfter;
  for (const Step step : {Step::kNew, Step::kPending, Step::kFirstSlot, Step::kApplied}) {
    SCOPED_TRACE(static_cast<int>(step));
    const Held held(step);
    TestServer server(TestOptions(), held.Single());
    for (int time = 0; time < 2; ++time) {
      const auto ended = server.ResumeTransaction(R"({"id": "t1"})");
      ASSERT_TRUE(ended.ok()) << ended.status.error_message();
      EXPECT_EQ(ended.response.transaction().status(), v1::TRANSACTION_STATUS_DONE);
    }
    EXPECT_EQ(Balance(server, "a"), 200);
    EXPECT_EQ(Balance(server, "b"), 150);
  }
}

TEST(HeldTransactions, TellOfTheirDocumentsWhatIsKnown) {
  using Step = transaction::HoldAfter;
  for (const Step step : {Step::kNew, Step::kPending, Step::kFirstSlot, Step::kApplied}) {
    SCOPED_TRACE(static_cast<int>(step));
    const Held held(step);
    TestServer server(TestOptions(), held.Single());
    const std::string ask = R"({"id": "t1"})";
    const auto expect = [&](const v1::Transaction& transaction, int64_t base, int64_t version) {
      ASSERT_EQ(transaction.participants_size(), 2);
      for (const v1::Participant& participant : transaction.participants()) {
        EXPECT_EQ(participant.base_version(), base) << participant.id();
        EXPECT_EQ(participant.version(), version) << participant.id();
      }
    };
    expect(server.GetTransaction(ask).response.transaction(), step == Step::kNew ? 0 : 1,
           step == Step::kApplied ? 2 : 0);
    if (step == Step::kPending) {
      expect(server.CancelTransaction(ask).response.transaction(), 1, 0);
    } else {
      expect(server.ResumeTransaction(ask).response.transaction(), 1, 2);
    }
  }
}

TEST(HeldTransactions, MayBeHalfSeenByWhoLooksBack) {
  const Held held(transaction::HoldAfter::kFirstSlot);
  TestServer server(TestOptions(), held.Single());
  const auto history = server.History(R"({"collection": "accounts", "id": "a"})");
  ASSERT_EQ(history.response.versions_size(), 2);
  const auto as_of = [&](const char* id) {
    v1::GetRequest request;
    request.set_collection("accounts");
    request.set_id(id);
    *request.mutable_at_time() = history.response.versions(0).commit_time();
    const auto got =
        server.Call<v1::GetResponse>(server.documents(), &v1::DocumentService::Stub::Get, request);
    EXPECT_TRUE(got.ok()) << got.status.error_message();
    return BalanceOf(got.response.document());
  };
  const auto list_as_of = [&] {
    v1::ListRequest request;
    request.set_collection("accounts");
    *request.mutable_at_time() = history.response.versions(0).commit_time();
    const auto list = server.Call<v1::ListResponse>(server.documents(),
                                                    &v1::DocumentService::Stub::List, request);
    std::vector<double> balances;
    for (const v1::Document& document : list.response.documents()) {
      balances.push_back(BalanceOf(document));
    }
    return balances;
  };
  const auto now = [&] {
    const auto read = server.Read(R"({"documents": [{"collection": "accounts", "id": "a"},
                                                    {"collection": "accounts", "id": "b"}]})");
    return std::pair(BalanceOf(read.response.documents(0)), BalanceOf(read.response.documents(1)));
  };
  EXPECT_EQ(as_of("a"), 300);
  EXPECT_THAT(list_as_of(), ElementsAre(300, 50));
  EXPECT_EQ(now(), std::pair(300.0, 50.0));
  ASSERT_TRUE(server.ResumeTransaction(R"({"id": "t1"})").ok());
  // The first slot was filled then, and the second one later.
  EXPECT_EQ(as_of("a"), 200);
  EXPECT_EQ(as_of("b"), 50);
  EXPECT_THAT(list_as_of(), ElementsAre(200, 50));
  EXPECT_EQ(now(), std::pair(200.0, 150.0));
}

// Who may see and touch what.

constexpr char kGrants[] = R"(
  {"principals": ["user:writer"], "role": "writer", "resources": ["collection/books"]},
  {"principals": ["user:both"], "role": "writer", "resources": ["collection/books"],
   "acts_for": ["anna"]},
  {"principals": ["user:both"], "role": "reader", "resources": ["collection/other"]},
  {"principals": ["user:agent"], "role": "writer", "resources": ["collection/books"],
   "acts_for": ["anna"]},
  {"principals": ["user:agent"], "role": "writer", "resources": ["collection/other"]},
  {"principals": ["user:reader"], "role": "reader", "resources": ["collection/*"]})";

class WhoseTransactions : public testing::Test {
 protected:
  explicit WhoseTransactions(bool single_record = false)
      : server_(kGrants, {"writer", "both", "reader", "agent"}, "", 1, single_record) {
    for (const char* const id : {"m-secret", "n-secret"}) {
      Must("owner", Commit(id, {"other"}));
    }
    Must("owner", Commit("a-books", {"books"}));
    Must("owner", Commit("c-both", {"books", "other"}));
    Must("owner", Commit("z-books", {"books"}));
    // In two phases they are answered before their end, which is still to be written.
    for (const char* const id : {"m-secret", "n-secret", "a-books", "c-both", "z-books"}) {
      EXPECT_EQ(Reason("owner", "ResumeTransaction", R"({"id": ")" + std::string(id) + R"("})"),
                "");
    }
  }

  // A transaction that writes a document of each collection.
  static std::string Commit(const std::string& id, const std::vector<std::string>& collections,
                            const std::string& rest = "") {
    std::string writes;
    for (const std::string& collection : collections) {
      writes += (writes.empty() ? "" : ", ") +
                (R"({"update": {"collection": ")" + collection + R"(", "id": ")" + id +
                 R"(", "allow_missing": true, "replace": {"json": {"n": 1}}}})");
    }
    return R"({"request_id": ")" + id + R"(", "writes": [)" + writes + "]" + rest + "}";
  }

  Answered As(const std::string& user, const std::string& method, const std::string& json) {
    const Presented presented =
        user == "owner" ? server_.Uri("spiffe://test/owner") : server_.User(user);
    return CallAnything(server_.Connect(presented), "strata.v1.TransactionService/" + method, json,
                        presented.authorization);
  }
  void Must(const std::string& user, const std::string& commit) {
    const Answered answered = As(user, "Commit", commit);
    ASSERT_TRUE(answered.status.ok()) << answered.status.error_message();
  }
  std::string Reason(const std::string& user, const std::string& method, const std::string& json) {
    return DetailsOf(As(user, method, json).status).reason;
  }

  // A read of what the owner wrote into the collection, for the end of a Commit.
  static std::string Reads(const std::string& collection, const std::string& id,
                           const std::string& rest = "") {
    return R"(, "reads": [{"collection": ")" + collection + R"(", "id": ")" + id +
           R"(", "version": 1}])" + rest;
  }
  // What is held by a version of its own is written: refused to whoever may only read it, and with
  // that nothing is changed.
  void ExpectDenied(const std::string& user, const std::string& commit, const std::string& reason,
                    const std::map<std::string, std::string>& metadata) {
    const auto before = server_.StoredBytes();
    const Details details = DetailsOf(As(user, "Commit", commit).status);
    EXPECT_EQ(details.reason, reason);
    EXPECT_EQ(details.metadata, metadata);
    EXPECT_TRUE(server_.StoredBytes() == before) << "what is denied changed something";
  }

  SecuredServer server_;
};

// Where a transaction in two phases needs not be asked for.
class WhoseTransactionsOfOneRecord : public WhoseTransactions {
 protected:
  WhoseTransactionsOfOneRecord() : WhoseTransactions(/*single_record=*/true) {}
};

TEST_F(WhoseTransactions, CommitNeedsEachCollection) {
  EXPECT_EQ(Reason("writer", "Commit", Commit("x1", {"books"})), "");
  EXPECT_EQ(Reason("writer", "Commit", Commit("x2", {"books", "other"})), "PERMISSION_DENIED");
  const std::string reads =
      R"(, "reads": [{"collection": "other", "id": "m-secret", "version": 1}])";
  EXPECT_EQ(Reason("writer", "Commit", Commit("x3", {"books"}, reads)), "PERMISSION_DENIED");
  EXPECT_EQ(Reason("both", "Commit", Commit("x4", {"books"}, reads)), "");
  EXPECT_EQ(Reason("both", "Commit", Commit("x5", {"other"})), "PERMISSION_DENIED");
  const std::string read =
      R"({"documents": [{"collection": "books", "id": "x"}, {"collection": "other", "id": "x"}]})";
  EXPECT_EQ(Reason("writer", "Read", read), "PERMISSION_DENIED");
  EXPECT_EQ(Reason("both", "Read", read), "");
}

constexpr char kTwoPhase[] = R"(, "mode": "TRANSACTION_MODE_TWO_PHASE")";

TEST_F(WhoseTransactions, WhatIsReadInTwoPhasesIsToBeWritten) {
  EXPECT_EQ(Reason("both", "Commit", Commit("y1", {"books"}, Reads("other", "m-secret"))), "");
  ExpectDenied("both", Commit("y2", {"books"}, Reads("other", "m-secret", kTwoPhase)),
               "PERMISSION_DENIED", {{"permission", "write"}, {"resource", "collection/other"}});
  EXPECT_EQ(
      Reason("agent", "Commit", Commit("y4", {"books"}, Reads("other", "m-secret", kTwoPhase))),
      "");
}

TEST_F(WhoseTransactions, WhatIsReadInTwoPhasesIsWrittenInNobodyElsesName) {
  const std::string anna = R"(, "change": {"actor": "anna"})";
  EXPECT_EQ(Reason("agent", "Commit", Commit("y1", {"books"}, Reads("other", "m-secret", anna))),
            "");
  ExpectDenied("agent", Commit("y2", {"books"}, Reads("other", "m-secret", anna + kTwoPhase)),
               "ACT_FOR_DENIED", {{"field", "change.actor"}, {"resource", "collection/other"}});
  EXPECT_EQ(Reason("agent", "Commit",
                   Commit("y3", {"books"}, Reads("books", "a-books", anna + kTwoPhase))),
            "");
}

TEST_F(WhoseTransactionsOfOneRecord, WhatIsReadIsToBeWrittenThoughNobodySaysTwoPhases) {
  ExpectDenied("both", Commit("y1", {"books"}, Reads("other", "m-secret")), "PERMISSION_DENIED",
               {{"permission", "write"}, {"resource", "collection/other"}});
  EXPECT_EQ(Reason("agent", "Commit", Commit("y2", {"books"}, Reads("other", "m-secret"))), "");
}

TEST_F(WhoseTransactions, WritingForOthersIsAskedForEachPart) {
  EXPECT_EQ(Reason("both", "Commit", Commit("x1", {"books"}, R"(, "change": {"actor": "anna"})")),
            "");
  EXPECT_EQ(Reason("writer", "Commit", Commit("x2", {"books"}, R"(, "change": {"actor": "anna"})")),
            "ACT_FOR_DENIED");
  const Answered part = As("both", "Commit", R"({"writes": [
      {"delete": {"collection": "books", "id": "a-books"}},
      {"delete": {"collection": "books", "id": "z-books", "change": {"on_behalf_of": "bob"}}}]})");
  const Details details = DetailsOf(part.status);
  EXPECT_EQ(details.reason, "ACT_FOR_DENIED");
  EXPECT_EQ(details.field(), "writes[1].delete.change.on_behalf_of");
  v1::GetTransactionResponse found;
  ASSERT_TRUE(
      found.ParseFromString(As("both", "GetTransaction", R"({"id": "x1"})").messages.at(0)));
  EXPECT_EQ(found.transaction().change().actor(), "user:both");
  EXPECT_EQ(found.transaction().change().on_behalf_of(), "anna");
}

TEST_F(WhoseTransactions, OneThatIsNotYoursIsAsOneThatIsNotThere) {
  const auto message = [&](const char* user, const char* method, const std::string& id) {
    const Answered answered = As(user, method, R"({"id": ")" + id + R"("})");
    EXPECT_EQ(DetailsOf(answered.status).reason, "TRANSACTION_NOT_FOUND");
    return answered.status.error_message();
  };
  for (const char* const method : {"GetTransaction", "CancelTransaction", "ResumeTransaction"}) {
    SCOPED_TRACE(method);
    const std::string nowhere = message("writer", method, "nowhere");
    EXPECT_EQ(message("writer", method, "m-secret"), nowhere);
    EXPECT_EQ(message("writer", method, "c-both"), nowhere);
  }
  // To read is not to write.
  EXPECT_EQ(Reason("reader", "GetTransaction", R"({"id": "c-both"})"), "");
  message("reader", "CancelTransaction", "c-both");
  message("both", "ResumeTransaction", "c-both");
  EXPECT_EQ(Reason("both", "GetTransaction", R"({"id": "c-both"})"), "");
  EXPECT_EQ(Reason("writer", "CancelTransaction", R"({"id": "a-books"})"), "TRANSACTION_APPLIED");
}

// An id less what stands for the principal.
std::string WithoutCaller(const std::string& id) {
  EXPECT_THAT(id, testing::MatchesRegex(".*@[0-9a-f]+"));
  return id.substr(0, id.find('@'));
}

TEST_F(WhoseTransactions, AListNamesNoneThatMayNotBeRead) {
  std::vector<std::string> listed;
  std::string token;
  do {
    v1::ListTransactionsResponse page;
    ASSERT_TRUE(page.ParseFromString(
        As("writer", "ListTransactions", R"({"page_size": 1, "page_token": ")" + token + R"("})")
            .messages.at(0)));
    for (const std::string& id : IdsOf(page)) listed.push_back(WithoutCaller(id));
    token = page.next_page_token();
    std::string bytes;
    ASSERT_TRUE(absl::WebSafeBase64Unescape(token, &bytes));
    for (const char* const hidden : {"secret", "c-both"}) {
      EXPECT_THAT(bytes, Not(HasSubstr(hidden)));
    }
  } while (!token.empty());
  EXPECT_THAT(listed, ElementsAre("a-books", "z-books"));
  v1::ListTransactionsResponse all;
  ASSERT_TRUE(all.ParseFromString(As("reader", "ListTransactions", "{}").messages.at(0)));
  std::vector<std::string> everyone;
  for (const std::string& id : IdsOf(all)) everyone.push_back(WithoutCaller(id));
  EXPECT_THAT(everyone, ElementsAre("a-books", "c-both", "m-secret", "n-secret", "z-books"));
}

}  // namespace
}  // namespace strata::rpc_test
