// What goes wrong without each of the rules of a subscription: consumers and documents at random,
// sound with what is built, and unsound once a fault is planted in the store between.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schemas/feed/subscription_record.h"
#include "schemas/lease/lease_record.h"
#include "schemas/store/forwarding_store.h"
#include "tests/feed/consumers_world.h"
#include "tests/feed/seeded_runs.h"
#include "tests/support/volume.h"

namespace strata::feed::testing {
namespace {

using store::Keyspace;
using store::WriteBatch;
using test_support::IsOk;
using ::testing::IsEmpty;
using ::testing::Not;

enum class Fault {
  kNone,
  kStartsFromNow,          // what was committed before the first consumer came is passed over
  kFollowersAreNotHeld,    // later versions of a parked document are delivered
  kReleasedAfterTheFirst,  // a replay forgets the document when its first version is taken
  kReplayMovesThePlace,    // an acknowledged replay counts for all that there is
};

bool IsParked(const store::Write& write) {
  return write.keyspace == Keyspace::kFeed && write.key.starts_with("parked");
}

// Hands everything to `inner`, but for a fault.
class FaultyStore final : public store::ForwardingStore {
 public:
  FaultyStore(store::Store& inner, Fault fault) : ForwardingStore(inner), fault_(fault) {}

  std::unique_ptr<store::Cursor> Scan(Keyspace keyspace, const store::Range& range) const override {
    // What is parked is not seen by who looks for what to pass over.
    if (fault_ == Fault::kFollowersAreNotHeld && keyspace == Keyspace::kFeed &&
        range.begin.starts_with("parked")) {
      return ForwardingStore::Scan(keyspace, {"x", "x", false});
    }
    return ForwardingStore::Scan(keyspace, range);
  }

  void Commit(WriteBatch batch, store::CommitCallback done) override {
    if (fault_ == Fault::kNone || fault_ == Fault::kFollowersAreNotHeld) {
      return ForwardingStore::Commit(std::move(batch), std::move(done));
    }
    const bool replays = TakesReplay(batch);
    WriteBatch spoilt;
    for (const store::Write& write : batch.writes()) Copy(write, replays, spoilt);
    for (const store::LedgerEntry& entry : batch.ledger()) spoilt.AppendToLedger(entry);
    ForwardingStore::Commit(std::move(spoilt), std::move(done));
  }

 private:
  // Whether the batch takes a version of a replay.
  static bool TakesReplay(const WriteBatch& batch) {
    for (const store::Write& write : batch.writes()) {
      if (!IsParked(write) || write.kind != store::WriteKind::kPut ||
          write.guard != store::Guard::kStamp) {
        continue;
      }
      const auto parked = DecodeParked(write.key, write.value, 1);
      if (parked.ok() && parked->document.replay) return true;
    }
    return false;
  }
  void Copy(const store::Write& write, bool replays, WriteBatch& batch) const {
    std::string value = write.value;
    const bool is_state = write.keyspace == Keyspace::kLeases && write.key.ends_with('\1') &&
                          write.key.starts_with("$sub/") &&
                          write.key.find("member") == std::string::npos;
    if (is_state && write.kind == store::WriteKind::kPut) {
      auto state = lease::State::Decode(value);
      EXPECT_THAT(state, IsOk());
      if (fault_ == Fault::kStartsFromNow && write.guard == store::Guard::kAbsent) {
        state->place.position = LastPosition();
      }
      if (fault_ == Fault::kReplayMovesThePlace && replays) state->place = {LastPosition(), {}};
      value = state->Encode();
    }
    if (write.kind == store::WriteKind::kCheck) {
      write.guard == store::Guard::kAbsent ? batch.CheckAbsent(write.keyspace, write.key)
                                           : batch.Check(write.keyspace, write.key, write.stamp);
    } else if (write.kind == store::WriteKind::kDelete) {
      write.guard == store::Guard::kAny ? batch.Delete(write.keyspace, write.key)
                                        : batch.DeleteIf(write.keyspace, write.key, write.stamp);
    } else if (replays && IsParked(write) && fault_ == Fault::kReleasedAfterTheFirst) {
      batch.DeleteIf(write.keyspace, write.key, write.stamp);
    } else if (write.guard == store::Guard::kStamp) {
      batch.Replace(write.keyspace, write.key, value, write.stamp);
    } else if (write.guard == store::Guard::kAbsent) {
      batch.Insert(write.keyspace, write.key, value);
    } else if (write.guard == store::Guard::kEnsure) {
      batch.Ensure(write.keyspace, write.key, value);
    } else {
      batch.Put(write.keyspace, write.key, value);
    }
  }

