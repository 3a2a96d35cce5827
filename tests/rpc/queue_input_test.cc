// Calls about queues that are refused: each row says what is asked for, which reason and field the
// answer must name, and what it must say. After each, what is stored is as it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "schemas/queue/message.h"
#include "schemas/store/keyspace.h"
#include "schemas/store/single_record_store.h"
#include "service/engines/engines.h"
#include "strata/v1/queue_service.grpc.pb.h"
#include "tests/rpc/secured_server.h"
#include "tests/rpc/test_server.h"

namespace strata::rpc_test {
namespace {

using testing::HasSubstr;

struct Row {
  std::string method;  // "Push"; "TransactionService/Commit"
  std::string request;
  ErrorReason reason;
  std::string field;
  std::string says;
};
using Rows = std::vector<Row>;

constexpr ErrorReason kField = ErrorReason::kInvalidField;
constexpr ErrorReason kName = ErrorReason::kInvalidName;
constexpr ErrorReason kMessage = ErrorReason::kInvalidMessage;
constexpr ErrorReason kNoQueue = ErrorReason::kQueueNotFound;
constexpr ErrorReason kNoMessage = ErrorReason::kMessageNotFound;
constexpr ErrorReason kLost = ErrorReason::kReservationLost;
constexpr ErrorReason kUnsupported = ErrorReason::kUnsupportedByEngine;

const std::string kNoId(32, '0');

std::unique_ptr<store::Store> Engine(bool single_record) {
  auto engine = *engines::OpenEngine("memory", engines::OpenOptions());
  if (!single_record) return engine;
  return std::make_unique<store::SingleRecordStore>(std::move(engine));
}

std::vector<std::string> StoredBytes(const store::Store& store) {
  std::vector<std::string> all;
  for (const store::Keyspace keyspace : store::kAllKeyspaces) {
    for (auto cursor = store.Scan(keyspace, {}); cursor->Valid(); cursor->Next()) {
      all.push_back(std::string(store::KeyspaceName(keyspace)) + " " + std::string(cursor->key()) +
                    " " + std::string(cursor->value()));
    }
  }
  return all;
}

bool IsEmpty(const store::Store& store, store::Keyspace keyspace) {
  return !store.Scan(keyspace, {})->Valid();
}

// `count` times the element, as a JSON array.
std::string Array(size_t count, const std::string& element) {
  std::string array = "[";
  for (size_t i = 0; i < count; ++i) array += (i == 0 ? "" : ", ") + element;
  return array + "]";
}

// A server with the queue "mails", which holds a message that is out, another that waits, pushed
// with the request id "first", and one that was acknowledged and is gone; the queue "others", which
// is empty; and tokens of a queue that was deleted. There is the document books/moby.
class QueueTable : public testing::Test {
 protected:
  explicit QueueTable(bool single_record) : QueueTable(Engine(single_record)) {}
  ~QueueTable() override { std::printf("refused: %d\n", rows_); }

  template <typename Response>
  static void Must(const Outcome<Response>& outcome) {
    ASSERT_TRUE(outcome.ok()) << outcome.status.error_message();
  }

