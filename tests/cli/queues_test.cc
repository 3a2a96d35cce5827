// Claims about the commands of queues but push and work: what they send and what they print.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "clients/cpp/extended_json.h"
#include "google/protobuf/util/json_util.h"
#include "tests/cli/command_line.h"
#include "tests/cli/status_of.h"

namespace strata::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <typename Message>
Message Parse(const std::string& json) {
  Message message;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &message).ok()) << json;
  return message;
}

v1::Content Payload(const std::string& json) {
  v1::Content content;
  content.set_bson(client::BsonFromJson(json).value());
  return content;
}

std::string TextProto(const google::protobuf::Message& message) {
  return message.ShortDebugString();
}

class QueueCommands : public CommandLine {
 protected:
  QueueCommands() {
    fake().queues = {Parse<v1::Queue>(R"({"name": "mails", "create_time": "2026-01-31T12:00:00Z",
            "settings": {"max_tries": 5, "dead_letter_queue": "dead-mails",
                         "reservation_timeout": "90s", "retry_delay": "0s",
                         "history_retention": "864000s", "retry_delay_max": "1.5s"},
            "statistics": {"ready": "1234", "scheduled": "1", "dead": "2",
                           "oldest_ready_age": "120s", "low_watermark": "17"}})"),
                     Parse<v1::Queue>(R"({"name": "changes", "settings": {"paused": true,
            "enrollments": {"collection": "students", "set": "lists", "max_in_flight": 7}}})")};
    fake().messages = {
        Parse<v1::QueueMessage>(R"({"message_id": "0a", "queue": "mails", "priority": 9,
            "due": "2026-01-31T12:00:00Z", "tries": 1, "delivery": "3", "token": "AQAB",
            "state": "MESSAGE_STATE_RESERVED", "headers": {"b": "2", "a": "1"},
            "reason": "exit status 3"})"),
        Parse<v1::QueueMessage>(R"({"message_id": "0b", "queue": "mails", "ordering_key": "ann",
            "sequence_number": "18", "state": "MESSAGE_STATE_DEAD", "token": "AQAC"})")};
    *fake().messages[0].mutable_payload() = Payload(R"({"to": "ann", "n": 5, "x": 1.0})");
    *fake().messages[1].mutable_payload() = Payload("{}");
    fake().schedules = {
        Parse<v1::Schedule>(R"({"queue": "mails", "name": "daily", "cron": "0 6 * * *",
                                "next_time": "2026-02-01T06:00:00Z"})"),
        Parse<v1::Schedule>(R"({"queue": "mails", "name": "sweep", "every": "600s"})")};
  }

  FakeQueues& fake() { return server_.queues; }
};

