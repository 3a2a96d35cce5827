// Queues as clients have them: what is pushed comes, in answers, streams and commits.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>

#include "strata/v1/enrollment_service.grpc.pb.h"
#include "strata/v1/queue_service.grpc.pb.h"
#include "tests/rpc/test_server.h"

namespace strata::rpc_test {
namespace {

class QueueCalls : public testing::Test {
 protected:
  QueueCalls() { Must(server_.CreateQueue(R"({"name": "mails"})")); }

  template <typename Response>
  static void Must(const Outcome<Response>& outcome) {
    ASSERT_TRUE(outcome.ok()) << outcome.status.error_message();
  }
  std::string Push(const std::string& message) {
    const auto pushed = server_.Push(R"({"queue": "mails", "messages": [)" + message + "]}");
    EXPECT_TRUE(pushed.ok()) << pushed.status.error_message();
    return pushed.ok() ? pushed.response.results(0).message_id() : "";
  }
  v1::QueueMessage Reserve() {
    const auto reserved = server_.Reserve(R"({"queue": "mails", "wait": "20s"})");
    EXPECT_EQ(reserved.response.messages_size(), 1) << reserved.status.error_message();
    return reserved.response.messages_size() == 1 ? reserved.response.messages(0)
                                                  : v1::QueueMessage();
  }

  TestServer server_;
};

TEST_F(QueueCalls, AMessageComesAsItWasPushed) {
  const std::string id = Push(
      R"({"payload": {"json": {"to": "anna"}}, "headers": {"h": "v"}, "priority": 5,
          "ordering_key": "k", "sequence_number": 7})");
  const v1::QueueMessage message = Reserve();
  EXPECT_EQ(message.message_id(), id);
  EXPECT_EQ(message.payload().json().fields().at("to").string_value(), "anna");
  EXPECT_EQ(message.headers().at("h"), "v");
  EXPECT_EQ(message.priority(), 5);
  EXPECT_EQ(message.ordering_key(), "k");
  EXPECT_EQ(message.sequence_number(), 7);
  EXPECT_EQ(message.delivery(), 1);
  EXPECT_EQ(message.state(), v1::MESSAGE_STATE_RESERVED);
  EXPECT_FALSE(message.token().empty());
  const auto queue = server_.GetQueue(R"({"name": "mails"})");
  EXPECT_EQ(queue.response.queue().statistics().low_watermark(), 7);
}

TEST_F(QueueCalls, AMaskChangesWhatItNamesAlone) {
  Must(server_.UpdateQueue(R"({"name": "mails", "update_mask": "maxTries",
                               "settings": {"max_tries": 3, "paused": true}})"));
  const v1::QueueSettings settings =
      server_.GetQueue(R"({"name": "mails"})").response.queue().settings();
  EXPECT_EQ(settings.max_tries(), 3);
  EXPECT_FALSE(settings.paused());
  const auto cleared = server_.UpdateQueue(R"({"name": "mails", "update_mask": "maxTries"})");
  Must(cleared);
  EXPECT_FALSE(cleared.response.queue().settings().has_max_tries());
}

TEST_F(QueueCalls, PagesHoldEachMessageOnceHoweverLargeTheyAre) {
  const std::string large(900'000, 'x');
  for (int i = 0; i < 7; ++i) Push(R"({"payload": {"json": {"a": ")" + large + R"("}}})");
  std::set<std::string> listed;
  std::string token;
  int pages = 0;
  do {
    const auto page = server_.ListMessages(R"({"queue": "mails", "page_token": ")" + token + "\"}");
    Must(page);
    for (const v1::QueueMessage& message : page.response.messages()) {
      EXPECT_TRUE(listed.insert(message.message_id()).second);
    }
    token = page.response.next_page_token();
    ASSERT_LT(++pages, 10);
  } while (!token.empty());
  EXPECT_EQ(listed.size(), 7u);
  EXPECT_GT(pages, 1);
  // As few are handed out at once; what did not fit is still there, and not tried.
  const auto reserved = server_.Reserve(R"({"queue": "mails", "count": 7})");
  Must(reserved);
  EXPECT_LT(reserved.response.messages_size(), 7);
  EXPECT_EQ(Reserve().tries(), 1);
}

// The largest messages: a payload of 150 KiB in BSON is nearly 1 MiB as a Struct. What is popped
// cannot be given back, so each answer has to be one that a client takes.
TEST_F(QueueCalls, WhatIsPoppedFitsIntoTheAnswer) {
  std::string members;
  for (int i = 10'000; i < 37'000; ++i) members += '\xFF' + std::to_string(i) + '\0';
  const uint32_t size = static_cast<uint32_t>(members.size()) + 5;
  for (const int shift : {24, 16, 8, 0}) members.insert(0, 1, static_cast<char>(size >> shift));
  members += '\0';
  v1::PushRequest push;
  push.set_queue("mails");
  v1::PushedMessage& message = *push.add_messages();
  message.mutable_payload()->set_bson(members);
  for (int i = 0; i < 32; ++i) {
    (*message.mutable_headers())[std::string(126, 'h') + std::to_string(10 + i)] =
        std::string(256, 'v');
  }
  constexpr int kMessages = 9;
  for (int i = 0; i < kMessages; ++i) {
    const grpc::Status pushed =
        server_.CallRaw("strata.v1.QueueService/Push", push.SerializeAsString());
    ASSERT_TRUE(pushed.ok()) << pushed.error_message();
  }
  int popped = 0;
  for (int calls = 0; popped < kMessages; ++calls) {
    ASSERT_LT(calls, kMessages);
    const auto answer = server_.Pop(R"({"queue": "mails", "count": 100})");
    Must(answer);
    EXPECT_LE(answer.response.ByteSizeLong(), size_t{4} << 20);
    EXPECT_GE(answer.response.ByteSizeLong(), size_t{900} << 10);
    popped += answer.response.messages_size();
  }
}

TEST_F(QueueCalls, AStreamGivesMessagesAndTakesInWhatBecomesOfThem) {
  const std::string first = Push("{}");
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  const auto stream = server_.queues().Receive(&context);
  stream->Write(Parse<v1::ReceiveRequest>(R"({"open": {"queue": "mails", "credits": 1}})"));
  v1::ReceiveResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.message_case(), v1::ReceiveResponse::MESSAGE_NOT_SET);
  ASSERT_TRUE(stream->Read(&response));
  ASSERT_EQ(response.messages().messages_size(), 1);
  const std::string token = response.messages().messages(0).token();
  EXPECT_EQ(response.messages().messages(0).message_id(), first);
  const std::string second = Push("{}");
  stream->Write(Parse<v1::ReceiveRequest>(R"({"acknowledge": {"tokens": [")" + token + "\"]}}"));
  bool answered = false;
  bool came = false;
  while (!answered || !came) {
    ASSERT_TRUE(stream->Read(&response));
    if (response.has_results()) {
      EXPECT_EQ(response.results().tokens(0), token);
      EXPECT_FALSE(response.results().results(0).has_error());
      answered = true;
    } else {
      EXPECT_EQ(response.messages().messages(0).message_id(), second);
      came = true;
    }
  }
  stream->WritesDone();
  while (stream->Read(&response)) {
  }
  EXPECT_TRUE(stream->Finish().ok());
  // What was out is there again at once, and the try does not count.
  const v1::QueueMessage again = Reserve();
  EXPECT_EQ(again.message_id(), second);
  EXPECT_EQ(again.tries(), 1);
  EXPECT_EQ(again.delivery(), 2);
}

