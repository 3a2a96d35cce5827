// Many consumers of a queue of the real server, which is killed every two seconds: each message is
// acknowledged exactly once, and what belongs to that takes place as often.
//
// STRATA_QUEUE_MESSAGES: so many messages (20,000).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <utility>

#include "tests/fault/queue_client.h"
#include "tests/fault/queue_ledger.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"

namespace strata::fault {
namespace {

constexpr int kProducers = 4;
constexpr int kReservers = 32;
constexpr int kReceivers = 32;
constexpr int kClients = 8;
constexpr std::chrono::seconds kBetweenKills{2};
constexpr std::chrono::milliseconds kDawdling{1200};  // reservations last for a second
constexpr char kQueue[] = "jobs";
constexpr char kDead[] = "dead";
constexpr char kNext[] = "next";
constexpr char kEffects[] = "effects";

using Random = std::mt19937_64;
bool OneIn(Random& random, uint64_t count) { return random() % count == 0; }

// The effect of a message, as an update that counts how often it took place.
void AddEffect(int64_t number, v1::CommitRequest& request) {
  v1::UpdateRequest& update = *request.add_writes()->mutable_update();
  update.set_collection(kEffects);
  update.set_id(std::to_string(number));
  update.set_allow_missing(true);
  v1::Operation& count = *update.mutable_patch()->add_operations();
  count.set_path("/count");
  count.mutable_increment()->set_number_value(1);
}

class QueueStorm : public testing::Test {
 protected:
  void Prepare(int64_t messages) {
    ledger_ = std::make_unique<Ledger>(static_cast<size_t>(messages));
    for (int i = 0; i < kClients; ++i) {
      clients_.push_back(std::make_unique<QueueClient>(server_.Connect()));
    }
    v1::QueueSettings settings;
    settings.mutable_reservation_timeout()->set_seconds(1);
    settings.set_max_tries(12);
    settings.set_dead_letter_queue(kDead);
    settings.mutable_retry_delay()->set_nanos(1'000'000);
    settings.mutable_retry_delay_max()->set_nanos(20'000'000);
    settings.mutable_history_retention()->set_seconds(24 * 3600);
    for (const char* const queue : {kDead, kNext}) any().Create(queue);
    any().Create(kQueue, settings);
  }
  QueueClient& any() { return *clients_.front(); }

  // A repeated push is the same messages.
  static void Shape(v1::PushedMessage& message) {
    message.set_request_id("push-" + std::to_string(NumberOf(message.payload())));
  }
  void Produce(int producer) {
    const auto all = static_cast<int64_t>(ledger_->size());
    clients_[static_cast<size_t>(producer % kClients)]->PushNumbers(
        kQueue, all * producer / kProducers, all * (producer + 1) / kProducers, Shape);
  }

  Fate& FateOf(const v1::QueueMessage& message) {
    return ledger_->at(static_cast<size_t>(NumberOf(message.payload())));
  }
  // What was answered to an acknowledgement that is not a repetition.
  void Note(Fate& fate, const std::string& refusal) {
    if (refusal.empty()) {
      ++fate.acknowledged;
    } else {
      EXPECT_THAT(refusal,
                  testing::AnyOf("RESERVATION_LOST", "MESSAGE_NOT_FOUND", "ALREADY_ACKNOWLEDGED"));
      ++lost_;
    }
  }