  void Check(const Rows& rows) {
    for (const Row& row : rows) {
      SCOPED_TRACE(row.method + " " + row.request.substr(0, 300));
      const bool about_queue = row.method.find('/') == std::string::npos;
      const grpc::Status status = server_.CallByName(
          (about_queue ? "strata.v1.QueueService/" : "strata.v1.") + row.method, row.request);
      EXPECT_EQ(status.error_code(), static_cast<grpc::StatusCode>(ReasonCode(row.reason)));
      ExpectRefusal(status, row);
    }
  }
  // One message to be pushed to "mails".
  void Push(const std::string& message, ErrorReason reason, const std::string& field,
            const std::string& says) {
    const std::string in = field.empty() ? "" : "messages[0]." + field;
    Check({{"Push", R"({"queue": "mails", "messages": [{)" + message + "}]}", reason, in, says}});
    const std::string commit_field = field.empty() ? "" : "pushes[0].message." + field;
    Check({{"TransactionService/Commit",
            R"({"writes": [)" + update_ + R"(], "pushes": [{"queue": "mails", "message": {)" +
                message + "}}]}",
            reason, commit_field, says}});
  }
  void Settings(const std::string& settings, const std::string& field, const std::string& says,
                ErrorReason reason = kField) {
    Check({{"CreateQueue", R"({"name": "new", "settings": {)" + settings + "}}", reason,
            "settings." + field, says},
           {"UpdateQueue",
            R"({"name": "mails", "update_mask": ")" + Camel(field.substr(0, field.find('.'))) +
                R"(", "settings": {)" + settings + "}}",
            reason, "settings." + field, says}});
  }
  // What each call that takes tokens says of this one; a commit refuses all for it.
  void Token(const std::string& token, ErrorReason reason, const std::string& field,
             const std::string& says) {
    for (const char* const method : {"Acknowledge", "Rollback", "Extend"}) {
      SCOPED_TRACE(std::string(method) + " " + token.substr(0, 100));
      const std::string request = R"({"tokens": [")" + token + "\"]}";
      std::string answer;
      v1::AcknowledgeRequest tokens = Parse<v1::AcknowledgeRequest>(request);
      const grpc::Status status = server_.CallRaw("strata.v1.QueueService/" + std::string(method),
                                                  tokens.SerializeAsString(), &answer);
      ASSERT_TRUE(status.ok()) << status.error_message();
      v1::AcknowledgeResponse response;
      ASSERT_TRUE(response.ParseFromString(answer));
      ASSERT_EQ(response.results_size(), 1);
      const v1::ApplyError& error = response.results(0).error();
      EXPECT_EQ(error.reason(), ReasonName(reason)) << error.message();
      EXPECT_EQ(error.code(), static_cast<int>(ReasonCode(reason)));
      const auto named = error.metadata().find("field");
      EXPECT_EQ(named == error.metadata().end() ? "" : named->second,
                field.empty() ? "" : "tokens[0]");
      EXPECT_THAT(error.message(), HasSubstr(says));
      ExpectUnchanged();
      ++rows_;
    }
    Check({{"Move", R"({"queue": "others", "token": ")" + token + "\"}", reason,
            field.empty() && reason != kNoQueue ? "" : "token", says},
           {"TransactionService/Commit",
            R"({"writes": [)" + update_ + R"(], "acknowledge": [")" + token + "\"]}", reason,
            "acknowledge[0]", says}});
  }
  // A stream of these messages ends so.
  void Stream(const std::vector<std::string>& messages, ErrorReason reason,
              const std::string& field, const std::string& says) {
    SCOPED_TRACE(messages.empty() ? "no message" : messages.back().substr(0, 200));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    const auto stream = server_.queues().Receive(&context);
    for (const std::string& message : messages) stream->Write(Parse<v1::ReceiveRequest>(message));
    stream->WritesDone();
    v1::ReceiveResponse response;
    while (stream->Read(&response)) {
      EXPECT_EQ(response.message_case(), v1::ReceiveResponse::MESSAGE_NOT_SET);
    }
    ExpectRefusal(stream->Finish(), {"Receive", "", reason, field, says});
  }

  // As JSON names it.
  static std::string Camel(const std::string& name) {
    std::string camel;
    for (size_t i = 0; i < name.size(); ++i) {
      camel += name[i] == '_' ? static_cast<char>(std::toupper(name[++i])) : name[i];
    }
    return camel;
  }
  static std::string Named(const std::string& queue) { return R"({"name": ")" + queue + "\"}"; }

 private:
  explicit QueueTable(std::unique_ptr<store::Store> store)
      : store_(*store), server_(TestOptions(), std::move(store)) {
    Must(server_.Create(R"({"collection": "books", "id": "moby", "content": {"json": {"n": 1}}})"));
    Must(server_.CreateQueue(Named("gone")));
    gone_ = PushAndReserve("gone").token();
    Must(server_.DeleteQueue(R"({"name": "gone", "force": true})"));
    // What it held is swept.
    while (!IsEmpty(store_, store::Keyspace::kMessages) ||
           !IsEmpty(store_, store::Keyspace::kQueueIndex)) {
    }
    Must(server_.CreateQueue(Named("mails")));
    Must(server_.CreateQueue(Named("others")));
    done_ = PushAndReserve("mails").token();
    Must(server_.Acknowledge(R"({"tokens": [")" + done_ + "\"]}"));
    const v1::QueueMessage first = PushAndReserve("mails");
    former_ = first.token();
    Must(server_.Rollback(R"({"delay": "0s", "tokens": [")" + former_ + "\"]}"));
    const auto again = server_.Reserve(R"({"queue": "mails", "timeout": "43200s"})");
    Must(again);
    out_ = again.response.messages(0).token();
    Must(server_.Push(R"({"queue": "mails", "messages": [{"request_id": "first"}]})"));
    // Nobody else is to get it.
    Must(server_.UpdateQueue(
        R"({"name": "mails", "settings": {"paused": true}, "update_mask": "paused"})"));
    before_ = StoredBytes(store_);
  }

  v1::QueueMessage PushAndReserve(const std::string& queue) {
    Must(server_.Push(R"({"queue": ")" + queue + R"(", "messages": [{}]})"));
    const auto reserved = server_.Reserve(R"({"queue": ")" + queue + "\"}");
    EXPECT_EQ(reserved.response.messages_size(), 1) << reserved.status.error_message();
    return reserved.response.messages_size() == 1 ? reserved.response.messages(0)
                                                  : v1::QueueMessage();
  }

  void ExpectRefusal(const grpc::Status& status, const Row& row) {
    const Details details = DetailsOf(status);
    EXPECT_EQ(details.reason, ReasonName(row.reason)) << status.error_message();
    EXPECT_EQ(details.field(), row.field) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(row.says));
    ExpectDocumentedMetadata(status);
    ExpectUnchanged();
    ++rows_;
  }
  void ExpectUnchanged() { EXPECT_TRUE(StoredBytes(store_) == before_) << "something was written"; }

  store::Store& store_;  // the server's

 protected:
  TestServer server_;
  std::string out_;     // the token of a message that is out
  std::string former_;  // of the same message, when it was handed out before
  std::string done_;    // of a message that is gone
  std::string gone_;    // of a queue that is gone
  const std::string update_ =
      R"({"update": {"collection": "books", "id": "moby", "replace": {"json": {"n": 2}}}})";

 private:
  std::vector<std::string> before_;
  int rows_ = 0;
};

