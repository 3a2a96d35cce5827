// strata verify, against a server that answers what the test says.
#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include "tests/cli/command_line.h"
#include "tests/cli/status_of.h"

namespace strata::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

class VerifyCommand : public CommandLine {
 protected:
  void Answer(const std::string& json) {
    v1::VerifyResponse step;
    ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(json, &step).ok()) << json;
    server_.verify_steps.push_back(step);
  }
  void AnswerFindings() {
    Answer(R"({"findings": [
        {"id": "a/1", "version": 3, "kind": "FINDING_KIND_WRONG_FLAG",
         "problem": "it is flagged and not current", "recoverable": true, "repaired": true},
        {"id": "b", "version": 9, "kind": "FINDING_KIND_EARLY_COPY", "problem": "a copy",
         "recoverable": true}], "documents": 2, "versions": 12})");
    Answer(R"({"documents": 3, "versions": 1500, "ledger_entries": 1, "complete": true})");
  }
  void Break() {
    Answer(R"({"findings": [{"id": "c\u001b", "kind": "FINDING_KIND_ORPHAN", "problem": "stray"}],
               "documents": 4, "versions": 1501, "complete": true})");
    server_.verify_end = StatusOf(grpc::StatusCode::DATA_LOSS, "CHAIN_BROKEN",
                                  "the stored data is not whole: document c: stray",
                                  {{"collection", "books"}, {"id", "c"}, {"version", "0"}});
  }
};

TEST_F(VerifyCommand, SaysThatAllIsWhole) {
  Answer(R"({"documents": 1, "versions": 1, "ledger_entries": 1, "complete": true})");
  const Outcome outcome = Run({"verify", "books"});
  EXPECT_EQ(outcome.status, kExitOk);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "1 document, 1 version, 1 ledger entry: whole\n");
  EXPECT_EQ(server_.last_verify.collection(), "books");
  EXPECT_EQ(server_.last_verify.id(), "");
  EXPECT_FALSE(server_.last_verify.repair());
  EXPECT_FALSE(server_.last_verify_had_deadline);
}

// What strata audit --head prints is what strata verify takes.
TEST_F(VerifyCommand, TheLedgersHeadIsPrintedAndExpected) {
  server_.ledger_head.set_position(4711);
  server_.ledger_head.set_hash(std::string(30, 'a') + std::string("\0\xFF", 2));
  const Outcome head = Run({"audit", "--head"});
  EXPECT_EQ(head.status, kExitOk);
  std::string expected = "4711:";
  for (int i = 0; i < 30; ++i) expected += "61";
  EXPECT_EQ(head.out, expected + "00ff\n");
  Answer(R"({"ledger_entries": 7, "complete": true})");
  for (const bool alone : {true, false}) {
    std::vector<std::string> command = {"verify"};
    if (!alone) command.emplace_back("books");
    command.insert(command.end(), {"--expect-head", head.out.substr(0, head.out.size() - 1)});
    EXPECT_EQ(Run(command).status, kExitOk);
    EXPECT_EQ(server_.last_verify.collection(), alone ? "" : "books");
    EXPECT_EQ(server_.last_verify.expect_head().position(), 4711);
    EXPECT_EQ(server_.last_verify.expect_head().hash(), server_.ledger_head.hash());
  }
}

TEST_F(VerifyCommand, WhatIsNoHeadIsRefusedAndNothingAsked) {
  const std::string digits(64, 'a');
  for (const std::string& head :
       {std::string("4711"), "4711:" + digits.substr(1), "4711:" + digits + "a", "0:" + digits,
        "-1:" + digits, "x:" + digits, ":" + digits, "4711:g" + digits.substr(1)}) {
    const Outcome outcome = Run({"verify", "--expect-head", head});
    EXPECT_EQ(outcome.status, kExitUsage) << head;
    EXPECT_THAT(outcome.err, HasSubstr("POSITION:HASH")) << head;
  }
  const Outcome neither = Run({"verify"});
  EXPECT_EQ(neither.status, kExitUsage);
  EXPECT_THAT(neither.err, HasSubstr("--expect-head"));
  EXPECT_EQ(server_.verify_streams, 0);
}

TEST_F(VerifyCommand, HasADeadlineIfOneIsGiven) {
  Run({"verify", "books", "moby", "--repair", "--timeout", "1m"});
  EXPECT_TRUE(server_.last_verify_had_deadline);
  EXPECT_EQ(server_.last_verify.id(), "moby");
  EXPECT_TRUE(server_.last_verify.repair());
}

