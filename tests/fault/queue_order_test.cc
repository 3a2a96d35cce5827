// Ordering keys over the real server: the messages of a key are handed out and acknowledged in the
// order of their pushes, whoever dies, and no key waits for another.
//
// STRATA_QUEUE_ORDERED: so many messages, of 1,000 keys (10,000).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "tests/fault/queue_client.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"

namespace strata::fault {
namespace {

constexpr int64_t kKeys = 1'000;
constexpr int kProducers = 4;
constexpr int kConsumers = 16;
constexpr char kQueue[] = "orders";
constexpr char kDone[] = "done";

using Random = std::mt19937_64;

// Of the message with this number: it is the (number / kKeys)-th of its key.
std::string KeyOf(int64_t number) { return "key-" + std::to_string(number % kKeys); }

class QueueOrder : public testing::Test {
 protected:
  void Create(int64_t reservation_seconds) {
    v1::QueueSettings settings;
    settings.mutable_reservation_timeout()->set_seconds(reservation_seconds);
    settings.mutable_retry_delay()->set_nanos(1'000'000);
    settings.mutable_retry_delay_max()->set_nanos(20'000'000);
    client_.Create(kQueue, settings);
  }

  // Every key's messages by one producer, so that it is known in which order they are.
  void Produce(QueueClient& client, int64_t producer, int64_t messages) {
    for (int64_t round = 0; round * kKeys < messages && !HasFailure(); ++round) {
      const int64_t first = round * kKeys + kKeys * producer / kProducers;
      client.PushNumbers(kQueue, first, first + kKeys / kProducers, [](v1::PushedMessage& message) {
        const int64_t number = NumberOf(message.payload());
        message.set_ordering_key(KeyOf(number));
        message.set_request_id(std::to_string(number));
      });
    }
  }

  // False: it dies of it.
  bool Work(QueueClient& client, const v1::QueueMessage& message, Random& random) {
    const int64_t number = NumberOf(message.payload());
    std::atomic<int64_t>& asked = asked_[static_cast<size_t>(number % kKeys)];
    // It may be handed out only after the one before it was acknowledged.
    EXPECT_GE(asked.load(), number / kKeys) << KeyOf(number);
    if (random() % 100 == 0) return false;
    if (random() % 20 == 0) {
      v1::RollbackRequest rollback;
      rollback.add_tokens(message.token());
      client.Rollback(rollback);
      return true;
    }
    v1::CommitRequest request;
    request.add_acknowledge(message.token());
    v1::UpdateRequest& update = *request.add_writes()->mutable_update();
    update.set_collection(kDone);
    update.set_id(KeyOf(number));
    update.set_allow_missing(true);
    v1::Operation& append = *update.mutable_patch()->add_operations();
    append.set_path("/seen");
    append.mutable_append()->add_values()->set_number_value(static_cast<double>(number / kKeys));
    request.set_request_id(std::to_string(random()) + "-" + std::to_string(number));
    int64_t before = asked.load();
    while (before < number / kKeys + 1 &&
           !asked.compare_exchange_weak(before, number / kKeys + 1)) {
      continue;
    }
    v1::CommitResponse response;
    const grpc::Status status = client.Commit(request, response);
    if (status.ok()) {
      ++done_;
    } else {
      EXPECT_EQ(ReasonOf(status), "RESERVATION_LOST") << status.error_message();
    }
    return true;
  }

  void ReserveAll(QueueClient& client, uint64_t seed) {
    Random random(seed);
    while (done_ < wanted_ && !HasFailure()) {
      for (const v1::QueueMessage& message : client.Reserve(
               kQueue, 1 + static_cast<int>(random() % 4), std::chrono::milliseconds(100))) {
        if (!Work(client, message, random)) break;
      }
    }
  }
  void ReceiveAll(QueueClient& client, uint64_t seed) {
    Random random(seed);
    while (done_ < wanted_ && !HasFailure()) {
      ReceiveStream stream(client, kQueue, 16, &end_);
      bool alive = true;
      for (v1::ReceiveResponse response;
           alive && done_ < wanted_ && stream.Read(response) && !HasFailure();) {
        for (const v1::QueueMessage& message : response.messages().messages()) {
          alive = alive && Work(client, message, random);
        }
      }
    }
  }

