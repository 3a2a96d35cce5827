// Claims about work: what a command gets, what becomes of its exit status, and how it ends.
#include <gmock/gmock.h>
#include <signal.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "clients/cpp/extended_json.h"
#include "tests/cli/command_line.h"
#include "tests/support/temporary_directory.h"

namespace strata::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

v1::ReceiveResponse Messages(const std::vector<std::string>& names, int tries = 1) {
  v1::ReceiveResponse response;
  for (const std::string& name : names) {
    v1::QueueMessage& message = *response.mutable_messages()->add_messages();
    message.set_message_id("id-" + name);
    message.set_token("t-" + name);
    message.set_tries(tries);
    message.set_delivery(tries + 4);
    message.mutable_payload()->set_bson(
        client::BsonFromJson(R"({"name": ")" + name + R"(", "n": 5})").value());
  }
  return response;
}

v1::ApplyError Error(const std::string& reason,
                     const std::map<std::string, std::string>& metadata = {}) {
  v1::ApplyError error;
  error.mutable_metadata()->insert(metadata.begin(), metadata.end());
  error.set_code(grpc::StatusCode::FAILED_PRECONDITION);
  error.set_reason(reason);
  error.set_message("why");
  return error;
}

const v1::ReceiveResponse kSomethingSaid;
const grpc::Status kDraining(grpc::StatusCode::UNAVAILABLE, "server is draining");

// Before there are threads that would take what is meant for the command line, which waits for it.
const int kSignalsBlocked = [] {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int each : {SIGINT, SIGTERM}) sigaddset(&signals, each);
  return pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}();

class WorkCommand : public CommandLine {
 protected:
  FakeQueues& fake() { return server_.queues; }

  // With a shell's script as command, which may write to $OUT.
  Outcome RunScript(const std::string& script, const std::vector<std::string>& options = {}) {
    std::vector<std::string> arguments = {"work", "mails", "--server", server_.address()};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(),
                     {"--", "/bin/sh", "-c", "OUT=" + directory_.Join("out") + "; " + script});
    return RunBare(arguments);
  }
  std::string Written() const {
    std::ifstream file(directory_.Join("out"));
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  // "open 1", "ack t-a", "back t-a why": what was said over streams, in order, but for extensions.
  std::vector<std::string> Said() {
    std::vector<std::string> said;
    for (const v1::ReceiveRequest& request : fake().said) {
      if (request.has_open()) said.push_back("open " + std::to_string(request.open().credits()));
      if (request.has_acknowledge()) said.push_back("ack " + request.acknowledge().tokens(0));
      if (request.has_rollback()) {
        said.push_back("back " + request.rollback().tokens(0) + " " + request.rollback().reason());
      }
    }
    return said;
  }

  test_support::TemporaryDirectory directory_;
};