class QueueInput : public QueueTable {
 protected:
  QueueInput() : QueueTable(false) {}
};

TEST_F(QueueInput, NamesAreNames) {
  struct WrongName {
    std::string text;
    std::string says;
  };
  for (const auto& [name, says] :
       std::vector<WrongName>{{"", "is empty"},
                              {std::string(257, 'x'), "has 257 bytes, at most 256"},
                              {R"(a\nb)", "control character at byte 1"}}) {
    const std::string named = Named(name);
    const std::string of = R"({"queue": ")" + name + "\"";
    const std::string masked = R"({"update_mask": "paused", "name": ")" + name + "\"}";
    Check(
        {{"CreateQueue", named, kName, "name", says},
         {"GetQueue", named, kName, "name", says},
         {"UpdateQueue", masked, kName, "name", says},
         {"DeleteQueue", named, kName, "name", says},
         {"Push", of + R"(, "messages": [{}]})", kName, "queue", says},
         {"Pop", of + "}", kName, "queue", says},
         {"Reserve", of + "}", kName, "queue", says},
         {"Move", of + R"(, "token": ")" + out_ + "\"}", kName, "queue", says},
         {"GetMessage", of + "}", kName, "queue", says},
         {"ListMessages", of + "}", kName, "queue", says},
         {"Replay", of + "}", kName, "queue", says},
         {"PurgeMessages", of + "}", kName, "queue", says},
         {"CreateSchedule", of + R"(, "name": "s", "cron": "* * * * *"})", kName, "queue", says},
         {"CreateSchedule", R"({"queue": "mails", "cron": "* * * * *", "name": ")" + name + "\"}",
          kName, "name", says},
         {"ListSchedules", of + "}", kName, "queue", says},
         {"DeleteSchedule", of + R"(, "name": "s"})", kName, "queue", says},
         {"DeleteSchedule", R"({"queue": "mails", "name": ")" + name + "\"}", kName, "name", says},
         {"TransactionService/Commit", R"({"pushes": [)" + of + "}]}", kName, "pushes[0].queue",
          says}});
    Stream({R"({"open": )" + of + R"(, "credits": 1}})"}, kName, "open.queue", says);
    if (name.empty()) continue;
    Check({{"Replay", R"({"queue": "mails", "target_queue": ")" + name + "\"}", kName,
            "target_queue", says}});
    Push(R"("ordering_key": ")" + name + "\"", kName, "ordering_key", says);
    Settings(R"("dead_letter_queue": ")" + name + "\"", "dead_letter_queue", says, kName);
  }
}

TEST_F(QueueInput, WhatIsNotThereIsNotFound) {
  for (const char* const queue : {"none", "gone"}) {
    const std::string named = Named(queue);
    const std::string of = R"({"queue": ")" + std::string(queue) + "\"";
    const std::string says = "queue " + std::string(queue) + " does not exist";
    Check({{"GetQueue", named, kNoQueue, "", says},
           {"UpdateQueue",
            R"({"settings": {}, "update_mask": "paused", "name": ")" + std::string(queue) + "\"}",
            kNoQueue, "", says},
           {"DeleteQueue", named, kNoQueue, "", says},
           {"Push", of + R"(, "messages": [{}]})", kNoQueue, "", says},
           {"Pop", of + "}", kNoQueue, "", says},
           {"Reserve", of + R"(, "wait": "1s"})", kNoQueue, "", says},
           {"Move", of + R"(, "token": ")" + out_ + "\"}", kNoQueue, "queue", says},
           {"GetMessage", of + R"(, "message_id": ")" + kNoId + "\"}", kNoQueue, "", says},
           {"ListMessages", of + "}", kNoQueue, "", says},
           {"Replay", of + R"(, "states": ["MESSAGE_STATE_DEAD"]})", kNoQueue, "", says},
           {"Replay",
            R"({"queue": "mails", "states": ["MESSAGE_STATE_DEAD"], "target_queue": ")" +
                std::string(queue) + "\"}",
            kNoQueue, "target_queue", says},
           {"PurgeMessages", of + R"(, "message_ids": [")" + kNoId + "\"]}", kNoQueue, "", says},
           {"CreateSchedule", of + R"(, "name": "s", "cron": "* * * * *"})", kNoQueue, "", says},
           {"ListSchedules", of + "}", kNoQueue, "", says},
           {"DeleteSchedule", of + R"(, "name": "s"})", kNoQueue, "", says},
           {"TransactionService/Commit",
            R"({"writes": [)" + update_ + R"(], "pushes": [)" + of + "}]}", kNoQueue,
            "pushes[0].queue", says},
           {"EnrollmentService/PurgeTombstones",
            R"({"through_sequence_number": 1, "queues": ["mails", ")" + std::string(queue) + "\"]}",
            kNoQueue, "queues[1]", says}});
    Stream({R"({"open": )" + of + R"(, "credits": 1}})"}, kNoQueue, "", says);
  }
  Check({{"CreateQueue", Named("mails"), ErrorReason::kQueueExists, "", "exists"},
         {"DeleteQueue", Named("mails"), ErrorReason::kQueueNotEmpty, "", "neither finished"},
         {"GetMessage", R"({"queue": "mails", "message_id": ")" + kNoId + "\"}", kNoMessage, "",
          kNoId},
         {"DeleteSchedule", R"({"queue": "mails", "name": "s"})", ErrorReason::kScheduleNotFound,
          "", "no schedule s"}});
}