  const Fault fault_;
};

// Documents are written, delivered, taken, refused and asked for again, and consumers come and go,
// in an order that the seed gives. Tells what was wrong.
class Scenario {
 public:
  Scenario(uint64_t seed, Fault fault)
      : world_("memory"), random_(seed), store_(world_.world->store(), fault) {
    world_.patience = microseconds(0);
    for (uint64_t i = 0; i < 2; ++i) {
      servers_.push_back(world_.NewServer(store_, seed * 2 + i));
      world_.Watch(*servers_.back());
    }
    consumers_.resize(2);
  }
  ~Scenario() {
    for (auto& consumer : consumers_) Close(consumer);
  }

  std::vector<std::string> Run() {
    CreateSubscription request = Wanted("mail", FromPosition{0}, 2);
    request.subscription.selection.collections = {"things"};
    request.subscription.max_attempts = 2;
    request.subscription.backoff_first = request.subscription.backoff_max = milliseconds(10);
    request.subscription.lease_ttl = seconds(3);
    request.subscription.ack_timeout = seconds(20);
    EXPECT_THAT(servers_[0]->Create(request), IsOk());
    for (int i = 0; i < 5; ++i) Write();
    for (int step = 0; step < 120 && wrong_.empty(); ++step) Step();
    // Nothing fails any more.
    failing_.clear();
    const auto all = [&] {
      for (auto& consumer : consumers_) {
        if (consumer == nullptr || consumer->told().finished) Open(consumer);
        Handle(*consumer, 1000);
      }
      if (random_() % 20 == 0) Ask();
      return !wrong_.empty() || (taken_ == written_ && servers_[0]->Parked("mail").empty());
    };
    const UnixMicros give_up =
        world_.world.clock().Now() + std::chrono::minutes(10) / microseconds(1);
    world_.RunUntil([&] { return all() || world_.world.clock().Now() > give_up; });
    for (auto& consumer : consumers_) Remember(*consumer);
    if (wrong_.empty() && taken_ != written_) wrong_.push_back("something was never delivered");
    return wrong_;
  }
  int replays() const { return replays_; }

 private:
  using ConsumerPtr = std::unique_ptr<TestConsumer>;

  void Write() {
    const std::string id(1, static_cast<char>('a' + random_() % 5));
    world_.Put(id, static_cast<int64_t>(random_()));
    const int64_t version = ++written_[id];
    if (random_() % 5 == 0) failing_.insert({id, version});
  }
  void Open(ConsumerPtr& consumer) {
    Close(consumer);
    Server& server = *servers_[static_cast<size_t>(&consumer - consumers_.data())];
    const int32_t window = 1 + static_cast<int32_t>(random_() % 6);
    consumer = std::make_unique<TestConsumer>(server, "mail", window, "worker", 1 + random_() % 4);
    world_.Watch(*consumer);
  }
  void Close(ConsumerPtr& consumer) {
    if (consumer == nullptr) return;
    // What it was told is known to be durable.
    Remember(*consumer);
    world_.Forget(*consumer);
    consumer.reset();
  }
  void Remember(TestConsumer& consumer) {
    for (std::string& wrong : std::exchange(consumer.told().wrong, {})) {
      wrong_.push_back("what is acknowledged of partition " + wrong);
    }
    for (const auto& [partition, place] : consumer.told().acknowledged) {
      durable_[partition] = std::max(durable_[partition], place);
    }
  }
  store::Stamp NewestToken(int32_t partition) {
    store::Stamp newest = 0;
    for (auto& consumer : consumers_) {
      if (consumer == nullptr) continue;
      const auto assigned = consumer->told().assigned.find(partition);
      if (assigned != consumer->told().assigned.end()) {
        newest = std::max(newest, assigned->second.token);
      }
    }
    return newest;
  }
  void Ask() {
    (void)servers_[random_() % 2]->Request("mail", Subscriptions::ParkedRequest::kReplay);
  }