  RevivedServer server_;
  QueueClient client_{server_.Connect()};
  // How many of each key's messages somebody has asked to acknowledge.
  std::vector<std::atomic<int64_t>> asked_ = std::vector<std::atomic<int64_t>>(kKeys);
  std::atomic<int64_t> done_ = 0;
  int64_t wanted_ = 0;
  StreamsEnd end_;
};

TEST_F(QueueOrder, OfAKeyIsTheOrderOfItsPushes) {
  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  wanted_ = Wanted("STRATA_QUEUE_ORDERED", 10 * kKeys) / kKeys * kKeys;
  Create(1);
  std::vector<std::unique_ptr<QueueClient>> clients;
  std::vector<std::thread> threads;
  for (int i = 0; i < kConsumers; ++i) {
    QueueClient& client = *clients.emplace_back(std::make_unique<QueueClient>(server_.Connect()));
    const uint64_t own = seed + static_cast<uint64_t>(i);
    if (i < kProducers) threads.emplace_back([&, i] { Produce(client, i, wanted_); });
    if (i % 2 == 0) {
      threads.emplace_back([&, own] { ReserveAll(client, own); });
    } else {
      threads.emplace_back([&, own] { ReceiveAll(client, own); });
    }
  }
  bool killed = false;
  while (done_ < wanted_ && !HasFailure()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (done_ > wanted_ / 2 && !std::exchange(killed, true)) server_.Kill();
  }
  end_.BreakOffAll();
  for (std::thread& thread : threads) thread.join();
  const std::vector<v1::Document> all = client_.Documents(kDone);
  EXPECT_EQ(static_cast<int64_t>(all.size()), kKeys);
  for (const v1::Document& key : all) {
    const auto& seen = key.content().json().fields().at("seen").list_value().values();
    ASSERT_EQ(seen.size(), wanted_ / kKeys) << key.id();
    for (int i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i].number_value(), i) << key.id();
  }
  EXPECT_TRUE(client_.List(kQueue).empty());
  std::printf("%lld messages of %lld keys, seed %llu\n", static_cast<long long>(wanted_),
              static_cast<long long>(kKeys), static_cast<unsigned long long>(seed));
}

// A third of the heads is reserved, a third was rolled back for an hour and a third has not come
// due; a message of another key comes in the first call, as it does from an empty queue.
TEST_F(QueueOrder, AFreshKeyWaitsForNoBlockedOne) {
  constexpr int64_t kBlocked = 999;
  Create(3600);
  client_.PushNumbers(kQueue, 0, 3, [](v1::PushedMessage& message) {
    message.set_ordering_key("alone-" + std::to_string(NumberOf(message.payload())));
  });
  ASSERT_EQ(client_.Reserve(kQueue, 100).size(), 3U);
  const auto shape = [](v1::PushedMessage& message) {
    const int64_t number = NumberOf(message.payload());
    message.set_ordering_key(KeyOf(number));
    if (number < kBlocked && number % 3 == 0) message.mutable_delay()->set_seconds(3600);
  };
  for (int64_t round = 0; round < 3; ++round) {
    client_.PushNumbers(kQueue, round * kKeys, round * kKeys + kBlocked, shape);
  }
  int64_t heads = 0;
  v1::RollbackRequest rollback;
  rollback.mutable_delay()->set_seconds(3600);
  for (int call = 0; call < 7; ++call) {
    for (const v1::QueueMessage& message : client_.Reserve(kQueue, 100)) {
      ++heads;
      ASSERT_LT(NumberOf(message.payload()), kBlocked);
      if (NumberOf(message.payload()) % 3 == 1) rollback.add_tokens(message.token());
      if (rollback.tokens_size() < 100 && heads < kBlocked * 2 / 3) continue;
      client_.Rollback(rollback);
      rollback.clear_tokens();
    }
  }
  ASSERT_EQ(heads, kBlocked * 2 / 3);
  ASSERT_TRUE(client_.Reserve(kQueue, 100).empty());
  EXPECT_EQ(client_.Statistics(kQueue).waiting(), 2 * kBlocked);

  ReceiveStream stream(client_, kQueue, 10);
  v1::ReceiveResponse response;
  ASSERT_TRUE(stream.Read(response));
  EXPECT_TRUE(response.messages().messages().empty());  // it is open
  for (int64_t number = kBlocked; number < 3 * kKeys; number += kKeys) {
    client_.PushNumbers(kQueue, number, number + 1, shape);
    ASSERT_TRUE(stream.Read(response));
    ASSERT_EQ(response.messages().messages_size(), 1);
    EXPECT_EQ(NumberOf(response.messages().messages(0).payload()), number);
    stream.Acknowledge({response.messages().messages(0).token()});
    ASSERT_TRUE(stream.Read(response));
    ASSERT_EQ(response.results().results_size(), 1);
    EXPECT_FALSE(response.results().results(0).has_error());
  }
  EXPECT_TRUE(stream.Leave().ok());
  client_.PushNumbers(kQueue, kBlocked, kBlocked + 1, shape);
  const std::vector<v1::QueueMessage> fresh = client_.Reserve(kQueue, 100);
  ASSERT_EQ(fresh.size(), 1U);
  EXPECT_EQ(NumberOf(fresh[0].payload()), kBlocked);
}

}  // namespace
}  // namespace strata::fault