TEST_F(QueueInput, SettingsHaveLimits) {
  Settings(R"("reservation_timeout": "0.999s")", "reservation_timeout", "1s to 12h");
  Settings(R"("reservation_timeout": "43200.001s")", "reservation_timeout", "1s to 12h");
  Settings(R"("max_tries": 0)", "max_tries", "at least 1");
  Settings(R"("max_tries": -1)", "max_tries", "at least 1");
  Settings(R"("retry_delay": "-1s")", "retry_delay", "0 to 720h");
  Settings(R"("retry_delay_max": "2592001s")", "retry_delay_max", "0 to 720h");
  Settings(R"("history_retention": "59s")", "history_retention", "1m to");
  Settings(R"("history_retention": "0s")", "history_retention", "1m to");
  Settings(R"("message_lifetime": "0.5s")", "message_lifetime", "1s to");
  Settings(R"("enrollments": {"collection": ""})", "enrollments.collection", "is empty", kName);
  Settings(R"("enrollments": {"collection": "students", "max_in_flight": 1001})",
           "enrollments.max_in_flight", "1 to 1000");
  Settings(R"("enrollments": {"collection": "students", "set": "\n"})", "enrollments.set",
           "1 to 64");
  Check({{"CreateQueue", R"({"name": "new", "settings": {"dead_letter_queue": "new"}})", kField,
          "settings.dead_letter_queue", "itself"},
         {"UpdateQueue",
          R"({"name": "mails", "update_mask": "deadLetterQueue",
              "settings": {"dead_letter_queue": "mails"}})",
          kField, "settings.dead_letter_queue", "itself"},
         {"CreateQueue",
          R"({"name": "new", "settings": {"retry_delay": "2s", "retry_delay_max": "1s"}})", kField,
          "settings.retry_delay", "settings.retry_delay is 2 s"}});
}

TEST_F(QueueInput, AMaskNamesMembersOfTheSettings) {
  const auto update = [&](const std::string& mask, const std::string& field,
                          const std::string& says) {
    Check({{"UpdateQueue",
            R"({"name": "mails", "settings": {"paused": false}, "update_mask": ")" + mask + "\"}",
            kField, field, says}});
  };
  Check({{"UpdateQueue", R"({"name": "mails", "settings": {"paused": false}})", kField,
          "update_mask", "is required"}});
  update("", "update_mask", "is required");
  update("name", "update_mask.paths[0]", "no member of settings");
  update("paused,settings", "update_mask.paths[1]", "no member of settings");
  update("enrollments.set", "update_mask.paths[0]", "no member of settings");
  update("paused,paused", "update_mask.paths[1]", "named before");
  update("a,b,c,d,e,f,g,h,i,j", "update_mask.paths", "10 elements");
}

TEST_F(QueueInput, WhatIsPushedHasLimits) {
  Check({{"Push", R"({"queue": "mails"})", kField, "messages", "1 to 100"},
         {"Push", R"({"queue": "mails", "messages": )" + Array(101, "{}") + "}", kField, "messages",
          "101 elements"},
         // One that is malformed refuses all.
         {"Push", R"({"queue": "mails", "messages": [{}, {"priority": 10}]})", kField,
          "messages[1].priority", "0 to 9"}});
  const std::string large(size_t{1} << 20, 'x');
  Push(R"("payload": {"json": {"a": ")" + large + R"("}})", ErrorReason::kMessageTooLarge,
       "payload", "1048576");
  Push(R"("payload": {"json": {"a": {"$numberLong": "x"}}})", ErrorReason::kInvalidContent,
       "payload", "");
  Push(R"("payload": {"bson": "AAAA"})", ErrorReason::kInvalidContent, "payload", "");
  Push(R"("priority": 10)", kField, "priority", "0 to 9");
  Push(R"("priority": -1)", kField, "priority", "0 to 9");
  Push(R"("sequence_number": 0)", kField, "sequence_number", "at least 1");
  Push(R"("sequence_number": -7)", kField, "sequence_number", "at least 1");
  Push(R"("request_id": "a b")", kField, "request_id", "");
  Push(R"("request_id": ")" + std::string(129, 'x') + "\"", kField, "request_id", "");
  Push(R"("request_id": "first", "priority": 1)", ErrorReason::kRequestIdReused, "request_id",
       "another message");
  std::string many;
  for (int i = 0; i < 33; ++i) many += (i == 0 ? "\"h" : ", \"h") + std::to_string(i) + "\": \"\"";
  Push(R"("headers": {)" + many + "}", kField, "headers", "33 elements");
  Push(R"("headers": {"": "x"})", kField, "headers", "without a name");
  Push(R"("headers": {")" + std::string(129, 'x') + R"(": "x"})", kField, "headers", "128");
  Push(R"("headers": {"x": ")" + std::string(257, 'x') + R"("})", kField, "headers", "256");
  Push(R"("headers": {"a\u0000b": "x"})", kField, "headers", "zero byte");
}

