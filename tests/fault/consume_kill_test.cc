// The consumers of a subscription, as `strata consume` runs them, while they and the server are
// stopped and killed: what each event does, with its lease, is done once and in order.
//
// STRATA_CONSUMED_UPDATES: so many updates are consumed (96); a kill of the server comes with each
// 32 of them, at most 20 of them.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <strata/v1/document_service.grpc.pb.h>
#include <strata/v1/feed_service.grpc.pb.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/fault/child_process.h"
#include "tests/fault/free_port.h"
#include "tests/fault/server_process.h"
#include "tests/support/temporary_directory.h"

namespace strata::fault {
namespace {

constexpr int kOrders = 16;
constexpr int kConsumers = 3;
constexpr std::chrono::seconds kPatience{120};

int UpdatesWanted() {
  const char* const wanted = std::getenv("STRATA_CONSUMED_UPDATES");
  return wanted == nullptr ? 96 : std::atoi(wanted);
}

// What is done with an event: a count of its document's versions, in order or not at all.
constexpr char kEffect[] = R"sh(
read -r event
id=$(sed 's/.*"id":"\([^"]*\)".*/\1/' <<< "$event")
version=$(sed 's/.*"version":{"version":"\([0-9]*\)".*/\1/' <<< "$event")
exec "$STRATA" update counts "$id" --allow-missing --increment /n=1 --append "/seen=$version" \
  --timeout 5s
)sh";

class ConsumeKill : public testing::Test {
 protected:
  ConsumeKill() {
    setenv("STRATA", StrataBinary().c_str(), 1);
    setenv("STRATA_SERVER", address_.c_str(), 1);
    StartServer();
  }

  void StartServer() {
    server_ = std::make_unique<ServerProcess>(settings_);
    documents_ = v1::DocumentService::NewStub(server_->Connect());
    feed_ = v1::FeedService::NewStub(server_->Connect());
  }

  // And keeps what it counted since it started.
  void KillServer() {
    grpc::ClientContext context;
    v1::GetFeedResponse feed;
    if (feed_->GetFeed(&context, {}, &feed).ok()) take_overs_ += feed.take_overs();
    server_->Kill();
    StartServer();
  }