TEST_F(QueueCommands, CreateSendsEverySetting) {
  const Outcome outcome = Run({"queue",
                               "create",
                               "mails",
                               "--timeout",
                               "90",
                               "--max-tries",
                               "5",
                               "--dead-letter",
                               "dead-mails",
                               "--retry-delay",
                               "0",
                               "--retry-delay-max",
                               "1.5s",
                               "--history",
                               "10d",
                               "--lifetime",
                               "3650d",
                               "--paused",
                               "--enrollments",
                               "students",
                               "--set",
                               "lists",
                               "--in-flight",
                               "7"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_EQ(TextProto(fake().last_create_queue),
            "name: \"mails\" settings { reservation_timeout { seconds: 90 } max_tries: 5 "
            "dead_letter_queue: \"dead-mails\" retry_delay { } retry_delay_max { seconds: 1 nanos: "
            "500000000 } history_retention { seconds: 864000 } message_lifetime { seconds: "
            "315360000 } paused: true enrollments { collection: \"students\" set: \"lists\" "
            "max_in_flight: 7 } }");
  EXPECT_EQ(outcome.out,
            "NAME   MADE                 MAX TRIES  DEAD LETTER  STATE\n"
            "mails  2026-01-31 12:00:00          5  dead-mails   -\n");
  EXPECT_EQ(Run({"queue", "create", "mails"}).status, kExitOk);
  EXPECT_EQ(TextProto(fake().last_create_queue), "name: \"mails\" settings { }");
}

TEST_F(QueueCommands, GetShowsSettingsAndStatistics) {
  const Outcome outcome = Run({"queue", "get", "mails"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_EQ(fake().last_get_queue.name(), "mails");
  for (const char* const line :
       {"timeout          90s\n", "max-tries        5\n", "dead-letter      dead-mails\n",
        "retry-delay      0s\n", "retry-delay-max  1500ms\n", "history          10d\n",
        "lifetime         -\n", "paused           no\n", "enrollments      -\n",
        "READY  SCHEDULED  RESERVED  WAITING  DEAD  OLDEST READY  LOW WATERMARK\n"
        "1,234          1         0        0     2            2m             17\n"
        "    (a count is under way)\n"}) {
    EXPECT_THAT(outcome.out, HasSubstr(line));
  }
  fake().queues[0] = fake().queues[1];
  fake().queues[0].mutable_statistics()->set_exact(true);
  const Outcome other = Run({"queue", "get", "changes"});
  EXPECT_THAT(other.out, HasSubstr("timeout          30s\n"));
  EXPECT_THAT(other.out, HasSubstr("enrollments      into students, set lists, 7 at a time\n"));
  EXPECT_THAT(other.out, testing::Not(HasSubstr("under way")));
  EXPECT_THAT(Run({"queue", "get", "changes", "--json"}).out, HasSubstr(R"("exact":true)"));
}

TEST_F(QueueCommands, ListFollowsThePages) {
  const Outcome outcome = Run({"queue", "list"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("mails  2026-01-31 12:00:00          5  dead-mails"));
  EXPECT_THAT(outcome.out, HasSubstr("paused, enrolls into students"));
  EXPECT_EQ(Run({"queue", "list", "--limit", "1"}).out.find("students"), std::string::npos);
  EXPECT_EQ(fake().last_list_queues.page_size(), 1);
}

TEST_F(QueueCommands, UpdateNamesWhatChanges) {
  EXPECT_EQ(Run({"queue", "update", "mails", "--resume", "--timeout", "2m", "--unset", "history",
                 "--unset", "max-tries"})
                .status,
            kExitOk);
  EXPECT_EQ(TextProto(fake().last_update_queue),
            "name: \"mails\" settings { reservation_timeout { seconds: 120 } } update_mask { "
            "paths: \"history_retention\" paths: \"max_tries\" paths: \"paused\" paths: "
            "\"reservation_timeout\" }");
  EXPECT_EQ(Run({"queue", "update", "mails", "--paused", "--dead-letter", ""}).status, kExitOk);
  EXPECT_EQ(TextProto(fake().last_update_queue),
            "name: \"mails\" settings { paused: true } update_mask { paths: \"dead_letter_queue\" "
            "paths: \"paused\" }");
}

TEST_F(QueueCommands, DeleteIsAskedToBeForced) {
  EXPECT_EQ(Run({"queue", "delete", "mails", "--force"}).out, "deleted queue mails\n");
  EXPECT_TRUE(fake().last_delete_queue.force());
  fake().end = StatusOf(grpc::StatusCode::FAILED_PRECONDITION, "QUEUE_NOT_EMPTY", "not empty");
  const Outcome refused = Run({"queue", "delete", "mails"});
  EXPECT_EQ(refused.status, kExitRefused);
  EXPECT_FALSE(fake().last_delete_queue.force());
  EXPECT_THAT(refused.err, HasSubstr("--force"));
}

TEST_F(QueueCommands, WhatIsNotUnderstoodIsNotSent) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"queue"},
           {"queue", "create"},
           {"queue", "create", "q", "--timeout", "long"},
           {"queue", "create", "q", "--max-tries", "0"},
           {"queue", "create", "q", "--set", "s"},
           {"queue", "create", "q", "--lifetime", "4000d"},
           {"queue", "update", "q"},
           {"queue", "update", "q", "--paused", "--resume"},
           {"queue", "update", "q", "--unset", "paused"},
           {"queue", "update", "q", "--history", "1d", "--unset", "history"},
           {"pop", "q", "--count", "101"},
           {"reserve", "q", "--timeout", "1x"},
           {"ack"},
           {"rollback", "t", "--dead", "--delay", "1s"},
           {"rollback", "t", "--dead", "--not-counted"},
           {"move", "t"},
           {"move", "t", "q", "--payload", "no"},
           {"messages", "q", "--state", "lost"},
           {"messages", "q", "--state", "dead", "--id", "0a"},
           {"replay", "q"},
           {"replay", "q", "--id", "0a", "--state", "dead"},
           {"replay", "q", "--id", "0a", "--from", "2026-01-31"},
           {"purge", "q"},
           {"schedule", "create", "q", "n"},
           {"schedule", "create", "q", "n", "--cron", "* * * * *", "--every", "1m"},
           {"push", "q"},
           {"push", "q", "5"},
           {"push", "q", "{}", "--delay", "1s", "--at", "2026-01-31"},
           {"push", "q", "{}", "--priority", "10"},
           {"push", "q", "{}", "--header", "x"},
           {"push", "q", "{}", "--in-flight", "2"},
           {"push", "q", "/no/such/file", "--lines"},
           {"push", "q", "-", "--lines", "--sequence", "1"},
           {"work", "q"},
           {"work", "q", "--credits", "1001", "--", "true"},
           {"commit"},
           {"commit", "--push", "{}"},
           {"commit", "--push", "q=5"}}) {
    EXPECT_EQ(Run(arguments).status, kExitUsage) << testing::PrintToString(arguments);
  }
  EXPECT_TRUE(server_.received_calls().empty());
}

TEST_F(QueueCommands, PopPrintsPayloads) {
  const Outcome outcome = Run({"pop", "mails", "--count", "2", "--wait", "20s"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_EQ(TextProto(fake().last_pop),
            "queue: \"mails\" count: 2 wait { seconds: 20 } encoding: ENCODING_BSON");
  EXPECT_THAT(outcome.out, HasSubstr("{\"to\":\"ann\",\"n\":5,\"x\":1.0}\n"));
  fake().messages.clear();
  const Outcome nothing = Run({"pop", "mails"});
  EXPECT_EQ(nothing.status, kExitOk);
  EXPECT_EQ(nothing.out, "");
  EXPECT_EQ(nothing.err, "no message came\n");
}

TEST_F(QueueCommands, ReservePrintsTokensToo) {
  const Outcome outcome = Run({"reserve", "mails", "--count", "2", "--timeout", "1m"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_EQ(fake().last_reserve.timeout().seconds(), 60);
  EXPECT_EQ(outcome.out, "AQAB\t{\"to\":\"ann\",\"n\":5,\"x\":1.0}\nAQAC\t{}\n");
  const Outcome json = Run({"reserve", "mails", "--json"});
  EXPECT_FALSE(fake().last_reserve.has_timeout());
  EXPECT_THAT(json.out, HasSubstr(R"("message_id":"0a")"));
  EXPECT_THAT(json.out, HasSubstr(R"("token":"AQAB")"));
}

TEST_F(QueueCommands, TokensAreDoneWithInHundreds) {
  std::vector<std::string> arguments = {"ack"};
  for (int i = 0; i < 150; ++i) arguments.push_back("t" + std::to_string(i));
  EXPECT_EQ(Run(arguments).out, "acknowledged 150 messages\n");
  EXPECT_EQ(fake().acknowledged.size(), 150U);
  EXPECT_EQ(fake().last_acknowledge.tokens_size(), 50);
  EXPECT_EQ(Run({"rollback", "a", "b", "--delay", "0", "--not-counted", "--reason", "busy"}).out,
            "rolled back 2 messages\n");
  EXPECT_EQ(TextProto(fake().last_rollback),
            "tokens: \"a\" tokens: \"b\" delay { } not_counted: true reason: \"busy\"");
  EXPECT_EQ(Run({"rollback", "a", "--dead"}).status, kExitOk);
  EXPECT_EQ(TextProto(fake().last_rollback), "tokens: \"a\" dead: true");
  EXPECT_EQ(Run({"extend", "a", "--timeout", "1h"}).out, "extended 1 message\n");
  EXPECT_EQ(fake().last_extend.timeout().seconds(), 3600);
}

TEST_F(QueueCommands, ATokenThatIsRefusedIsNamed) {
  v1::ApplyError& error = fake().refused["b"];
  error.set_code(grpc::StatusCode::FAILED_PRECONDITION);
  error.set_reason("RESERVATION_LOST");
  error.set_message("it was handed out again");
  const Outcome outcome = Run({"ack", "a", "b"});
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_EQ(outcome.out, "acknowledged 1 message\n");
  EXPECT_EQ(outcome.err, "b: RESERVATION_LOST: it was handed out again\n");
  const Outcome json = Run({"ack", "a", "b", "--json"});
  EXPECT_EQ(json.status, kExitRefused);
  EXPECT_THAT(json.out, testing::StartsWith("{\"replayed\":false}\n"));
  EXPECT_THAT(json.out, HasSubstr(R"("reason":"RESERVATION_LOST")"));
}

TEST_F(QueueCommands, MoveSendsWhatChanges) {
  const Outcome outcome =
      Run({"move", "AQAB", "other", "--payload", "-", "--header", "k=v", "--delay", "10s"},
          R"({"to": "bob"})");
  EXPECT_EQ(outcome.out, "moved 0a to other\n") << outcome.err;
  EXPECT_EQ(fake().last_move.token(), "AQAB");
  EXPECT_EQ(fake().last_move.payload().bson(), Payload(R"({"to": "bob"})").bson());
  EXPECT_EQ(fake().last_move.headers().at("k"), "v");
  EXPECT_EQ(fake().last_move.delay().seconds(), 10);
  EXPECT_EQ(Run({"move", "AQAB", "other"}).status, kExitOk);
  EXPECT_FALSE(fake().last_move.has_payload());
  EXPECT_FALSE(fake().last_move.has_delay());
}

TEST_F(QueueCommands, MessagesAreATable) {
  const Outcome outcome = Run({"messages", "mails", "--show"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_EQ(fake().last_list_messages.state(), v1::MESSAGE_STATE_UNSPECIFIED);
  EXPECT_THAT(outcome.out,
              HasSubstr("ID  STATE     DUE                  PRIORITY  TRIES  DELIVERY  KEY  "
                        "SEQUENCE\n"
                        "0a  reserved  2026-01-31 12:00:00         9      1         3  -           "
                        "-\n"
                        "    reason: exit status 3\n    a=1\n    b=2\n"
                        "    {\"to\":\"ann\",\"n\":5,\"x\":1.0}\n"));
  EXPECT_THAT(outcome.out, HasSubstr("0b  dead "));
  const Outcome brief = Run({"messages", "mails", "--state", "dead"});
  EXPECT_EQ(fake().last_list_messages.state(), v1::MESSAGE_STATE_DEAD);
  EXPECT_EQ(brief.out.find("{"), std::string::npos);
  const Outcome one = Run({"messages", "mails", "--id", "0a"});
  EXPECT_EQ(fake().last_get_message.message_id(), "0a");
  EXPECT_THAT(one.out, HasSubstr("    {\"to\":\"ann\""));
}

TEST_F(QueueCommands, ReplayGoesOnWhileThereIsMore) {
  fake().calls_wanted = 3;
  const Outcome outcome = Run({"replay", "mails", "--state", "dead", "--state", "finished",
                               "--from", "2026-01-31", "--target", "other"});
  EXPECT_EQ(outcome.out, "replayed 6 messages\n") << outcome.err;
  const v1::ReplayRequest& sent = fake().last_replay;
  EXPECT_THAT(sent.states(), ElementsAre(v1::MESSAGE_STATE_DEAD, v1::MESSAGE_STATE_FINISHED));
  EXPECT_EQ(sent.target_queue(), "other");
  EXPECT_TRUE(sent.has_start_time());
  // What ends meanwhile is not replayed for ever.
  EXPECT_TRUE(sent.has_end_time());
  ASSERT_EQ(Run({"replay", "mails", "--state", "dead"}).status, kExitOk);
  EXPECT_FALSE(sent.has_end_time());
  ASSERT_EQ(Run({"replay", "mails", "--state", "dead", "--to", "2026-02-01"}).status, kExitOk);
  EXPECT_EQ(sent.end_time().seconds(), 1769904000);
}

TEST_F(QueueCommands, PurgeTakesIdsInHundreds) {
  fake().calls_wanted = 0;
  std::vector<std::string> arguments = {"purge", "mails"};
  for (int i = 0; i < 201; ++i) arguments.insert(arguments.end(), {"--id", std::to_string(i)});
  EXPECT_EQ(Run(arguments).out, "purged 6 messages\n");
  EXPECT_EQ(fake().calls, 3);
  EXPECT_THAT(fake().last_purge_messages.message_ids(), ElementsAre("200"));
  fake().calls = 0;
  fake().calls_wanted = 2;
  EXPECT_EQ(Run({"purge", "mails", "--state", "ready", "--json"}).out,
            "{\"messages\":\"3\",\"more\":false}\n");
  EXPECT_THAT(fake().last_purge_messages.states(), ElementsAre(v1::MESSAGE_STATE_READY));
}

TEST_F(QueueCommands, SchedulesAreMadeListedAndDeleted) {
  const Outcome made = Run({"schedule", "create", "mails", "daily", R"({"to": "all"})", "--cron",
                            "0 6 * * *", "--priority", "3", "--key", "k", "--header", "a=1"});
  EXPECT_EQ(made.status, kExitOk) << made.err;
  const v1::CreateScheduleRequest& sent = fake().last_create_schedule;
  EXPECT_EQ(sent.cron(), "0 6 * * *");
  EXPECT_EQ(sent.message().payload().bson(), Payload(R"({"to": "all"})").bson());
  EXPECT_EQ(sent.message().priority(), 3);
  EXPECT_EQ(sent.message().ordering_key(), "k");
  EXPECT_EQ(sent.message().headers().at("a"), "1");
  EXPECT_THAT(made.out, HasSubstr("daily  0 6 * * *  2026-02-01 06:00:00"));
  EXPECT_EQ(Run({"schedule", "create", "mails", "sweep", "--every", "10m"}).status, kExitOk);
  EXPECT_EQ(sent.every().seconds(), 600);
  EXPECT_FALSE(sent.message().has_payload());
  EXPECT_THAT(Run({"schedule", "list", "mails"}).out, HasSubstr("sweep  every 10m"));
  EXPECT_EQ(Run({"schedule", "delete", "mails", "daily"}).out, "deleted schedule daily\n");
  EXPECT_EQ(TextProto(fake().last_delete_schedule), "queue: \"mails\" name: \"daily\"");
}

TEST_F(QueueCommands, CommitAcknowledgesAndPushes) {
  server_.transactions.committed = Parse<v1::CommitResponse>(
      R"({"transaction_id": "t1", "commit_position": "7", "message_ids": ["0c"]})");
  const Outcome outcome =
      Run({"commit", "--acknowledge", "AQAB", "--push", R"(mails={"to": "a=b"})"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  const v1::CommitRequest& sent = server_.transactions.last_commit;
  EXPECT_THAT(sent.acknowledge(), ElementsAre("AQAB"));
  ASSERT_EQ(sent.pushes_size(), 1);
  EXPECT_EQ(sent.pushes(0).queue(), "mails");
  EXPECT_EQ(sent.pushes(0).message().payload().bson(), Payload(R"({"to": "a=b"})").bson());
  EXPECT_EQ(outcome.out, "acknowledged 1 message\npushed 0c to mails\ntransaction t1, commit 7\n");
  EXPECT_EQ(Run({"commit", "-", "--acknowledge", "B"}, R"({"acknowledge": ["A"], "pushes": [
                {"queue": "q", "message": {"payload": {"json": {"a": 1}}, "priority": 2}}]})")
                .status,
            kExitOk);
  EXPECT_THAT(sent.acknowledge(), ElementsAre("A", "B"));
  EXPECT_EQ(sent.pushes(0).message().payload().bson(), Payload(R"({"a": 1})").bson());
}

TEST_F(QueueCommands, APurgeOfTombstonesAsksQueues) {
  const Outcome outcome =
      Run({"purge-tombstones", "250", "--queue", "changes", "--queue", "dead-changes"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_THAT(server_.enrollments.last_purge.queues(), ElementsAre("changes", "dead-changes"));
  EXPECT_THAT(outcome.out, HasSubstr("; up to 0\n"));
  EXPECT_THAT(outcome.err, HasSubstr("Nothing may go yet"));
}

}  // namespace
}  // namespace strata::cli