TEST_F(QueueInput, TimesOfMessagesFitTogether) {
  Push(R"("delay": "1s", "deliver_time": "2100-01-01T00:00:00Z")", kField, "deliver_time",
       "beside delay");
  Push(R"("delay": "-1s")", kField, "delay", "0 to");
  Push(R"("delay": "400000000s")", kField, "delay", "0 to");
  Push(R"("deliver_time": "2900-01-01T00:00:00Z")", kField, "deliver_time", "10 years");
  Push(R"("deliver_time": "2030-01-02T00:00:00Z", "expire_time": "2030-01-01T00:00:00Z")", kField,
       "expire_time", "not after deliver_time");
  Push(R"("expire_time": "2001-01-01T00:00:00Z")", kField, "expire_time", "not after");
  Push(R"("delay": "86400s", "expire_time": "2001-01-01T00:00:00Z")", kField, "expire_time",
       "not after");
}

TEST_F(QueueInput, WhatIsTakenHasLimits) {
  for (const char* const method : {"Pop", "Reserve"}) {
    Check({{method, R"({"queue": "mails", "count": 101})", kField, "count", "1 to 100"},
           {method, R"({"queue": "mails", "count": -1})", kField, "count", "1 to 100"},
           {method, R"({"queue": "mails", "wait": "20.001s"})", kField, "wait", "0 to 20s"},
           {method, R"({"queue": "mails", "wait": "-1s"})", kField, "wait", "0 to 20s"},
           {method, R"({"queue": "mails", "encoding": 99})", kField, "encoding", "99"}});
  }
  Check({{"Reserve", R"({"queue": "mails", "timeout": "0.999s"})", kField, "timeout", "1s to 12h"},
         {"Reserve", R"({"queue": "mails", "timeout": "43201s"})", kField, "timeout", "1s to 12h"},
         {"Extend", R"({"tokens": [")" + out_ + R"("], "timeout": "0s"})", kField, "timeout",
          "1s to 12h"},
         {"Extend", R"({"tokens": [")" + out_ + R"("], "timeout": "43201s"})", kField, "timeout",
          "1s to 12h"}});
  // A queue that is paused gives nothing, and that is no error.
  for (const char* const method : {"Pop", "Reserve"}) {
    std::string answer;
    v1::PopRequest request = Parse<v1::PopRequest>(R"({"queue": "mails"})");
    EXPECT_TRUE(server_
                    .CallRaw("strata.v1.QueueService/" + std::string(method),
                             request.SerializeAsString(), &answer)
                    .ok());
    EXPECT_EQ(answer, "");
  }
}

TEST_F(QueueInput, TokensAreThoseThatWereGiven) {
  std::string changed = out_;
  changed[changed.size() / 2] = changed[changed.size() / 2] == 'A' ? 'B' : 'A';
  queue::Token token = *queue::Token::FromText("", out_);
  Token("", kField, "token", "required");
  Token("x", kField, "token", "no token");
  Token("=", kField, "token", "no token");
  Token(out_.substr(0, out_.size() - 1), kField, "token", "no token");
  Token(out_.substr(0, out_.size() / 2), kField, "token", "no token");
  Token(changed, kField, "token", "no token");
  Token(out_ + "AAAA", kField, "token", "no token");
  Token(former_, kLost, "", "handed out again");
  Token(done_, kNoMessage, "", "does not exist");
  Token(gone_, kNoQueue, "", "queue gone does not exist");
  token.queue = "others";
  Token(token.ToText(), kLost, "", "");
  token.queue = "none";
  Token(token.ToText(), kNoQueue, "", "queue none does not exist");
  token.queue = "mails";
  ++token.timeline;
  Token(token.ToText(), kLost, "", "restored");
}

TEST_F(QueueInput, TokensAreSoMany) {
  const std::string many = Array(101, "\"x\"");
  for (const char* const method : {"Acknowledge", "Rollback", "Extend"}) {
    Check({{method, "{}", kField, "tokens", "1 to 100"},
           {method, R"({"tokens": )" + many + "}", kField, "tokens", "101 elements"}});
  }
  Check(
      {{"TransactionService/Commit", R"({"acknowledge": )" + many + "}", kField, "acknowledge",
        "101 elements"},
       {"TransactionService/Commit", R"({"pushes": )" + Array(101, R"({"queue": "mails"})") + "}",
        kField, "pushes", "101 elements"},
       {"TransactionService/Commit",
        R"({"writes": [)" + update_ + R"(], "acknowledge": [")" + out_ + R"(", ")" + out_ + "\"]}",
        kField, "acknowledge[1]", "the same message twice"},
       {"TransactionService/Commit", "{}", kField, "writes", "1 to 100 writes"}});
}

