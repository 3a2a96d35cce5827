// Watch and GetFeed over a real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "schemas/versioning/ledger_trimming.h"
#include "service/engines/engines.h"
#include "tests/rpc/secured_server.h"
#include "tests/rpc/watching.h"
#include "tests/support/moved_clock.h"
#include "tests/support/temporary_directory.h"

namespace strata::rpc_test {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

std::string PutOf(const std::string& id, const std::string& text) {
  return R"({"collection": "books", "id": ")" + id +
         R"(", "allow_missing": true, "replace": {"json": {"text": ")" + text + "\"}}}";
}

v1::GetFeedResponse GetFeed(TestServer& server) {
  const auto stub = v1::FeedService::NewStub(server.channel());
  grpc::ClientContext context;
  v1::GetFeedResponse response;
  EXPECT_TRUE(stub->GetFeed(&context, {}, &response).ok());
  return response;
}

TEST(WatchCall, TellsItsPlaceAndThenWhatHappens) {
  TestServer server;
  const auto before = server.Update(PutOf("a", "one"));
  Watching watching(server, R"({"include_content": true, "include_before": true,
                                "include_changes": true})");
  const std::optional<v1::WatchResponse> first = watching.Next();
  ASSERT_NE(first, std::nullopt);
  EXPECT_EQ(first->events_size(), 0);
  EXPECT_EQ(first->resume_position(), before.response.commit_position());
  EXPECT_EQ(first->last_position(), before.response.commit_position());
  const auto written = server.Update(PutOf("a", "two"));
  const std::optional<v1::WatchResponse> second = watching.Next();
  ASSERT_NE(second, std::nullopt);
  ASSERT_EQ(second->events_size(), 1);
  const v1::Event& event = second->events(0);
  EXPECT_EQ(event.position(), written.response.commit_position());
  EXPECT_EQ(event.type(), v1::EVENT_TYPE_VERSION);
  EXPECT_EQ(event.collection(), "books");
  EXPECT_EQ(event.id(), "a");
  EXPECT_EQ(event.version().version(), 2);
  EXPECT_EQ(event.version().kind(), v1::VERSION_KIND_UPDATED);
  EXPECT_THAT(event.version().content_hash(), SizeIs(32));
  EXPECT_EQ(event.version().content().json().fields().at("text").string_value(), "two");
  EXPECT_EQ(event.before().json().fields().at("text").string_value(), "one");
  ASSERT_EQ(event.version().changes_size(), 1);
  EXPECT_EQ(event.version().changes(0).path(), "/text");
  EXPECT_FALSE(event.truncated());
  EXPECT_EQ(second->resume_position(), event.position());
}

TEST(WatchCall, WithoutContentAnEventIsTheLedgersAlone) {
  TestServer server;
  server.Update(PutOf("a", "one"));
  Watching watching(server, R"({"after_position": 0})");
  const std::vector<v1::Event> events = watching.Events(1);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].version().version(), 1);
  EXPECT_TRUE(events[0].version().has_commit_time());
  EXPECT_FALSE(events[0].version().has_content());
  EXPECT_TRUE(events[0].version().content_hash().empty());
  EXPECT_FALSE(events[0].has_before());
}