  // Acknowledges together with the effect.
  void Work(QueueClient& client, const v1::QueueMessage& message, Random& random) {
    const int64_t number = NumberOf(message.payload());
    v1::CommitRequest request;
    request.add_acknowledge(message.token());
    AddEffect(number, request);
    if (ErrandOf(number) == Errand::kPassOn) {
      v1::QueuePush& push = *request.add_pushes();
      push.set_queue(kNext);
      *push.mutable_message() = NumberedMessage(number);
    }
    request.set_request_id("work-" + std::to_string(random()) + "-" + std::to_string(number));
    Fate& fate = FateOf(message);
    v1::CommitResponse response;
    if (OneIn(random, 200)) {  // it dies while it waits for the answer
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(1));
      ++fate.unanswered;
      client.transactions().Commit(&context, request, &response);
      return;
    }
    const grpc::Status status = client.Commit(request, response);
    if (response.replayed()) ++repeated_;
    Note(fate, status.ok() ? "" : ReasonOf(status));
    if (!status.ok() || !OneIn(random, 16)) return;
    // As whoever lost the answer says it again, by the same request id or without any.
    if (OneIn(random, 2)) request.clear_request_id();
    const grpc::Status again = client.Commit(request, response);
    if (request.request_id().empty()) {
      EXPECT_EQ(again.ok() ? "OK" : ReasonOf(again), "ALREADY_ACKNOWLEDGED");
    } else {
      EXPECT_TRUE(again.ok() && response.replayed()) << again.error_message();
    }
  }

  void Give(QueueClient& client, const v1::QueueMessage& message, bool dead) {
    v1::RollbackRequest request;
    request.add_tokens(message.token());
    request.set_dead(dead);
    client.Rollback(request);
  }

  // False: the consumer dies of it. What is only to be acknowledged is left to `acknowledge`.
  bool Consume(QueueClient& client, const v1::QueueMessage& message, Random& random,
               const std::function<void()>& acknowledge) {
    const Errand errand = ErrandOf(NumberOf(message.payload()));
    if (OneIn(random, 300)) return false;
    if (OneIn(random, 600)) std::this_thread::sleep_for(kDawdling);
    if (errand == Errand::kRefuse || errand == Errand::kFailAlways || OneIn(random, 50)) {
      Give(client, message, errand == Errand::kRefuse);
    } else if (errand == Errand::kPlain) {
      acknowledge();
    } else {
      Work(client, message, random);
    }
    return true;
  }

  void ReserveAll(int consumer) {
    QueueClient& client = *clients_[static_cast<size_t>(consumer % kClients)];
    Random random(seed_ + static_cast<uint64_t>(consumer));
    while (!over_ && !HasFailure()) {
      const int count = 1 + static_cast<int>(random() % 4);
      for (const v1::QueueMessage& message :
           client.Reserve(kQueue, count, std::chrono::milliseconds(500))) {
        const bool alive = Consume(client, message, random, [&] {
          const v1::TokenResult result = client.Acknowledge(message.token());
          // Where the first answer was lost the repetition's counts, and it says so.
          Note(FateOf(message), result.has_error() ? result.error().reason() : "");
        });
        if (!alive) break;
      }
    }
  }

  void ReceiveAll(int consumer) {
    QueueClient& client = *clients_[static_cast<size_t>(consumer % kClients)];
    Random random(seed_ + static_cast<uint64_t>(consumer));
    while (!over_ && !HasFailure()) {
      ReceiveStream stream(client, kQueue, 8, &end_);
      std::map<std::string, Fate*> asked;
      bool alive = true;
      for (v1::ReceiveResponse response; alive && stream.Read(response);) {
        for (const v1::QueueMessage& message : response.messages().messages()) {
          alive = alive && Consume(client, message, random, [&] {
                    asked[message.token()] = &FateOf(message);
                    stream.Acknowledge({message.token()});
                  });
        }
        for (int i = 0; i < response.results().tokens_size(); ++i) {
          const v1::TokenResult& result = response.results().results(i);
          const auto told = asked.extract(response.results().tokens(i));
          ASSERT_FALSE(told.empty());
          Note(*told.mapped(), result.has_error() ? result.error().reason() : "");
        }
      }
      for (const auto& [token, fate] : asked) ++fate->unanswered;
    }
  }

  // Killed again and again until nothing is left to be done.
  void KillUntilDone() {
    auto next = std::chrono::steady_clock::now() + kBetweenKills;
    while (!HasFailure()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      if (std::chrono::steady_clock::now() >= next) {
        server_.Kill();
        ++kills_;
        next = std::chrono::steady_clock::now() + kBetweenKills;
      }
      if (producing_ > 0) continue;
      const auto left = any().ExactStatistics(kQueue);
      if (left && left->ready() + left->scheduled() + left->reserved() == 0) return;
    }
  }