TEST_F(QueueInput, RollBacksFitTogether) {
  const std::string token = R"({"tokens": [")" + out_ + "\"], ";
  Check({{"Rollback", token + R"("delay": "-1s"})", kField, "delay", "0 to"},
         {"Rollback", token + R"("delay": "400000000s"})", kField, "delay", "0 to"},
         {"Rollback", token + R"("dead": true, "delay": "1s"})", kField, "delay", "beside dead"},
         {"Rollback", token + R"("dead": true, "not_counted": true})", kField, "not_counted",
          "beside dead"},
         {"Rollback", token + R"("reason": ")" + std::string(1025, 'x') + "\"}", kField, "reason",
          "1024"}});
  const std::string move = R"({"queue": "others", "token": ")" + out_ + "\", ";
  Check({{"Move", move + R"("delay": "-1s"})", kField, "delay", "0 to"},
         {"Move", move + R"("encoding": 99})", kField, "encoding", "99"},
         {"Move", move + R"("headers": {"": "x"}})", kField, "headers", "without a name"},
         {"Move", move + R"("payload": {"bson": "AAAA"}})", ErrorReason::kInvalidContent, "payload",
          ""}});
}

TEST_F(QueueInput, StreamsAreOpenedFirstAndOnce) {
  const std::string open = R"({"open": {"queue": "mails", "credits": 1}})";
  const auto with = [](const std::string& rest) {
    return R"({"open": {"queue": "mails", )" + rest + "}}";
  };
  Stream({}, kMessage, "", "no message");
  Stream({"{}"}, kMessage, "", "has to be an open");
  Stream({R"({"credits": {"count": 1}})"}, kMessage, "", "has to be an open");
  Stream({R"({"acknowledge": {"tokens": ["x"]}})"}, kMessage, "", "has to be an open");
  Stream({open, open}, kMessage, "", "second open");
  Stream({open, "{}"}, kMessage, "", "without acknowledge");
  Stream({with(R"("credits": 0)")}, kField, "open.credits", "1 to 1000");
  Stream({with(R"("credits": 1001)")}, kField, "open.credits", "1 to 1000");
  Stream({with(R"("credits": 1, "timeout": "0s")")}, kField, "open.timeout", "1s to 12h");
  Stream({with(R"("credits": 1, "encoding": 99)")}, kField, "open.encoding", "99");
  Stream({open, R"({"credits": {}})"}, kField, "credits.count", "1 to 1000");
  Stream({open, R"({"credits": {"count": 1000}})"}, kField, "credits.count", "1000 in all");
  Stream({open, R"({"acknowledge": {}})"}, kField, "acknowledge.tokens", "1 to 100");
  Stream({open, R"({"rollback": {}})"}, kField, "rollback.tokens", "1 to 100");
  Stream({open, R"({"rollback": {"tokens": ["x"], "dead": true, "delay": "1s"}})"}, kField,
         "rollback.delay", "beside dead");
  Stream({open, R"({"extend": {"tokens": )" + Array(101, "\"x\"") + "}}"}, kField, "extend.tokens",
         "101 elements");
  Stream({open, R"({"extend": {"tokens": ["x"], "timeout": "1000000s"}})"}, kField,
         "extend.timeout", "1s to 12h");
}