TEST_F(WorkCommand, ACommandGetsThePayloadAndWhatItIs) {
  fake().streams = {{{Messages({"a"}, 2)}, {}}};
  const Outcome outcome = RunScript(
      R"(cat > $OUT
         echo "$STRATA_MESSAGE_ID $STRATA_DELIVERY $STRATA_TRIES $STRATA_TOKEN" >> $OUT)",
      {"--count", "1", "--credits", "3", "--timeout", "2m"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_EQ(Written(), "{\"name\":\"a\",\"n\":5}\nid-a 6 2 t-a\n");
  EXPECT_THAT(Said(), ElementsAre("open 1", "ack t-a"));  // No more than it will take.
  const v1::ReceiveRequest::Open& open = fake().said.at(0).open();
  EXPECT_EQ(open.queue(), "mails");
  EXPECT_EQ(open.timeout().seconds(), 120);
  EXPECT_EQ(open.encoding(), v1::ENCODING_BSON);
}

TEST_F(WorkCommand, ACommandThatFailsSaysWhy) {
  fake().streams = {
      {{Messages({"a"}), kSomethingSaid, Messages({"b"}), kSomethingSaid, Messages({"c"})}, {}}};
  const Outcome outcome = RunScript(
      R"(read -r line; case "$line" in *'"a"'*) echo 'no paper' >&2; exit 3;;
         *'"b"'*) kill -9 $$;; esac)",
      {"--count", "3"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_EQ(outcome.err, "no paper\n");
  EXPECT_THAT(Said(), ElementsAre("open 1", "back t-a exit status 3: no paper",
                                  "back t-b killed by signal 9", "ack t-c"));
}

TEST_F(WorkCommand, CreditsRunSideBySide) {
  fake().streams = {{{Messages({"a", "b", "c"})}, {}}};
  // Each waits for the others.
  const Outcome outcome = RunScript(
      R"(echo . >> $OUT; i=0
         while [ $(wc -l < $OUT) -lt 3 ]; do
           i=$((i+1)); [ $i -gt 500 ] && exit 1; sleep .02
         done)",
      {"--count", "3", "--credits", "3"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_THAT(Said(), UnorderedElementsAre("open 3", "ack t-a", "ack t-b", "ack t-c"));
}

TEST_F(WorkCommand, WhatIsBeyondTheCountIsLeft) {
  fake().streams = {{{Messages({"a", "b", "c"})}, {}}};
  EXPECT_EQ(RunScript("true", {"--count", "1"}).status, kExitOk);
  EXPECT_THAT(Said(), ElementsAre("open 1", "ack t-a"));
}

TEST_F(WorkCommand, ExtendsWhileACommandRuns) {
  fake().streams = {{{Messages({"a"})}, {}}};
  const Outcome outcome = RunScript("sleep 1", {"--count", "1", "--timeout", "600ms"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  int extended = 0;
  for (const v1::ReceiveRequest& request : fake().said) {
    if (!request.has_extend()) continue;
    ++extended;
    EXPECT_THAT(request.extend().tokens(), ElementsAre("t-a"));
    EXPECT_EQ(request.extend().timeout().nanos(), 600'000'000);
  }
  EXPECT_GE(extended, 2);
  EXPECT_THAT(Said(), ElementsAre("open 1", "ack t-a"));
}

TEST_F(WorkCommand, SaysWhichReservationsAreLost) {
  fake().streams = {
      {{Messages({"a"}), kSomethingSaid, Messages({"b"}), kSomethingSaid, Messages({"c"})}, {}}};
  fake().refused["t-a"] = Error("RESERVATION_LOST", {{"delivery", "5"}, {"actual", "6"}});
  // What the command did itself: it acknowledged the one, and moved the other.
  fake().refused["t-b"] = Error("MESSAGE_NOT_FOUND");
  fake().refused["t-c"] = Error("RESERVATION_LOST", {{"delivery", "5"}, {"actual", "5"}});
  const Outcome outcome = RunScript("true", {"--count", "3"});
  EXPECT_EQ(outcome.status, kExitOk);
  EXPECT_EQ(outcome.err, "message id-a: RESERVATION_LOST: why (actual=6 delivery=5)\n");
}

TEST_F(WorkCommand, GoesOnWhenTheStreamBreaks) {
  fake().streams = {{{Messages({"a"}), kSomethingSaid, Messages({"b"}), kSomethingSaid}, kDraining},
                    {{Messages({"c"})}, {}}};
  const Outcome outcome = RunScript("true", {"--count", "3"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_THAT(Said(), ElementsAre("open 1", "ack t-a", "ack t-b", "open 1", "ack t-c"));
}

TEST_F(WorkCommand, WhatEndsBehindItsStreamIsSaidApart) {
  // It breaks when both have begun: they are extended.
  fake().streams = {{{Messages({"a", "b"}), kSomethingSaid, kSomethingSaid}, kDraining},
                    {{Messages({"c"})}, {}}};
  const Outcome outcome = RunScript(
      R"(read -r line; case "$line" in *'"c"'*) ;; *'"b"'*) sleep 1; exit 3;; *) sleep 1;; esac)",
      {"--count", "3", "--credits", "2", "--timeout", "600ms"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_THAT(fake().said.at(1).extend().tokens(), ElementsAre("t-a", "t-b"));
  EXPECT_THAT(Said(), ElementsAre("open 2", "open 2", "ack t-c"));
  EXPECT_THAT(fake().acknowledged, ElementsAre("t-a"));
  EXPECT_THAT(fake().last_rollback.tokens(), ElementsAre("t-b"));
  EXPECT_EQ(fake().last_rollback.reason(), "exit status 3");
}

TEST_F(WorkCommand, SaysWhyTheServerRefuses) {
  fake().streams = {{{}, {grpc::StatusCode::NOT_FOUND, "no such queue"}}};
  const Outcome outcome = RunScript("true");
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_THAT(outcome.err, HasSubstr("no such queue"));
}

TEST_F(WorkCommand, ACommandThatCannotBeRunIsNoFailureOfTheMessage) {
  fake().streams = {{{Messages({"a"})}, {}}};
  const Outcome outcome =
      RunBare({"work", "mails", "--server", server_.address(), "--", "/no/such/program", "--help"});
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_THAT(outcome.err, HasSubstr("cannot run /no/such/program"));
  EXPECT_THAT(Said(), ElementsAre("open 1"));
}

TEST_F(WorkCommand, AnInterruptionWaitsForTheCommand) {
  ASSERT_EQ(kSignalsBlocked, 0);
  fake().streams = {{{Messages({"a"}), kSomethingSaid, Messages({"b"})}, {}}};
  const Outcome outcome = RunScript("kill -INT $PPID; sleep .3; echo done > $OUT");
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_EQ(Written(), "done\n");
  EXPECT_THAT(Said(), ElementsAre("open 1", "ack t-a"));  // And nothing else has begun.
}

TEST_F(WorkCommand, ASecondInterruptionEndsTheCommand) {
  fake().streams = {{{Messages({"a"})}, {}}};
  const Outcome outcome = RunScript("kill -INT $PPID; sleep .3; kill -TERM $PPID; sleep 30");
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_THAT(Said(), ElementsAre("open 1", "back t-a killed by signal 15"));
  EXPECT_TRUE(fake().said.at(1).rollback().not_counted());
}

}  // namespace
}  // namespace strata::cli