TEST_F(VerifyCommand, WhatIsRecoverableIsListedAndNoFailure) {
  AnswerFindings();
  const Outcome outcome = Run({"verify", "books"});
  EXPECT_EQ(outcome.status, kExitOk);
  EXPECT_EQ(outcome.out,
            "ID   VERSION  FINDING     PROBLEM                        STATE\n"
            "a/1        3  WRONG_FLAG  it is flagged and not current  repaired\n"
            "b          9  EARLY_COPY  a copy                         recoverable\n");
  EXPECT_EQ(outcome.err,
            "3 documents, 1,500 versions, 1 ledger entry: 1 recoverable (the next update or "
            "--repair repairs them), 1 repaired\n");
}

TEST_F(VerifyCommand, WhatIsBrokenFails) {
  AnswerFindings();
  Break();
  const Outcome outcome = Run({"verify", "books"});
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_THAT(outcome.out, HasSubstr("ORPHAN"));
  EXPECT_THAT(outcome.out, HasSubstr("BROKEN"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(outcome.err, HasSubstr(": 1 BROKEN, 1 recoverable"));
  EXPECT_THAT(outcome.err, HasSubstr("CHAIN_BROKEN: the stored data is not whole"));
}

TEST_F(VerifyCommand, PrintsJsonForMachines) {
  AnswerFindings();
  Break();
  const Outcome outcome = Run({"verify", "books", "--json"});
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_THAT(outcome.out, HasSubstr(R"("kind":"FINDING_KIND_WRONG_FLAG")"));
  EXPECT_THAT(outcome.out,
              testing::EndsWith(
                  R"({"summary":{"documents":4,"versions":1501,"ledger_entries":0,"broken":1,)"
                  R"("recoverable":1,"repaired":1,"complete":true}})"
                  "\n"));
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 4);
  EXPECT_THAT(outcome.err, HasSubstr(R"("reason":"CHAIN_BROKEN")"));
}

TEST_F(VerifyCommand, GoesOnWhereTheStreamBroke) {
  AnswerFindings();
  Break();
  server_.verify_steps[1].set_complete(false);
  const Outcome whole = Run({"verify", "books"});
  for (const int breaks : {1, 2, 3, 4}) {
    server_.verify_streams = 0;
    server_.verify_breaks = breaks;
    const Outcome outcome = Run({"verify", "books", "--repair"});
    EXPECT_EQ(server_.verify_streams, breaks + 1);
    EXPECT_EQ(outcome.status, whole.status);
    EXPECT_EQ(outcome.out, whole.out) << breaks;  // each finding once
    EXPECT_EQ(outcome.err, whole.err) << breaks;
    EXPECT_TRUE(server_.last_verify.repair());
  }
}

TEST_F(VerifyCommand, GivesUpInTimeAndSaysHowToGoOn) {
  AnswerFindings();
  server_.verify_breaks = 1000;
  server_.verify_steps.resize(1);
  const Outcome given_up = Run({"verify", "books", "--retry-for", "300ms"});
  EXPECT_EQ(given_up.status, kExitRefused);
  EXPECT_GT(server_.verify_streams, 1);
  EXPECT_THAT(given_up.err, HasSubstr("UNAVAILABLE"));
  EXPECT_THAT(given_up.err, testing::EndsWith("go on with: --resume 0\n"));

  server_.verify_steps.clear();
  AnswerFindings();
  server_.verify_breaks = 0;
  const Outcome resumed = Run({"verify", "books", "--resume", "0"});
  EXPECT_EQ(server_.last_verify.resume_token(), "0");
  EXPECT_EQ(resumed.status, kExitOk);
  EXPECT_EQ(resumed.out, "");
  EXPECT_EQ(resumed.err, "3 documents, 1,500 versions, 1 ledger entry: whole\n");
}

// Nobody waits for a server that was never there.
TEST_F(VerifyCommand, AServerThatIsNotThereIsSaidSoAtOnce) {
  server_.verify_breaks = 1000;
  const Outcome outcome = Run({"verify", "books"});
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_EQ(server_.verify_streams, 1);
  EXPECT_THAT(outcome.err, Not(HasSubstr("--resume")));
}

TEST_F(VerifyCommand, ARefusalIsPrinted) {
  server_.verify_end =
      StatusOf(grpc::StatusCode::NOT_FOUND, "COLLECTION_NOT_FOUND", "no such collection");
  const Outcome outcome = Run({"verify", "books"});
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, testing::StartsWith("COLLECTION_NOT_FOUND: no such collection"));
}

}  // namespace
}  // namespace strata::cli