TEST_F(QueueInput, MessagesAreNamedByIdsOrStates) {
  const std::string of = R"({"queue": "mails", )";
  Check({{"GetMessage", R"({"queue": "mails"})", kField, "message_id", "is required"},
         {"GetMessage", of + R"("message_id": "00"})", kField, "message_id", "32 hexadecimal"},
         {"GetMessage", of + R"("message_id": ")" + std::string(32, 'F') + "\"}", kField,
          "message_id", "lower case"},
         {"GetMessage", of + R"("encoding": 99, "message_id": ")" + kNoId + "\"}", kField,
          "encoding", "99"},
         {"ListMessages", of + R"("state": 99})", kField, "state", "99"},
         {"ListMessages", of + R"("encoding": 99})", kField, "encoding", "99"},
         {"ListMessages", of + R"("page_size": 1001})", kField, "page_size", "1 to 1000"},
         {"ListMessages", of + R"("page_token": "x"})", ErrorReason::kInvalidPageToken,
          "page_token", ""},
         {"ListQueues", R"({"page_size": -1})", kField, "page_size", "1 to 1000"},
         {"ListQueues", R"({"page_token": "x"})", ErrorReason::kInvalidPageToken, "page_token", ""},
         {"ListSchedules", of + R"("page_size": 1001})", kField, "page_size", "1 to 1000"}});
  for (const char* const method : {"Replay", "PurgeMessages"}) {
    Check({{method, R"({"queue": "mails"})", kField, "message_ids", "is required"},
           {method, of + R"("states": ["MESSAGE_STATE_DEAD"], "message_ids": [")" + kNoId + "\"]}",
            kField, "states", "beside message_ids"},
           {method, of + R"("message_ids": [")" + kNoId + R"(", "x"]})", kField, "message_ids[1]",
            "32 hexadecimal"},
           {method, of + R"("message_ids": )" + Array(101, "\"" + kNoId + "\"") + "}", kField,
            "message_ids", "101 elements"},
           {method, of + R"("states": [99]})", kField, "states[0]", "99"},
           {method, of + R"("states": ["MESSAGE_STATE_UNSPECIFIED"]})", kField, "states[0]",
            "UNSPECIFIED"},
           {method, of + R"("states": ["MESSAGE_STATE_DEAD", "MESSAGE_STATE_DEAD"]})", kField,
            "states[1]", "named before"}});
  }
  Check(
      {{"Replay", of + R"("states": ["MESSAGE_STATE_READY"]})", kField, "states[0]", "neither"},
       {"Replay",
        of + R"("start_time": "2020-01-01T00:00:00Z", "message_ids": [")" + kNoId + "\"]}", kField,
        "start_time", "needs states"},
       {"Replay", of + R"("start_time": "2020-01-02T00:00:00Z", "end_time": "2020-01-01T00:00:00Z",
                  "states": ["MESSAGE_STATE_DEAD"]})",
        kField, "end_time", "not after start_time"}});
}

TEST_F(QueueInput, SchedulesSayWhen) {
  const auto schedule = [&](const std::string& rest, ErrorReason reason, const std::string& field) {
    Check({{"CreateSchedule", R"({"queue": "mails", "name": "s", )" + rest + "}", reason, field,
            ""}});
  };
  constexpr ErrorReason kSchedule = ErrorReason::kInvalidSchedule;
  Check({{"CreateSchedule", R"({"queue": "mails", "name": "s"})", kField, "period", "cron or"}});
  schedule(R"("cron": "")", kField, "cron");
  schedule(R"("cron": "* * * *")", kSchedule, "cron");
  schedule(R"("cron": "60 * * * *")", kSchedule, "cron");
  schedule(R"("cron": "* * * * * *")", kSchedule, "cron");
  schedule(R"("cron": "a * * * *")", kSchedule, "cron");
  schedule(R"("cron": "0 0 30 2 *")", kSchedule, "cron");
  schedule(R"("every": "0.5s")", kSchedule, "every");
  schedule(R"("every": "2592001s")", kSchedule, "every");
  schedule(R"("every": "-1s")", kSchedule, "every");
  const std::string every = R"("every": "60s", "message": )";
  schedule(every + R"({"delay": "1s"})", kField, "message.delay");
  schedule(every + R"({"deliver_time": "2030-01-01T00:00:00Z"})", kField, "message.deliver_time");
  schedule(every + R"({"expire_time": "2030-01-01T00:00:00Z"})", kField, "message.expire_time");
  schedule(every + R"({"request_id": "r"})", kField, "message.request_id");
  schedule(every + R"({"priority": 10})", kField, "message.priority");
  schedule(R"("every": "60s", "encoding": 99)", kField, "encoding");
}

TEST_F(QueueInput, InTwoPhasesNothingIsAcknowledgedOrPushed) {
  const std::string writes =
      R"({"mode": "TRANSACTION_MODE_TWO_PHASE", "writes": [)" + update_ + "], ";
  Check({{"TransactionService/Commit", writes + R"("acknowledge": [")" + out_ + "\"]}",
          kUnsupported, "", "one commit"},
         {"TransactionService/Commit", writes + R"("pushes": [{"queue": "mails"}]})", kUnsupported,
          "", "one commit"}});
}

TEST_F(QueueInput, APurgeHeedsQueuesThatThereAre) {
  const auto purge = [&](const std::string& queues, ErrorReason reason, const std::string& field,
                         const std::string& says) {
    Check({{"EnrollmentService/PurgeTombstones",
            R"({"through_sequence_number": 1, "queues": )" + queues + "}", reason, field, says}});
  };
  purge(R"([""])", kName, "queues[0]", "is empty");
  purge(Array(101, R"("mails")"), kField, "queues", "101 elements");
}

class QueueInputOfSingleRecords : public QueueTable {
 protected:
  QueueInputOfSingleRecords() : QueueTable(true) {}
};

TEST_F(QueueInputOfSingleRecords, KeysAndCommitsNeedMore) {
  const std::string writes = R"({"writes": [)" + update_ + "], ";
  Check({{"Push", R"({"queue": "mails", "messages": [{"ordering_key": "k"}]})", kUnsupported,
          "messages[0].ordering_key", "atomic batches"},
         {"CreateSchedule",
          R"({"queue": "mails", "name": "s", "every": "60s", "message": {"ordering_key": "k"}})",
          kUnsupported, "message.ordering_key", "atomic batches"},
         {"TransactionService/Commit", writes + R"("acknowledge": [")" + out_ + "\"]}",
          kUnsupported, "", "one commit"},
         {"TransactionService/Commit", writes + R"("pushes": [{"queue": "mails"}]})", kUnsupported,
          "", "one commit"}});
}

