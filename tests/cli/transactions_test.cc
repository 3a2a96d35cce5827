// Claims about commit and transactions: what they send and what they print.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "clients/cpp/extended_json.h"
#include "google/protobuf/util/json_util.h"
#include "tests/cli/command_line.h"
#include "tests/cli/status_of.h"

namespace strata::cli {
namespace {

using testing::HasSubstr;

template <typename Message>
Message Parse(const std::string& json) {
  Message message;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &message).ok()) << json;
  return message;
}

class TransactionCommands : public CommandLine {
 protected:
  TransactionCommands() {
    server_.transactions.committed = Parse<v1::CommitResponse>(
        R"({"transaction_id": "t1", "commit_position": "7", "results": [
            {"document": {"collection": "accounts", "id": "a", "version": "2"}, "changed": true},
            {"document": {"collection": "students", "id": "1", "version": "4"},
             "enrollment": "ENROLLMENT_RESULT_DUPLICATE"}]})");
    server_.transactions.transactions = {
        Parse<v1::Transaction>(R"({"id": "t1", "status": "TRANSACTION_STATUS_PENDING",
            "mode": "TRANSACTION_MODE_TWO_PHASE", "last_modified": "2026-01-31T12:00:00Z",
            "change": {"reason": "rent"},
            "participants": [{"collection": "accounts", "id": "a", "base_version": "1",
                              "version": "2"},
                             {"collection": "accounts", "id": "b", "base_version": "3"}]})"),
        Parse<v1::Transaction>(R"({"id": "t2", "status": "TRANSACTION_STATUS_CANCELLED",
            "mode": "TRANSACTION_MODE_ONE_COMMIT", "reason": "too late"})")};
  }

  static constexpr char kRequest[] = R"({"request_id": "t1", "writes": [
      {"update": {"collection": "accounts", "id": "a", "replace": {"json": {"b": 1, "a": 2.0,
                  "c": {"$numberLong": "9007199254740993"}}},
                  "precondition": {"filter": {"balance": {"$gte": 100}}},
                  "change": {"labels": {"x": "1", "content": "2"}}}},
      {"enroll": {"student_id": "1", "className": "CS 101", "sequence_number": "5"}}]})";
};

TEST_F(TransactionCommands, CommitTellsWhatIsStale) {
  v1::CommitResult& result = *server_.transactions.committed.mutable_results(0);
  result.set_changed(false);
  result.set_stale(true);
  EXPECT_TRUE(Run({"commit", "-"}, kRequest).out.starts_with("stale accounts a, version 2\n"));
}

TEST_F(TransactionCommands, CommitSendsARequestWithItsContentsAsExactBson) {
  const Outcome outcome = Run({"commit", "-"}, kRequest);
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_EQ(outcome.out,
            "updated accounts a, version 2\n"
            "unchanged students 1, version 4 (duplicate)\n"
            "transaction t1, commit 7\n");
  const v1::CommitRequest& sent = server_.transactions.last_commit;
  EXPECT_EQ(sent.request_id(), "t1");
  EXPECT_TRUE(sent.omit_content());
  ASSERT_EQ(sent.writes_size(), 2);
  const v1::UpdateRequest& update = sent.writes(0).update();
  EXPECT_EQ(
      update.replace().bson(),
      client::BsonFromJson(R"({"b":1,"a":2.0,"c":{"$numberLong":"9007199254740993"}})").value());
  EXPECT_EQ(update.precondition()
                .filter()
                .fields()
                .at("balance")
                .struct_value()
                .fields()
                .at("$gte")
                .number_value(),
            100);
  EXPECT_EQ(update.change().labels().at("content"), "2");
  EXPECT_EQ(sent.writes(1).enroll().class_name(), "CS 101");
  EXPECT_EQ(sent.writes(1).enroll().sequence_number(), 5);
}