TEST_F(QueueCalls, ACommitAcknowledgesWritesAndPushesOn) {
  Must(server_.CreateQueue(R"({"name": "next"})"));
  Must(server_.Create(R"({"collection": "books", "id": "moby", "content": {"json": {}}})"));
  Push("{}");
  const std::string commit =
      R"({"acknowledge": [")" + Reserve().token() +
      R"("], "pushes": [{"queue": "next", "message": {"payload": {"json": {"n": 1}}}}],
          "writes": [{"update": {"collection": "books", "id": "moby",
                                 "replace": {"json": {"n": 1}}}}]})";
  const auto committed = server_.Commit(commit);
  Must(committed);
  ASSERT_EQ(committed.response.message_ids_size(), 1);
  const auto popped = server_.Pop(R"({"queue": "next", "wait": "20s"})");
  Must(popped);
  ASSERT_EQ(popped.response.messages_size(), 1);
  EXPECT_EQ(popped.response.messages(0).message_id(), committed.response.message_ids(0));
  // Once more it does nothing.
  EXPECT_EQ(server_.Commit(commit).details().reason, "MESSAGE_NOT_FOUND");
}

TEST_F(QueueCalls, ARepeatedCommitNamesTheMessagesThatTheFirstOnePushed) {
  Push("{}");
  const std::string commit = R"({"request_id": "order-1", "acknowledge": [")" + Reserve().token() +
                             R"("], "pushes": [{"queue": "mails", "message": {}},
                                               {"queue": "mails", "message": {}}]})";
  const auto committed = server_.Commit(commit);
  Must(committed);
  ASSERT_EQ(committed.response.message_ids_size(), 2);
  const auto again = server_.Commit(commit);
  Must(again);
  EXPECT_TRUE(again.response.replayed());
  ASSERT_EQ(again.response.message_ids_size(), 2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(again.response.message_ids(i), committed.response.message_ids(i));
  }
}

TEST_F(QueueCalls, APurgeOfTombstonesStaysBelowWhatIsStillToCome) {
  Push(R"({"sequence_number": 5})");
  Must(server_.Commit(R"({"writes": [{"unenroll": {"student_id": "s", "class_name": "c",
                                                   "sequence_number": 4}}]})"));
  const auto stub = v1::EnrollmentService::NewStub(server_.channel());
  const auto purge = [&] {
    grpc::ClientContext context;
    v1::PurgeTombstonesResponse response;
    const grpc::Status status =
        stub->PurgeTombstones(&context,
                              Parse<v1::PurgeTombstonesRequest>(
                                  R"({"through_sequence_number": 10, "queues": ["mails"]})"),
                              &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  };
  EXPECT_EQ(purge().through_sequence_number(), 4);
  Push(R"({"sequence_number": 1})");
  const v1::PurgeTombstonesResponse nothing = purge();
  EXPECT_EQ(nothing.through_sequence_number(), 0);
  EXPECT_EQ(nothing.examined(), 0);
}

}  // namespace
}  // namespace strata::rpc_test