// What a queue does by itself, whoever tells it to has to be allowed to do.
TEST(QueueAccess, SettingsReachNoFurtherThanTheirAuthor) {
  const SecuredServer server(
      R"({"principals": ["user:anna"], "role": "admin",
          "resources": ["queue/own", "queue/own-*", "collection/own"]})",
      {"anna"});
  const auto [channel, authorization] = server.Dial(server.User("anna"));
  const auto call = [&, &channel = channel, &authorization = authorization](
                        std::string_view method, const std::string& json) {
    const grpc::Status status =
        CallAnything(channel, "strata.v1.QueueService/" + std::string(method), json, authorization)
            .status;
    return status.ok() ? std::string("OK") : DetailsOf(status).reason;
  };
  const std::string denied = "PERMISSION_DENIED";
  const auto settings = [](const std::string& members) {
    return R"({"name": "own", "settings": {)" + members + "}";
  };
  const std::string mask = R"(, "update_mask": "deadLetterQueue,enrollments"})";
  for (const std::string theirs :
       {R"("dead_letter_queue": "other")", R"("enrollments": {"collection": "other"})"}) {
    EXPECT_EQ(call("CreateQueue", settings(theirs) + "}"), denied) << theirs;
    EXPECT_EQ(call("UpdateQueue", settings(theirs) + mask), denied) << theirs;
  }
  const std::string ours =
      R"("dead_letter_queue": "own-dead", "enrollments": {"collection": "own"})";
  EXPECT_EQ(call("CreateQueue", settings(ours) + "}"), "OK");
  EXPECT_EQ(call("UpdateQueue", settings(ours) + mask), "OK");
  EXPECT_EQ(call("Replay", R"({"queue": "own", "target_queue": "other",
                               "states": ["MESSAGE_STATE_DEAD"]})"),
            denied);
}

// Nor further than that of whoever changes them last, whatever others have set before.
TEST(QueueAccess, WhoeverChangesAQueueAnswersForAllThatItReaches) {
  const SecuredServer server(
      R"({"principals": ["user:anna"], "role": "admin", "resources": ["queue/*", "collection/*"]},
         {"principals": ["user:ben"], "role": "admin", "resources": ["queue/own"]},
         {"principals": ["user:eve"], "role": "admin", "resources": ["queue/own"]},
         {"principals": ["user:eve"], "role": "writer",
          "resources": ["queue/dead", "collection/students"]})",
      {"anna", "ben", "eve"});
  const auto call = [&](const std::string& user, std::string_view method, const std::string& json) {
    const auto [channel, authorization] = server.Dial(server.User(user));
    const grpc::Status status =
        CallAnything(channel, "strata.v1.QueueService/" + std::string(method), json, authorization)
            .status;
    return status.ok() ? std::string("OK") : DetailsOf(status).reason;
  };
  const std::string reaching = R"("dead_letter_queue": "dead")";
  const std::string applying = R"("enrollments": {"collection": "students"})";
  struct Change {
    std::string set;     // by anna
    std::string change;  // settings and mask
    std::string ben;     // may manage the queue
    std::string eve;     // and write what it reaches
  };
  const std::string ok = "OK";
  const std::string denied = "PERMISSION_DENIED";
  const std::string tries = R"("settings": {"max_tries": 1}, "update_mask": "maxTries")";
  const std::string pause = R"("settings": {"paused": true}, "update_mask": "paused")";
  const std::string detach =
      R"("settings": {}, "update_mask": "deadLetterQueue,enrollments,maxTries")";
  const std::string half = R"("settings": {}, "update_mask": "deadLetterQueue")";
  const Change changes[] = {
      {"", tries, ok, ok},
      {reaching, tries, denied, ok},
      {reaching, pause, denied, ok},
      {applying, tries, denied, ok},
      {applying, pause, denied, ok},
      {reaching + ", " + applying, half, denied, ok},  // the collection is still reached
      {reaching + ", " + applying, detach, ok, ok},
      {reaching, half, ok, ok},
  };
  const std::string name = R"("name": "own")";
  for (const Change& row : changes) {
    for (const auto& [user, expected] : {std::pair("ben", row.ben), std::pair("eve", row.eve)}) {
      SCOPED_TRACE(user + (", set " + row.set) + ", changed " + row.change);
      ASSERT_EQ(call("anna", "CreateQueue", "{" + name + R"(, "settings": {)" + row.set + "}}"),
                ok);
      EXPECT_EQ(call(user, "UpdateQueue", "{" + name + ", " + row.change + "}"), expected);
      ASSERT_EQ(call("anna", "DeleteQueue", "{" + name + R"(, "force": true})"), ok);
    }
  }
}

}  // namespace
}  // namespace strata::rpc_test