  void Count() {
    const auto each = [&](const std::vector<v1::QueueMessage>& messages, int32_t Fate::*member) {
      for (const v1::QueueMessage& message : messages) ++(FateOf(message).*member);
    };
    each(any().List(kQueue, v1::MESSAGE_STATE_FINISHED), &Fate::finished);
    each(any().List(kQueue), &Fate::unfinished);
    each(any().List(kQueue, v1::MESSAGE_STATE_DEAD), &Fate::unfinished);
    each(any().List(kDead), &Fate::dead);
    each(any().List(kNext), &Fate::passed_on);
    for (const v1::Document& document : any().Documents(kEffects)) {
      ledger_->at(static_cast<size_t>(std::stoll(document.id()))).effects =
          static_cast<int32_t>(document.content().json().fields().at("count").number_value());
    }
  }

  const uint64_t seed_ = test_support::TestSeed();
  RevivedServer server_;
  std::vector<std::unique_ptr<QueueClient>> clients_;
  std::unique_ptr<Ledger> ledger_;
  std::atomic<int> producing_ = kProducers;
  std::atomic<bool> over_ = false;
  std::atomic<int64_t> repeated_ = 0;
  std::atomic<int64_t> lost_ = 0;
  int kills_ = 0;
  StreamsEnd end_;
};

TEST_F(QueueStorm, EachMessageIsAcknowledgedOnceWhoeverDies) {
  STRATA_TRACE_SEED(seed_);
  Prepare(Wanted("STRATA_QUEUE_MESSAGES", 20'000));
  std::vector<std::thread> threads;
  for (int i = 0; i < kProducers; ++i) {
    threads.emplace_back([this, i] {
      Produce(i);
      --producing_;
    });
  }
  for (int i = 0; i < kReservers; ++i) threads.emplace_back([this, i] { ReserveAll(i); });
  for (int i = 0; i < kReceivers; ++i) {
    threads.emplace_back([this, i] { ReceiveAll(kReservers + i); });
  }
  KillUntilDone();
  over_ = true;
  end_.BreakOffAll();
  server_.Kill();
  for (std::thread& thread : threads) thread.join();
  Count();
  EXPECT_EQ(FaultsOf(*ledger_), std::vector<std::string>{}) << "seed " << seed_;
  const auto dead = std::count_if(ledger_->begin(), ledger_->end(),
                                  [](const Fate& fate) { return fate.dead == 1; });
  std::printf(
      "%zu messages, %td of them dead, %d kills, %lld lost answers repeated, %lld "
      "acknowledgements too late, seed %llu\n",
      ledger_->size(), dead, kills_ + 1, static_cast<long long>(repeated_.load()),
      static_cast<long long>(lost_.load()), static_cast<unsigned long long>(seed_));
  EXPECT_EQ(server_.Stop(), 0);
}

// Planted: the acknowledgement is a commit of its own, after that of the effect, and the consumer
// dies between them.
TEST_F(QueueStorm, AnAcknowledgementApartFromItsEffectIsFound) {
  Prepare(8);
  any().PushNumbers(kQueue, 0, 8, Shape);
  bool died = false;
  for (int done = 0; done < 8;) {
    ReceiveStream stream(any(), kQueue, 1);
    v1::ReceiveResponse response;
    while (done < 8 && stream.Read(response)) {
      if (response.messages().messages().empty()) continue;
      const v1::QueueMessage& message = response.messages().messages(0);
      v1::CommitRequest effect;
      AddEffect(NumberOf(message.payload()), effect);
      v1::CommitResponse committed;
      ASSERT_TRUE(any().Commit(effect, committed).ok());
      if (NumberOf(message.payload()) == 5 && !std::exchange(died, true)) break;
      ASSERT_FALSE(any().Acknowledge(message.token()).has_error());
      ++FateOf(message).acknowledged;
      ++done;
    }
  }
  Count();
  EXPECT_THAT(FaultsOf(*ledger_), testing::Contains("message 5 has 2 effects"));
}

}  // namespace
}  // namespace strata::fault
