// Streams that do nothing with what they are given, and many to which nothing is given: the server
// keeps little for each of them, and serves others as if they were not there.
//
// STRATA_QUEUE_IDLE_STREAMS: so many to which nothing is given (1,000).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/fault/child_process.h"
#include "tests/fault/queue_client.h"
#include "tests/support/places.h"

namespace strata::fault {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr char kQueue[] = "jobs";

// What others do meanwhile: a message goes through a queue of theirs, and one of a stream.
void ExpectServed(QueueClient& client, const std::string& queue) {
  client.Create(queue);
  client.PushNumbers(queue, 0, 2);
  const std::vector<v1::QueueMessage> reserved = client.Reserve(queue, 1);
  ASSERT_EQ(reserved.size(), 1U);
  EXPECT_FALSE(client.Acknowledge(reserved[0].token()).has_error());
  ReceiveStream stream(client, queue, 1);
  v1::ReceiveResponse response;
  do ASSERT_TRUE(stream.Read(response));
  while (response.messages().messages().empty());
  EXPECT_EQ(NumberOf(response.messages().messages(0).payload()), 1);
  stream.Acknowledge({response.messages().messages(0).token()});
  ASSERT_TRUE(stream.Read(response));
  EXPECT_FALSE(response.results().results(0).has_error());
  EXPECT_TRUE(stream.Leave().ok());
}

TEST(QueueStreams, OneThatNeverReadsIsHandedLittle) {
  constexpr int kStreams = 8;
  constexpr int64_t kMessages = 2'000;
  constexpr size_t kPayload = size_t{64} << 10;
  RevivedServer server({"--block-cache-mib", "8"});
  QueueClient client(server.Connect());
  client.Create(kQueue);
  for (int64_t number = 0; number < kMessages;) {
    v1::PushRequest request;
    request.set_queue(kQueue);
    for (int i = 0; i < 40; ++i) *request.add_messages() = NumberedMessage(number++, kPayload);
    client.Push(request);
  }
  const int64_t before = ResidentBytes(server.pid());
  // Each of them might have half of all.
  QueueClient silent(server.Connect());
  std::vector<std::unique_ptr<ReceiveStream>> streams;
  for (int i = 0; i < kStreams; ++i) {
    streams.push_back(std::make_unique<ReceiveStream>(silent, kQueue, 1'000));
  }
  ExpectServed(client, "others");
  // Who reads has the rest of it, while they have what they have.
  ReceiveStream stream(client, kQueue, 1'000);
  int64_t received = 0;
  int64_t reserved = 0;
  v1::ReceiveResponse response;
  do {
    ASSERT_TRUE(stream.Read(response));
    std::vector<std::string> tokens;
    for (const v1::QueueMessage& message : response.messages().messages()) {
      tokens.push_back(message.token());
    }
    received += response.messages().messages_size();
    if (!tokens.empty()) stream.Acknowledge(tokens);
    const v1::QueueStatistics statistics = client.Statistics(kQueue);
    reserved = statistics.reserved();
    if (statistics.ready() == 0) break;
  } while (true);
  const int64_t grown = ResidentBytes(server.pid()) - before;
  std::printf("%lld messages of 64 KiB read by one, %lld are out; %lld MiB more memory\n",
              static_cast<long long>(received), static_cast<long long>(reserved),
              static_cast<long long>(grown / kMiB));
  EXPECT_GE(received + reserved, kMessages);
  EXPECT_LT(grown, 64 * kMiB);
}

TEST(QueueStreams, OneThatNeverAcknowledgesHasItsCreditsAndNoMore) {
  constexpr int64_t kMessages = 1'000;
  constexpr int kCredits = 100;
  RevivedServer server;
  QueueClient client(server.Connect());
  client.Create(kQueue);
  client.PushNumbers(kQueue, 0, kMessages);
  ReceiveStream stream(client, kQueue, kCredits);
  int64_t held = 0;
  for (v1::ReceiveResponse response; held < kCredits && stream.Read(response);) {
    held += response.messages().messages_size();
  }
  EXPECT_EQ(held, kCredits);
  ExpectServed(client, "others");
  std::set<int64_t> rest;
  while (true) {
    const std::vector<v1::QueueMessage> messages = client.Reserve(kQueue, 100);
    if (messages.empty()) break;
    for (const v1::QueueMessage& message : messages) rest.insert(NumberOf(message.payload()));
  }
  EXPECT_EQ(static_cast<int64_t>(rest.size()), kMessages - kCredits);
}

// A stream to which nothing is given.
struct IdleStream {
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ReceiveRequest, v1::ReceiveResponse>> stream;
};

// Callers by their tokens, and what is open of theirs.
class IdleStreams : public testing::Test {
 protected:
  static constexpr int64_t kUsualRoom = 10'000;  // streams at the default of --in-flight-mib-max
  static constexpr int kCallers = 4;
  static constexpr int64_t kOfOneConnection = 64;

  IdleStreams() {
    std::ofstream tokens(directory_.Join("tokens"));
    for (int i = 0; i < kCallers; ++i) {
      const std::string name = "caller-" + std::to_string(i);
      const Finished made =
          RunToEnd({test_support::ServerProgram(), "token", name}, directory_.Join("log"));
      const size_t end = made.output.find('\n');
      tokens_.push_back(made.output.substr(0, end));
      tokens << made.output.substr(end + 1);
    }
    tokens.close();
    chmod(directory_.Join("tokens").c_str(), S_IRUSR | S_IWUSR);
    const int64_t mib = std::max<int64_t>(8, 256 * wanted_ / kUsualRoom);
    server_ = std::make_unique<RevivedServer>(std::vector<std::string>{
        "--tokens", directory_.Join("tokens"), "--in-flight-mib-max", std::to_string(mib)});
  }
  ~IdleStreams() override {
    for (const auto& open : open_) open->context.TryCancel();
    for (const auto& open : open_) {
      v1::ReceiveResponse response;
      while (open->stream->Read(&response)) continue;
      open->stream->Finish();
    }
  }

  // So many more of that caller; none: without a token. Answers how many were refused.
  int64_t Open(std::optional<int> caller, int64_t count) {
    int64_t refused = 0;
    for (int64_t i = 0; i < count; ++i) {
      auto idle = std::make_unique<IdleStream>();
      idle->context.set_wait_for_ready(true);
      if (caller) {
        idle->context.AddMetadata("authorization",
                                  "Bearer " + tokens_[static_cast<size_t>(*caller)]);
      }
      if (i % kOfOneConnection == 0) {
        stubs_.push_back(v1::QueueService::NewStub(server_->Connect()));
      }
      idle->stream = stubs_.back()->Receive(&idle->context);
      v1::ReceiveRequest request;
      request.mutable_open()->set_queue(kQueue);
      request.mutable_open()->set_credits(1);
      idle->stream->Write(request);
      v1::ReceiveResponse response;
      if (idle->stream->Read(&response)) {
        open_.push_back(std::move(idle));
        continue;
      }
      ++refused;
      EXPECT_EQ(ReasonOf(idle->stream->Finish()), "OVERLOADED");
    }
    return refused;
  }

  void ExpectLittleMemory(const char* whose, int64_t before) const {
    const auto open = static_cast<int64_t>(open_.size());
    const int64_t grown = ResidentBytes(server_->pid()) - before;
    std::printf("%lld of %lld streams of %s are open, %lld KiB of memory each\n",
                static_cast<long long>(open), static_cast<long long>(wanted_), whose,
                static_cast<long long>(grown / 1024 / std::max<int64_t>(1, open)));
    EXPECT_LT(grown, open * 64 * 1024);
  }

  const int64_t wanted_ = Wanted("STRATA_QUEUE_IDLE_STREAMS", 1'000);
  test_support::TemporaryDirectory directory_;
  std::vector<std::string> tokens_;
  std::unique_ptr<RevivedServer> server_;
  std::vector<std::unique_ptr<v1::QueueService::Stub>> stubs_;
  std::vector<std::unique_ptr<IdleStream>> open_;
};

TEST_F(IdleStreams, OfSeveralCallersAreAllThere) {
  QueueClient client(server_->Connect());
  client.Create(kQueue);
  const int64_t before = ResidentBytes(server_->pid());
  for (int caller = 0; caller < kCallers; ++caller) {
    EXPECT_EQ(Open(caller, wanted_ / kCallers), 0);
  }
  ExpectLittleMemory("four callers", before);
  ExpectServed(client, "others");
}

// Half of all that the server may hold, as long as nobody else wants any; it is left to others.
TEST_F(IdleStreams, OfOneAddressHaveItsShare) {
  QueueClient(server_->Connect()).Create(kQueue);
  const int64_t before = ResidentBytes(server_->pid());
  const int64_t refused = Open({}, wanted_);
  ExpectLittleMemory("one address", before);
  EXPECT_GT(refused, 0);
  EXPECT_GT(static_cast<int64_t>(open_.size()), wanted_ * 3 / 4);
  EXPECT_EQ(Open(1, wanted_ / 10), 0);
}

}  // namespace
}  // namespace strata::fault
