// Claims about consume: what a command gets, what becomes of its exit status, and where lines go.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "google/protobuf/util/json_util.h"
#include "tests/cli/command_line.h"
#include "tests/support/temporary_directory.h"

namespace strata::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

v1::ConsumeResponse Message(const std::string& json) {
  v1::ConsumeResponse message;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &message).ok()) << json;
  return message;
}

std::string Delivery(int position, const std::string& id, int attempt = 1, bool replay = false) {
  return R"({"event": {"type": "EVENT_TYPE_VERSION", "position": ")" + std::to_string(position) +
         R"(", "collection": "orders", "id": ")" + id +
         R"(", "version": {"version": "1", "kind": "VERSION_KIND_CREATED"}}, "attempt": )" +
         std::to_string(attempt) + R"(, "replay": )" + (replay ? "true" : "false") +
         R"(, "lease": {"name": "$sub/1/0", "token": "9", "position": ")" +
         std::to_string(position) + R"(", "index": 0}})";
}

v1::ConsumeResponse Deliveries(int partition, const std::string& deliveries) {
  return Message(R"({"deliveries": {"partition": )" + std::to_string(partition) +
                 R"(, "deliveries": [)" + deliveries + "]}}");
}

v1::ConsumeResponse Assigned(int partition) {
  return Message(R"({"assigned": {"partition": )" + std::to_string(partition) +
                 R"(, "token": "9"}})");
}

const v1::ConsumeResponse kSomethingSaid;

class ConsumeCommand : public CommandLine {
 protected:
  FakeFeed& feed() { return server_.feed; }

  // With a shell's script as command, which may write to $OUT.
  Outcome RunScript(const std::string& script, const std::vector<std::string>& options = {}) {
    std::vector<std::string> arguments = {"consume", "mail", "--server", server_.address()};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(),
                     {"--", "/bin/sh", "-c", "OUT=" + directory_.Join("out") + "; " + script});
    return RunBare(arguments);
  }
  std::string Written() const {
    std::ifstream file(directory_.Join("out"));
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  // "open", "ack 0 7", "nack 0 7 why": what was said to the server, in order.
  std::vector<std::string> Said() {
    std::vector<std::string> said;
    for (const v1::ConsumeRequest& request : feed().said) {
      if (request.has_open()) said.push_back("open " + request.open().subscription());
      if (request.has_ack()) {
        said.push_back("ack " + std::to_string(request.ack().partition()) + " " +
                       std::to_string(request.ack().position()));
      }
      if (request.has_nack()) {
        said.push_back("nack " + std::to_string(request.nack().partition()) + " " +
                       std::to_string(request.nack().position()) + " " + request.nack().reason());
      }
    }
    return said;
  }

  test_support::TemporaryDirectory directory_;
};

const grpc::Status kDraining(grpc::StatusCode::UNAVAILABLE, "server is draining");