TEST(WatchCall, MessagesAreSmallUnlessOneEventIsLarge) {
  TestServer server;
  for (int i = 0; i < 40; ++i) server.Update(PutOf("a", std::string(20'000 + i, 'x')));
  server.Update(PutOf("a", std::string(900'000, 'y')));
  Watching watching(server, R"({"after_position": 0, "include_content": true})");
  int64_t version = 0;
  size_t messages = 0;
  while (version < 41) {
    const std::optional<v1::WatchResponse> message = watching.Next();
    ASSERT_NE(message, std::nullopt);
    ++messages;
    if (message->events_size() > 1) {
      EXPECT_LE(message->ByteSizeLong(), (256 << 10) + 1024);
    }
    for (const v1::Event& event : message->events()) {
      EXPECT_EQ(event.version().version(), ++version);
      EXPECT_FALSE(event.truncated());
    }
  }
  EXPECT_GE(messages, 5u);
}

TEST(WatchCall, ContentsThatAreTooMuchAreLeftOut) {
  app::ServerOptions options = TestOptions();
  options.document_bytes_max = size_t{2} << 20;
  TestServer server(options);
  for (const char letter : {'x', 'y'}) {
    ASSERT_TRUE(server.Update(PutOf("a", std::string(1'900'000, letter))).ok());
  }
  Watching watching(server, R"({"after_position": 0, "include_content": true,
                                "include_before": true, "include_changes": true})");
  const std::vector<v1::Event> events = watching.Events(2);
  ASSERT_THAT(events, SizeIs(2));
  EXPECT_TRUE(events[1].truncated());
  EXPECT_TRUE(events[1].version().has_content());
  EXPECT_FALSE(events[1].has_before());
  EXPECT_LE(events[1].ByteSizeLong(), 3 << 20);
}

TEST(WatchCall, GoesOnBehindTheLastPlaceTold) {
  TestServer server;
  int64_t resume = 0;
  {
    Watching dies(server, "{}");
    resume = dies.Next()->resume_position();
  }
  server.Update(PutOf("a", "one"));
  Watching goes_on(server, R"({"after_position": ")" + std::to_string(resume) + "\"}");
  EXPECT_THAT(goes_on.Events(1), SizeIs(1));
}

TEST(WatchCall, GetFeedTellsWhoListens) {
  TestServer server;
  const int64_t first = server.Update(PutOf("a", "one")).response.commit_position();
  std::vector<std::unique_ptr<Watching>> watching;
  for (int i = 0; i < 10; ++i) {
    watching.push_back(std::make_unique<Watching>(server, R"({"after_position": 0})"));
    EXPECT_THAT(watching.back()->Events(1), SizeIs(1));
  }
  v1::GetFeedResponse feed = GetFeed(server);
  EXPECT_GT(feed.oldest_position(), 0);
  EXPECT_LE(feed.oldest_position(), first);
  EXPECT_EQ(feed.last_position(), first);
  EXPECT_EQ(feed.watchers(), 10);
  EXPECT_EQ(feed.events_sent(), 10);
  watching.clear();
  while (GetFeed(server).watchers() > 0) std::this_thread::yield();
  EXPECT_EQ(GetFeed(server).parked_watchers(), 0);
}

TEST(WatchCall, GetFeedTellsHowLongTheLedgerIsKept) {
  app::ServerOptions options = TestOptions();
  {
    TestServer for_ever(options);
    EXPECT_FALSE(GetFeed(for_ever).has_retention());
  }
  options.ledger_retention = std::chrono::hours(12);
  TestServer server(options);
  EXPECT_EQ(GetFeed(server).retention().seconds(), 12 * 3600);
}

// More is behind its place than is on its way to it when the ledger is trimmed.
TEST(WatchCall, WhoSleepsThroughATrimIsToldSoAndGoesOnByACopy) {
  test_support::MovedClock clock;
  app::ServerOptions options = TestOptions();
  options.clock = &clock;
  auto store = *engines::OpenEngine("memory", engines::OpenOptions());
  store::Store& engine = *store;
  TestServer server(options, std::move(store));
  int64_t trimmed = 0;
  for (size_t i = 0; i < 400; ++i) {
    const auto written = server.Update(PutOf(std::to_string(i % 5), std::string(50'000 + i, 'x')));
    ASSERT_TRUE(written.ok()) << written.status.error_message();
    trimmed = written.response.commit_position();
  }
  Watching asleep(server, R"({"after_position": 0, "include_content": true})");
  ASSERT_NE(asleep.Next(), std::nullopt);
  clock.Move(std::chrono::hours(24));
  const int64_t kept = server.Update(PutOf("kept", "one")).response.commit_position();
  const versioning::FloorHolders nobody;
  versioning::LedgerTrimmer trimmer(engine, clock, std::chrono::hours(12), nobody);
  ASSERT_TRUE(trimmer.Trim().ok());

  int64_t last = 0;
  while (const std::optional<v1::WatchResponse> message = asleep.Next()) {
    for (const v1::Event& event : message->events()) {
      EXPECT_EQ(event.version().version(), last++ / 5 + 1);
    }
  }
  EXPECT_LT(last, 400);
  const Details told = DetailsOf(asleep.AwaitEnd());
  EXPECT_EQ(told.reason, "POSITION_TRIMMED");
  EXPECT_EQ(told.metadata.at("oldest"), std::to_string(trimmed));
  EXPECT_EQ(GetFeed(server).oldest_position(), kept);

  Watching copying(server, R"({"snapshot": {}})");
  int documents = 0;
  for (bool complete = false; !complete;) {
    const std::optional<v1::WatchResponse> message = copying.Next();
    ASSERT_NE(message, std::nullopt) << copying.AwaitEnd().error_message();
    documents += message->documents_size();
    complete = message->snapshot().complete();
  }
  EXPECT_EQ(documents, 6);
  const int64_t later = server.Update(PutOf("kept", "two")).response.commit_position();
  const std::vector<v1::Event> events = copying.Events(1);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].position(), later);

  grpc::ClientContext context;
  const auto verifying =
      server.collections().Verify(&context, Parse<v1::VerifyRequest>(R"({"collection": "books"})"));
  v1::VerifyResponse verified;
  while (verifying->Read(&verified)) EXPECT_EQ(verified.findings_size(), 0);
  EXPECT_TRUE(verifying->Finish().ok());
  EXPECT_TRUE(verified.complete());
  EXPECT_EQ(verified.versions(), 402);
  const auto audited = server.Audit("{}");
  ASSERT_EQ(audited.response.entries_size(), 2);
  EXPECT_EQ(audited.response.entries(0).commit_position(), kept);
}

TEST(WatchCall, EndsWhenTheServerDoes) {
  auto server = std::make_unique<TestServer>();
  std::vector<std::unique_ptr<Watching>> watching;
  for (int i = 0; i < 20; ++i) {
    watching.push_back(std::make_unique<Watching>(*server, R"({"after_position": 0})"));
    ASSERT_NE(watching.back()->Next(), std::nullopt);
  }
  // Commits go on while it ends.
  std::thread writer([&] {
    for (int i = 0; server->Update(PutOf("a", std::to_string(i))).ok();) ++i;
  });
  std::thread ending([&] { server->server().Shutdown(); });
  for (const auto& each : watching) {
    const grpc::Status status = each->AwaitEnd();
    EXPECT_EQ(DetailsOf(status).reason, "DRAINING") << status.error_message();
  }
  ending.join();
  writer.join();
}

TEST(WatchCall, WhatItsCallerMayReadIsAskedAgain) {
  SecuredServer server(R"({"principals": ["user:late"], "role": "reader",
                           "resources": ["collection/books"]})",
                       {"late"});
  const auto [channel, authorization] = server.Dial(server.User("late"));
  const auto stub = v1::FeedService::NewStub(channel);
  grpc::ClientContext context;
  context.AddMetadata("authorization", authorization);
  const auto stream =
      stub->Watch(&context, Parse<v1::WatchRequest>(R"({"collections": ["books"]})"));
  v1::WatchResponse message;
  ASSERT_TRUE(stream->Read(&message));
  server.LetTokensEnd();
  const Answered written = CallAnything(server.Connect(server.Uri("spiffe://test/owner")),
                                        "strata.v1.DocumentService/Update", PutOf("a", "one"));
  ASSERT_TRUE(written.status.ok()) << written.status.error_message();
  EXPECT_FALSE(stream->Read(&message)) << message.ShortDebugString();
  EXPECT_EQ(DetailsOf(stream->Finish()).reason, "CREDENTIALS_INVALID");
}

// Position 0 asks for now: a copy of nothing that was gone on with would be as of another moment.
TEST(WatchCall, ACopyOfNothingIsCompleteAtOnce) {
  const test_support::TemporaryDirectory directory;
  engines::OpenOptions open;
  open.directory = directory.path();
  TestServer server(TestOptions(), *engines::OpenEngine("rocksdb", open));
  Watching watching(server, R"({"snapshot": {}})");
  const std::optional<v1::WatchResponse> first = watching.Next();
  ASSERT_NE(first, std::nullopt);
  EXPECT_EQ(first->snapshot().at_position(), 0);
  EXPECT_TRUE(first->snapshot().complete());
  EXPECT_EQ(first->documents_size(), 0);
  EXPECT_EQ(first->resume_position(), 0);
  ASSERT_TRUE(server.Create(R"({"collection": "c", "id": "x", "content": {"json": {}}})").ok());
  const std::vector<v1::Event> events = watching.Events(1);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].id(), "x");
  // Whoever goes on with what the first message told hears the same.
  Watching again(server, R"({"snapshot": {"complete": true}})");
  EXPECT_THAT(again.Events(1), SizeIs(1));
}

TEST(WatchCall, ACopyIsFollowedByTheTail) {
  TestServer server;
  for (int i = 0; i < 300; ++i) {
    server.Update(PutOf("id" + std::to_string(1000 + i), "old"));
  }
  Watching watching(server, R"({"collections": ["books"], "snapshot": {}})");
  const std::optional<v1::WatchResponse> first = watching.Next();
  ASSERT_NE(first, std::nullopt);
  EXPECT_GT(first->snapshot().at_position(), 0);
  const int64_t written = server.Update(PutOf("id1299", "new")).response.commit_position();
  std::vector<std::string> ids;
  bool complete = false;
  while (!complete) {
    const std::optional<v1::WatchResponse> message = watching.Next();
    ASSERT_NE(message, std::nullopt);
    for (const v1::Document& document : message->documents()) {
      ids.push_back(document.id());
      EXPECT_EQ(document.content().json().fields().at("text").string_value(), "old");
    }
    complete = message->snapshot().complete();
    EXPECT_EQ(message->resume_position(), complete ? first->snapshot().at_position() : 0);
  }
  EXPECT_THAT(ids, SizeIs(300));
  EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
  const std::vector<v1::Event> events = watching.Events(1);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].position(), written);
}

}  // namespace
}  // namespace strata::rpc_test
