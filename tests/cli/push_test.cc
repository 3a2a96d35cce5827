// Claims about push: what is sent, and that of a file each line is pushed once, whatever happens.
#include <gmock/gmock.h>

#include <fstream>
#include <set>
#include <string>

#include "clients/cli/pusher.h"
#include "clients/cpp/extended_json.h"
#include "tests/cli/command_line.h"
#include "tests/cli/status_of.h"
#include "tests/support/temporary_directory.h"

namespace strata::cli {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

std::string Bson(const std::string& json) { return client::BsonFromJson(json).value(); }

std::string Lines(int count) {
  std::string lines;
  for (int i = 1; i <= count; ++i) lines += "{\"n\":" + std::to_string(i) + "}\n";
  return lines;
}

class PushCommand : public CommandLine {
 protected:
  FakeQueues& fake() { return server_.queues; }

  // How often each request id was pushed under: once.
  std::set<std::string> Ids() {
    std::set<std::string> ids;
    for (const v1::PushedMessage& message : fake().pushed) ids.insert(message.request_id());
    EXPECT_EQ(ids.size(), fake().pushed.size());
    return ids;
  }
};

TEST_F(PushCommand, SendsWhatTheOptionsSay) {
  const Outcome outcome = Run({"push", "mails", R"({"to": "ann"})", "--priority", "5", "--key",
                               "ann", "--header", "a=1", "--sequence", "17", "--delay", "10s",
                               "--expires", "2026-01-31", "--request-id", "r1"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_EQ(outcome.out, "pushed id1\n");
  EXPECT_EQ(fake().last_push.queue(), "mails");
  ASSERT_THAT(fake().pushed, SizeIs(1));
  const v1::PushedMessage& message = fake().pushed[0];
  EXPECT_EQ(message.payload().bson(), Bson(R"({"to": "ann"})"));
  EXPECT_EQ(message.priority(), 5);
  EXPECT_EQ(message.ordering_key(), "ann");
  EXPECT_EQ(message.headers().at("a"), "1");
  EXPECT_EQ(message.sequence_number(), 17);
  EXPECT_EQ(message.delay().seconds(), 10);
  EXPECT_EQ(message.expire_time().seconds(), 1769817600);
  EXPECT_EQ(Run({"push", "mails", "{}", "--request-id", "r1"}).out,
            "pushed id1 (by an earlier call with this request id)\n");
  EXPECT_EQ(Run({"push", "mails", "-", "--at", "2026-01-31"}, R"({"sequence_number": 3})").status,
            kExitOk);
  EXPECT_EQ(fake().last_push.messages(0).deliver_time().seconds(), 1769817600);
  EXPECT_FALSE(fake().last_push.messages(0).has_sequence_number());
  EXPECT_EQ(fake().last_push.messages(0).request_id(), "");
}

TEST_F(PushCommand, ARefusalIsTold) {
  fake().push_failures = {StatusOf(grpc::StatusCode::NOT_FOUND, "QUEUE_NOT_FOUND", "no queue")};
  const Outcome outcome = Run({"push", "mails", "{}"});
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_THAT(outcome.err, HasSubstr("strata queue create"));
  v1::ApplyError error;
  error.set_code(grpc::StatusCode::UNAVAILABLE);
  error.set_message("no disk");
  fake().push_errors = {error};
  EXPECT_THAT(Run({"push", "mails", "{}"}).err, HasSubstr("no disk"));
}

TEST_F(PushCommand, LinesKeepTheirNumbers) {
  v1::PushedMessage message;
  ASSERT_TRUE(ParsePushLine(R"({"student_id": 1, "sequence_number": 1000})", message).ok());
  EXPECT_EQ(message.sequence_number(), 1000);
  EXPECT_EQ(message.payload().bson(), Bson(R"({"student_id": 1, "sequence_number": 1000})"));
  for (const char* const text : {R"({"sequence_number": 1.0})", R"({"sequence_number": "1"})",
                                 R"({"sequence_number": 0})", R"({"a": {"sequence_number": 1}})"}) {
    v1::PushedMessage other;
    ASSERT_TRUE(ParsePushLine(text, other).ok());
    EXPECT_FALSE(other.has_sequence_number()) << text;
  }
  EXPECT_FALSE(ParsePushLine("[1]", message).ok());
}

TEST_F(PushCommand, LinesGoInBatches) {
  const Outcome outcome =
      Run({"push", "mails", "-", "--lines", "--request-id", "f", "--priority", "2", "--json"},
          Lines(1000));
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, testing::StartsWith(R"({"messages":1000,"pushed":1000,"replayed":0,)"
                                               R"("refused":0,"malformed":0,"seconds":)"));
  EXPECT_THAT(Ids(), SizeIs(1000));
  EXPECT_TRUE(Ids().contains("f/1000"));
  EXPECT_EQ(fake().pushed[0].priority(), 2);
  const Outcome again = Run({"push", "mails", "-", "--lines", "--request-id", "f"}, Lines(1000));
  EXPECT_THAT(again.err, HasSubstr("1,000 messages: 0 pushed, 1,000 pushed before, 0 refused"));
  EXPECT_THAT(Ids(), SizeIs(1000));
}

TEST_F(PushCommand, OneKeyKeepsTheOrderOfTheFile) {
  const test_support::TemporaryDirectory directory;
  const std::string name = directory.Join("lines");
  std::ofstream(name) << Lines(500);
  EXPECT_EQ(Run({"push", "mails", "@" + name, "--lines", "--key", "k"}).status, kExitOk);
  ASSERT_THAT(fake().pushed, SizeIs(500));
  for (int i = 1; i <= 500; ++i) {
    EXPECT_EQ(fake().pushed[i - 1].payload().bson(), Bson("{\"n\":" + std::to_string(i) + "}"));
  }
}

TEST_F(PushCommand, ABadLineDoesNotKeepTheOthers) {
  fake().bad_payloads = {Bson("{\"n\":7}"), Bson("{\"n\":50}")};
  const Outcome outcome =
      Run({"push", "mails", "-", "--lines"}, Lines(60) + "no json\n\n{\"n\":61}\n");
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_THAT(Ids(), SizeIs(59));
  EXPECT_THAT(outcome.err, HasSubstr("stdin:7: INVALID_ARGUMENT: a bad payload\n"));
  EXPECT_THAT(outcome.err, HasSubstr("stdin:50: INVALID_ARGUMENT: a bad payload\n"));
  EXPECT_THAT(outcome.err, HasSubstr("stdin:61: "));
  EXPECT_THAT(outcome.err, HasSubstr("62 messages: 59 pushed, 2 refused, 1 malformed"));
}

TEST_F(PushCommand, WhatHasNoAnswerIsSentAgain) {
  fake().push_failures = {{grpc::StatusCode::UNAVAILABLE, "gone"},
                          {grpc::StatusCode::DEADLINE_EXCEEDED, "slow"}};
  v1::ApplyError unknown;
  unknown.set_code(grpc::StatusCode::UNAVAILABLE);
  unknown.set_reason("OUTCOME_UNKNOWN");
  fake().push_errors = {v1::ApplyError(), unknown, v1::ApplyError(), unknown};
  const Outcome outcome = Run({"push", "mails", "-", "--lines"}, Lines(300));
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_THAT(Ids(), SizeIs(300));
}

TEST_F(PushCommand, StopsWhereNoLineWouldFareBetter) {
  for (int i = 0; i < 100; ++i) {
    fake().push_failures.push_back(
        StatusOf(grpc::StatusCode::NOT_FOUND, "QUEUE_NOT_FOUND", "no queue"));
  }
  const Outcome outcome =
      Run({"push", "mails", "-", "--lines", "--request-id", "f"}, Lines(20'000));
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_LE(fake().push_calls, 4);
  EXPECT_THAT(outcome.err, HasSubstr("stdin:1: QUEUE_NOT_FOUND: no queue\n"));
  EXPECT_THAT(outcome.err, HasSubstr("with --request-id f, as before"));
}

TEST_F(PushCommand, GivesUpInTime) {
  for (int i = 0; i < 1000; ++i) {
    fake().push_failures.push_back({grpc::StatusCode::UNAVAILABLE, "gone"});
  }
  const Outcome outcome = Run({"push", "mails", "-", "--lines", "--retry-for", "300ms"}, Lines(3));
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_THAT(outcome.err, HasSubstr("3 messages: 0 pushed, 3 refused"));
}

}  // namespace
}  // namespace strata::cli