TEST_F(ConsumeCommand, AsksForWhatIsWanted) {
  feed().deliveries = {{{Assigned(0), Assigned(1), Deliveries(0, Delivery(7, "a"))}, {}}};
  const Outcome outcome = Run({"consume", "mail", "--consumer", "me", "--window", "5", "--content",
                               "--changes", "--count", "1"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  const v1::ConsumeRequest::Open& open = feed().said.at(0).open();
  EXPECT_EQ(open.subscription(), "mail");
  EXPECT_EQ(open.consumer(), "me");
  EXPECT_EQ(open.window(), 5);
  EXPECT_TRUE(open.include_content());
  EXPECT_TRUE(open.include_changes());
}

TEST_F(ConsumeCommand, SaysWhoItIsUnlessTold) {
  feed().deliveries = {{{Assigned(0), Assigned(1), Deliveries(0, Delivery(7, "a"))}, {}}};
  EXPECT_EQ(Run({"consume", "mail", "--count", "1"}).status, kExitOk);
  EXPECT_THAT(feed().said.at(0).open().consumer(), HasSubstr("/" + std::to_string(getpid())));
}

TEST_F(ConsumeCommand, WithoutCommandLinesThatAreOutAreDone) {
  feed().deliveries = {
      {{Assigned(0), Assigned(1), Deliveries(0, Delivery(7, "a") + "," + Delivery(8, "b", 3)),
        Deliveries(1, Delivery(9, "c", 1, true))},
       {}}};
  const Outcome outcome = Run({"consume", "mail", "--count", "3"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("orders      a "));
  EXPECT_THAT(outcome.out, HasSubstr("(attempt 3)"));
  EXPECT_THAT(outcome.out, HasSubstr("(was parked)"));
  EXPECT_THAT(Said(), testing::IsSupersetOf({"ack 0 8", "ack 1 9"}));
}

TEST_F(ConsumeCommand, PrintsEventsForMachines) {
  feed().deliveries = {{{Assigned(0), Assigned(1), Deliveries(0, Delivery(7, "a"))}, {}}};
  const Outcome outcome = Run({"consume", "mail", "--json", "--count", "1"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr(R"("position":"7")"));
}

TEST_F(ConsumeCommand, ACommandGetsTheEventAndItsLease) {
  feed().deliveries = {{{Assigned(0), Assigned(1), Deliveries(0, Delivery(7, "a", 2))}, {}}};
  const Outcome outcome = RunScript(
      R"(read -r line; echo "$line" > $OUT; echo "$STRATA_LEASE $STRATA_ATTEMPT" >> $OUT)",
      {"--count", "1"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_THAT(Written(), HasSubstr(R"("position":"7")"));
  EXPECT_THAT(Written(), HasSubstr("\n{\"name\":\"$sub/1/0\",\"token\":\"9\",\"position\":\"7\","
                                   "\"index\":0} 2\n"));
  EXPECT_THAT(Said(), ElementsAre("open mail", "ack 0 7"));
}

TEST_F(ConsumeCommand, ACommandThatFailsSaysWhy) {
  feed().deliveries = {
      {{Assigned(0), Assigned(1), Deliveries(0, Delivery(7, "a") + "," + Delivery(8, "b")),
        Deliveries(1, Delivery(9, "c"))},
       {}}};
  const Outcome outcome = RunScript(
      R"(read -r line; case "$line" in *'"id":"a"'*) echo first >&2; echo 'no paper' >&2; echo >&2
         exit 3;; esac)",
      {"--count", "2"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_EQ(outcome.err, "first\nno paper\n\n");
  // What came behind it counts for nothing; the other partition goes on.
  EXPECT_THAT(Said(), ElementsAre("open mail", "nack 0 7 no paper", "ack 1 9"));
}

TEST_F(ConsumeCommand, ACommandThatSaysNothingFailsWithItsStatus) {
  feed().deliveries = {
      {{Assigned(0), Assigned(1), Deliveries(0, Delivery(7, "a")), Deliveries(1, Delivery(8, "b"))},
       {}}};
  RunScript(R"(read -r line; case "$line" in *'"id":"a"'*) exit 3;; esac; kill -9 $$)",
            {"--count", "2"});
  EXPECT_THAT(Said(),
              ElementsAre("open mail", "nack 0 7 exit status 3", "nack 1 8 killed by signal 9"));
}

TEST_F(ConsumeCommand, AReasonIsCutBetweenCharacters) {
  feed().deliveries = {{{Assigned(0), Assigned(1), Deliveries(0, Delivery(7, "a"))}, {}}};
  RunScript(R"(printf 'x' >&2; i=0; while [ $i -lt 600 ]; do printf 'ü' >&2; i=$((i+1)); done
               exit 1)",
            {"--count", "1"});
  ASSERT_THAT(feed().said, SizeIs(2));
  std::string reason = "x";
  for (int i = 0; i < 511; ++i) reason += "ü";
  EXPECT_EQ(feed().said[1].nack().reason(), reason);
}

TEST_F(ConsumeCommand, BehindAFailureEventsCountAgainOnceItHasCome) {
  feed().deliveries = {
      {{Assigned(0), Assigned(1), Deliveries(0, Delivery(7, "a") + "," + Delivery(8, "b")),
        kSomethingSaid, Deliveries(0, Delivery(9, "c")),
        Deliveries(0, Delivery(7, "a", 2) + "," + Delivery(8, "b"))},
       {}}};
  const Outcome outcome =
      RunScript(R"(test "$STRATA_ATTEMPT" = 2 || grep -q '"id":"b"')", {"--count", "3"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_THAT(Said(), ElementsAre("open mail", "nack 0 7 exit status 1", "ack 0 7", "ack 0 8"));
}

TEST_F(ConsumeCommand, BehindAFailureEventsCountAgainOnceItIsDoneWith) {
  feed().deliveries = {{{Assigned(0), Assigned(1), Deliveries(0, Delivery(7, "a")), kSomethingSaid,
                         Deliveries(0, Delivery(8, "b")),
                         Message(R"({"acknowledged": {"partition": 0, "position": "7"}})"),
                         Deliveries(0, Delivery(9, "b"))},
                        {}}};
  const Outcome outcome = RunScript(R"(grep -q '"id":"b"')", {"--count", "2"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_THAT(Said(), ElementsAre("open mail", "nack 0 7 exit status 1", "ack 0 9"));
}

TEST_F(ConsumeCommand, GoesOnWhenTheStreamBreaks) {
  feed().deliveries = {
      {{Assigned(0), Assigned(1), Deliveries(0, Delivery(7, "a")), kSomethingSaid}, kDraining},
      {{Assigned(0), Deliveries(0, Delivery(7, "a", 2))}, {}}};
  const Outcome outcome = RunScript(R"(echo $STRATA_ATTEMPT >> $OUT)", {"--count", "2"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  const auto opened = Said();
  EXPECT_EQ(std::count(opened.begin(), opened.end(), "open mail"), 2);
  EXPECT_THAT(Written(), HasSubstr("2\n"));
}

TEST_F(ConsumeCommand, WaitsForAServerThatIsNotThereYetIfToldForHowLong) {
  const grpc::Status not_yet(grpc::StatusCode::UNAVAILABLE, "not yet");
  feed().deliveries = {
      {{}, not_yet}, {{}, not_yet}, {{Assigned(0), Deliveries(0, Delivery(7, "a"))}, {}}};
  EXPECT_EQ(Run({"consume", "mail", "--count", "1"}).status, kExitRefused);
  EXPECT_THAT(Said(), ElementsAre("open mail"));
  EXPECT_EQ(Run({"consume", "mail", "--count", "1", "--retry-for", "60s"}).status, kExitOk);
}

TEST_F(ConsumeCommand, SaysWhyTheServerRefuses) {
  feed().deliveries = {{{}, {grpc::StatusCode::NOT_FOUND, "no such subscription"}}};
  const Outcome outcome = Run({"consume", "mail"});
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_THAT(outcome.err, HasSubstr("no such subscription"));
}

TEST_F(ConsumeCommand, ACommandThatCannotBeRunIsNoFailureOfTheEvent) {
  feed().deliveries = {{{Assigned(0), Assigned(1), Deliveries(0, Delivery(7, "a"))}, {}}};
  const Outcome outcome = RunBare(
      {"consume", "mail", "--server", server_.address(), "--", "/no/such/program", "--help"});
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_THAT(outcome.err, HasSubstr("cannot run /no/such/program"));
  EXPECT_THAT(Said(), ElementsAre("open mail"));
}

}  // namespace
}  // namespace strata::cli