TEST_F(TransactionCommands, CommitReadsAFileAndPrintsForMachines) {
  const std::string file = testing::TempDir() + "strata_cli_commit.json";
  std::ofstream(file) << kRequest;
  server_.transactions.committed.set_replayed(true);
  EXPECT_THAT(Run({"commit", file}).out, HasSubstr("by an earlier call with this request id"));
  const Outcome outcome = Run({"commit", file, "--json"});
  EXPECT_THAT(outcome.out, HasSubstr(R"("transaction_id":"t1")"));
  EXPECT_FALSE(server_.transactions.last_commit.omit_content());
  std::filesystem::remove(file);
}

TEST_F(TransactionCommands, WhatIsNoRequestIsWrongUsage) {
  for (const char* const text :
       {"", "[]", "{", R"({"writs": []})", R"({"writes": [{"update": {"id": 5.5}}]})",
        R"({"writes": [{"create": {"content": {"json": [1]}}}]})"}) {
    const Outcome outcome = Run({"commit", "-"}, text);
    EXPECT_EQ(outcome.status, kExitUsage) << text << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr("stdin: this is not a CommitRequest as JSON")) << text;
  }
  EXPECT_EQ(Run({"commit", "/nowhere/at/all"}).status, kExitUsage);
  EXPECT_EQ(Run({"commit"}).status, kExitUsage);
}

TEST_F(TransactionCommands, WhatTheServerRefusesIsSaid) {
  server_.transactions.end = StatusOf(grpc::StatusCode::ABORTED, "VERSION_CONFLICT",
                                      "version is 2, not 1", {{"field", "writes[0].precondition"}});
  const Outcome outcome = Run({"commit", "-"}, kRequest);
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("field=writes[0].precondition"));
}

TEST_F(TransactionCommands, TransactionsAreListedToTheEnd) {
  EXPECT_EQ(Run({"transactions"}).out,
            "ID  STATUS   MODE       DOCUMENTS  MODIFIED             REASON\n"
            "t1  pending  two-phase          2  2026-01-31 12:00:00  rent\n"
            "t2  cancelled  one-commit          0  -\n");
  EXPECT_EQ(server_.transactions.last_list.status(), v1::TRANSACTION_STATUS_UNSPECIFIED);
  EXPECT_EQ(Run({"transactions", "--status", "pending"}).status, kExitOk);
  EXPECT_EQ(server_.transactions.last_list.status(), v1::TRANSACTION_STATUS_PENDING);
  const Outcome wrong = Run({"transactions", "--status", "lost"});
  EXPECT_EQ(wrong.status, kExitUsage);
  EXPECT_THAT(wrong.err, HasSubstr("new, pending, applied, done, cancelling, cancelled"));
}

TEST_F(TransactionCommands, OneIsShownWithItsDocuments) {
  EXPECT_EQ(Run({"transactions", "t1"}).out,
            "ID  STATUS   MODE       DOCUMENTS  MODIFIED             REASON\n"
            "t1  pending  two-phase          2  2026-01-31 12:00:00  rent\n"
            "\n"
            "COLLECTION  ID  BASE  VERSION\n"
            "accounts    a      1        2\n"
            "accounts    b      3        -\n");
  EXPECT_EQ(server_.transactions.last_get.id(), "t1");
}

TEST_F(TransactionCommands, OneIsCancelledOrResumed) {
  server_.transactions.transactions.erase(server_.transactions.transactions.begin());
  const Outcome outcome =
      Run({"transactions", "cancel", "t2", "--reason", "too late", "--actor", "ann"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("    cancelled: too late\n"));
  EXPECT_EQ(server_.transactions.last_cancel.id(), "t2");
  EXPECT_EQ(server_.transactions.last_cancel.change().actor(), "ann");
  EXPECT_EQ(Run({"transactions", "resume", "t2", "--json"}).status, kExitOk);
  EXPECT_EQ(server_.transactions.last_resume.id(), "t2");
}

}  // namespace
}  // namespace strata::cli