  void Subscribe() {
    v1::CreateSubscriptionRequest request;
    request.set_name("orders");
    request.add_collections("orders");
    request.set_after_position(0);
    request.set_partitions(8);
    request.set_max_attempts(1000);  // whoever is killed is no event's fault
    request.mutable_backoff_first()->set_nanos(1'000'000);
    request.mutable_backoff_max()->set_nanos(1'000'000);
    request.mutable_ack_timeout()->set_seconds(5);
    request.mutable_lease_ttl()->set_seconds(1);
    grpc::ClientContext context;
    v1::CreateSubscriptionResponse response;
    const grpc::Status status = feed_->CreateSubscription(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }

  v1::GetSubscriptionResponse State() {
    grpc::ClientContext context;
    v1::GetSubscriptionRequest request;
    request.set_name("orders");
    v1::GetSubscriptionResponse state;
    EXPECT_TRUE(feed_->GetSubscription(&context, request, &state).ok());
    return state;
  }

  void StartConsumer(int number) {
    auto& consumer = consumers_[static_cast<size_t>(number)];
    consumer = std::make_unique<ChildProcess>(
        std::vector<std::string>{StrataBinary(), "consume", "orders", "--consumer",
                                 "consumer-" + std::to_string(number), "--retry-for", "120s", "--",
                                 "/bin/bash", "-c", kEffect},
        directory_.Join("consumer-" + std::to_string(number)));
  }

  void Update(int order) {
    v1::UpdateRequest request;
    request.set_collection("orders");
    request.set_id("order-" + std::to_string(order));
    request.set_allow_missing(true);
    v1::Operation& count = *request.mutable_patch()->add_operations();
    count.set_path("/n");
    count.mutable_increment()->set_number_value(1);
    grpc::ClientContext context;
    v1::UpdateResponse response;
    const grpc::Status status = documents_->Update(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }

  // How many versions of the order have been counted; they are 1, 2, 3, …
  int64_t Counted(int order) {
    v1::GetRequest request;
    request.set_collection("counts");
    request.set_id("order-" + std::to_string(order));
    grpc::ClientContext context;
    v1::GetResponse response;
    if (!documents_->Get(&context, request, &response).ok()) return 0;
    const auto& fields = response.document().content().json().fields();
    const auto& seen = fields.at("seen").list_value().values();
    for (int i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i].number_value(), i + 1) << order;
    EXPECT_EQ(fields.at("n").number_value(), seen.size()) << order;
    return seen.size();
  }
  int64_t CountedOfAll() {
    int64_t counted = 0;
    for (int order = 0; order < kOrders; ++order) counted += Counted(order);
    return counted;
  }
  void AwaitCounted(int64_t wanted) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (CountedOfAll() < wanted) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline)
          << CountedOfAll() << " of " << wanted << "\n"
          << ReadFile(directory_.Join("consumer-0"));
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  test_support::TemporaryDirectory directory_;
  // One port for all of its lives, so that consumers find it again.
  const std::string address_ = "127.0.0.1:" + FreePort();
  ServerSettings settings_{directory_.Join("data"), directory_.Join("log"), address_, {}};
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<v1::DocumentService::Stub> documents_;
  std::unique_ptr<v1::FeedService::Stub> feed_;
  std::unique_ptr<ChildProcess> consumers_[kConsumers];
  int64_t take_overs_ = 0;
};

TEST_F(ConsumeKill, EachEffectTakesPlaceOnceAndInOrder) {
  const int updates = UpdatesWanted();
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  std::minstd_rand random(seed);
  const auto any = [&] { return static_cast<int>(random() % kConsumers); };
  Subscribe();
  for (int number = 0; number < kConsumers; ++number) StartConsumer(number);
  int kills = 0;
  std::optional<int> stopped;
  for (int i = 0; i < updates; ++i) {
    Update(i % kOrders);
    if (i % 8 != 7) continue;
    // Not so far behind that all of it meets only the last of the consumers.
    AwaitCounted(std::max(0, i - 2 * kOrders));
    if (stopped) {
      consumers_[*stopped]->Signal(SIGCONT);
      stopped.reset();
    } else if (i % 16 == 7) {
      const int killed = any();
      consumers_[killed]->Signal(SIGKILL);
      consumers_[killed]->Wait();
      StartConsumer(killed);
    } else {
      stopped = any();
      consumers_[*stopped]->Signal(SIGSTOP);
    }
    if (i % 32 == 31 && kills < 20) {
      ++kills;
      KillServer();
    }
  }
  if (stopped) consumers_[*stopped]->Signal(SIGCONT);
  AwaitCounted(updates);
  KillServer();
  EXPECT_GE(take_overs_, 10);
  // Asked to end, each ends well.
  for (int number = 0; number < kConsumers; ++number) {
    consumers_[number]->Signal(SIGTERM);
    EXPECT_EQ(consumers_[number]->Wait(), 0)
        << ReadFile(directory_.Join("consumer-" + std::to_string(number)));
  }
  EXPECT_EQ(CountedOfAll(), updates);
  EXPECT_EQ(server_->Stop(), 0);
}

// Asked to end, it lets the command under way finish, says that its event is done, and leaves;
// asked twice, it asks the command too, and asked once more it ends that.
TEST_F(ConsumeKill, ASignalEndsItWell) {
  Subscribe();
  for (int i = 0; i < 4; ++i) Update(0);
  const auto consume = [&](const std::string& script) {
    ChildProcess consumer(
        {StrataBinary(), "consume", "orders", "--", "/bin/sh", "-c", "echo began; " + script},
        directory_.Join("consumer"));
    EXPECT_EQ(consumer.ReadLine(kPatience), "began");
    consumer.Signal(SIGTERM);
    return std::pair(consumer.Wait(), consumer.ReadAll());
  };
  EXPECT_EQ(consume("sleep 0.3; echo done"), (std::pair<int, std::string>(0, "done\n")));
  EXPECT_EQ(consume("kill -INT $PPID; sleep 60"), (std::pair<int, std::string>(0, "")));
  EXPECT_EQ(consume("trap '' TERM; for i in $(seq 1000); do kill -INT $PPID; sleep 0.01; done; "
                    "echo survived"),
            (std::pair<int, std::string>(0, "")));
  EXPECT_EQ(State().events_acknowledged(), 1);
}

// As `head` does, behind a pipe: what it has been told counts, and nothing has failed.
TEST_F(ConsumeKill, AReaderThatGoesAwayEndsItQuietly) {
  Subscribe();
  constexpr int kEndedByPipe = 128 + SIGPIPE;
  const std::string errors = directory_.Join("errors");
  const auto run_until_read = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), StrataBinary());
    ChildProcess process(arguments, errors);
    EXPECT_NE(process.ReadLine(kPatience), std::nullopt);
    process.StopReading();
    for (int i = 0; i < 2; ++i) Update(0);
    EXPECT_EQ(process.Wait(), kEndedByPipe);
  };
  Update(0);
  run_until_read({"watch", "orders", "--beginning"});
  run_until_read({"consume", "orders"});
  // It writes, and so ends by the pipe itself.
  run_until_read({"consume", "orders", "--", "/bin/cat"});
  EXPECT_EQ(ReadFile(errors), "");
  const v1::GetSubscriptionResponse state = State();
  for (const v1::SubscriptionPartition& partition : state.partitions()) {
    EXPECT_EQ(partition.attempts(), 0);
    EXPECT_EQ(partition.consumer(), "");
  }
  EXPECT_GE(state.events_acknowledged(), 1);
}

}  // namespace
}  // namespace strata::fault