  void Step() {
    ConsumerPtr& consumer = consumers_[random_() % 2];
    switch (random_() % 13) {
      case 0:
        Open(consumer);
        break;
      case 1:
        Close(consumer);
        break;
      case 2:
        Ask();
        break;
      case 3:
        if (!failing_.empty()) failing_.erase(failing_.begin());
        break;
      case 12:
        TakeOver(random_() % 2);
        break;
      case 4:
        world_.world.clock().Advance(milliseconds(random_() % 4000));
        break;
      case 5:
      case 6:
      case 7:
        Write();
        break;
      default:
        if (consumer != nullptr) Handle(*consumer, 1 + random_() % 4);
        break;
    }
    if (random_() % 3 > 0) {
      world_.world.clock().Advance(milliseconds(random_() % 30));
      world_.Run();
    }
  }

  // A server stands still until its leases have expired.
  void TakeOver(size_t of) {
    if (consumers_[of] == nullptr) return;
    world_.Stop(*servers_[of]);
    world_.Forget(*consumers_[of]);
    for (int i = 0; i < 8; ++i) {
      world_.world.clock().Advance(milliseconds(500));
      world_.Run();
    }
    world_.Watch(*servers_[of]);
    world_.Watch(*consumers_[of]);
  }

  void Handle(TestConsumer& consumer, size_t most) {
    for (auto& other : consumers_) {
      if (other != nullptr) Remember(*other);
    }
    for (size_t i = 0; i < most; ++i) {
      const auto next = consumer.Next();
      if (!next) return;
      const auto& [partition, delivery] = *next;
      const std::string& id = delivery.event.id;
      const int64_t version = delivery.event.version.header.version;
      replays_ += delivery.replay ? 1 : 0;
      // One that stood still may have what another was told of meanwhile.
      const bool current = delivery.lease.token >= NewestToken(partition);
      if (current && !delivery.replay && PlaceOf(delivery.event) <= durable_[partition]) {
        wrong_.push_back(NameOf(delivery.event) + " is delivered after it was acknowledged");
      }
      if (failing_.contains({id, version})) {
        if (!delivery.replay) {
          std::erase_if(consumer.told().deliveries, [&, of = partition](const auto& each) {
            return each.first == of && !each.second.replay;
          });
        }
        if (const absl::Status refused = consumer.Nack(*next); !refused.ok()) {
          wrong_.push_back("nack of " + NameOf(delivery.event) + ": " + refused.ToString());
        }
        continue;
      }
      if (const absl::Status refused = consumer.Ack(*next); !refused.ok()) {
        wrong_.push_back("ack of " + NameOf(delivery.event) + ": " + refused.ToString());
        continue;
      }
      if (version > taken_[id] + 1) {
        wrong_.push_back(NameOf(delivery.event) + " is taken before the version in front of it");
      }
      taken_[id] = std::max(taken_[id], version);
    }
  }

  ConsumersWorld world_;
  std::mt19937_64 random_;
  FaultyStore store_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<ConsumerPtr> consumers_;
  std::map<std::string, int64_t> written_;  // versions of each document
  std::map<std::string, int64_t> taken_;
  std::set<std::pair<std::string, int64_t>> failing_;
  std::map<int32_t, lease::Place> durable_;
  std::vector<std::string> wrong_;
  int replays_ = 0;
};

std::vector<std::string> Wrong(Fault fault, uint64_t runs) {
  return FirstWrong(runs, [fault](uint64_t seed) { return Scenario(seed, fault).Run(); });
}

TEST(SubscriptionFaults, WithItsRulesNothingIsLostRepeatedOrOutOfOrder) {
  EXPECT_THAT(Wrong(Fault::kNone, test_support::Sampled(200)), IsEmpty());
  int replays = 0;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Scenario scenario(seed, Fault::kNone);
    scenario.Run();
    replays += scenario.replays();
  }
  EXPECT_GT(replays, 20);
}
TEST(SubscriptionFaults, OneThatStartsFromNowIsFound) {
  EXPECT_THAT(Wrong(Fault::kStartsFromNow, 20), Not(IsEmpty()));
}
TEST(SubscriptionFaults, OneThatDoesNotHoldFollowersIsFound) {
  EXPECT_THAT(Wrong(Fault::kFollowersAreNotHeld, 20), Not(IsEmpty()));
}
TEST(SubscriptionFaults, OneThatReleasesAfterTheFirstReplayIsFound) {
  EXPECT_THAT(Wrong(Fault::kReleasedAfterTheFirst, 20), Not(IsEmpty()));
}
TEST(SubscriptionFaults, OneWhoseReplaysMoveThePlaceIsFound) {
  EXPECT_THAT(Wrong(Fault::kReplayMovesThePlace, 20), Not(IsEmpty()));
}

}  // namespace
}  // namespace strata::feed::testing
