// Two servers that share a subscription, one of which stands still at any point until the other has
// taken over: what the one that comes back does must not undo, repeat or overtake anything.
//
// STRATA_TAKE_OVERS: so many rounds over the memory engine (200), in each of which up to three
// partitions are taken over; over RocksDB a twenty-fifth of that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/feed/consumers_world.h"

namespace strata::feed::testing {
namespace {

using test_support::HasReason;
using test_support::IsOk;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr int32_t kPartitions = 3;
constexpr int32_t kWindow = 3;
// So many events at most are written and not done.
constexpr size_t kOpenMax = 60;

// What was done for an event.
struct Effect {
  store::CommitPosition position = 0;  // of the write that is the effect, or in the order of calls
  int32_t partition = 0;
  store::Stamp token = 0;
  std::string event;
};

// A server with a consumer, whose handler holds on to what it is at, however long that is.
struct Party {
  std::unique_ptr<Server> server;
  std::unique_ptr<TestConsumer> consumer;
  std::map<int32_t, std::deque<Delivery>> held;  // by partition; none is empty
};

int Rounds(const std::string& engine) {
  const char* const wanted = std::getenv("STRATA_TAKE_OVERS");
  const int rounds = wanted == nullptr ? 200 : std::atoi(wanted);
  return engine == "memory" ? rounds : rounds / 25;
}

class TakeOversTest : public ::testing::TestWithParam<std::string> {
 protected:
  // Has the party handle so many events that it holds, or all.
  using Handle = std::function<void(Party& party, size_t most)>;

  TakeOversTest() {
    if (GetParam() != "rocksdb") world.patience = microseconds(0);
    for (uint64_t i = 0; i < 2; ++i) {
      parties.push_back({world.NewServer(i + 1), nullptr, {}});
      world.Watch(*parties.back().server);
    }
    CreateSubscription request = Wanted("mail", FromPosition{0}, kPartitions);
    request.subscription.selection.collections = {"things"};
    request.subscription.max_attempts = 100;
    request.subscription.backoff_first = milliseconds(1);
    request.subscription.backoff_max = milliseconds(1);
    request.subscription.lease_ttl = seconds(3);
    request.subscription.ack_timeout = std::chrono::hours(1);
    EXPECT_THAT(parties[0].server->Create(request), IsOk());
    for (Party& party : parties) OpenFor(party);
  }

  void OpenFor(Party& party) {
    party.held.clear();
    party.consumer = std::make_unique<TestConsumer>(*party.server, "mail", kWindow);
    world.Watch(*party.consumer);
  }
  void Write() {
    const std::string id = std::to_string(random() % 12);
    world.Put(id, static_cast<int64_t>(random()));
    written.push_back("things/" + id + "@" + std::to_string(++versions[id]));
  }
  void WriteSome(size_t done) {
    for (int i = 0; i < 6 && written.size() < done + kOpenMax; ++i) Write();
  }
  size_t HeldBy(const Party& party) const { return party.consumer->told().assigned.size(); }

  // The other one stands still until this one has all partitions; which may be gone in turn before
  // what failed with the other comes again, or after it has renewed its leases.
  void TakeOver(Party& party, Party& other) {
    world.Stop(*other.server);
    world.Forget(*other.consumer);
    ASSERT_TRUE(world.RunUntil([&] { return HeldBy(party) == kPartitions; }));
    if (random() % 4 > 0) world.Pass(random() % 4 > 0 ? milliseconds(50) : milliseconds(1050));
  }
  // One after the other; `done`: so many of the events that were written.
  void TakeOverAndOver(const Handle& handle, const std::function<size_t()>& done) {
    for (int round = 0; round < Rounds(GetParam()); ++round) {
      Party& party = parties[static_cast<size_t>(round) % 2];
      Party& other = parties[static_cast<size_t>(round + 1) % 2];
      WriteSome(done());
      world.Run();
      handle(party, random() % 3);
      handle(other, random() % 3);
      if (random() % 2 > 0) world.Run();
      ASSERT_NO_FATAL_FAILURE(TakeOver(party, other));
      // Both handle what they have: the one that stands still with tokens that are no good.
      handle(other, random() % 2);
      for (uint64_t times = random() % 12; times > 0; --times) {
        handle(party, random() % 4);
        world.Run();
      }
      handle(other, 1 + random() % 3);
      ComeBack(other);
      world.Run();
    }
  }
  int64_t TakeOvers() {
    int64_t take_overs = 0;
    for (Party& party : parties) take_overs += party.server->leases().counts().take_overs;
    return take_overs;
  }
  // Whether it comes to that, where whoever was ended begins again.
  bool HandleUntil(const Handle& handle, const std::function<bool()>& done) {
    return world.RunUntil([&] {
      for (Party& party : parties) {
        if (party.consumer->told().finished) {
          world.Forget(*party.consumer);
          OpenFor(party);
        }
        handle(party, 100);
      }
      return done();
    });
  }
  void ComeBack(Party& party) {
    world.Watch(*party.server);
    if (party.consumer->told().finished) OpenFor(party);
    world.Watch(*party.consumer);
  }

  // Takes what came. What the handler is at it does not drop, revoked or not, but all that it has
  // behind that when the partition is its own anew.
  void Receive(Party& party) {
    while (auto next = party.consumer->Next()) {
      std::deque<Delivery>& held = party.held[next->first];
      if (!held.empty() && held.back().lease.token != next->second.lease.token) held.resize(1);
      held.push_back(std::move(next->second));
    }
  }
  // Of any partition. REQUIRES: there is one.
  std::map<int32_t, std::deque<Delivery>>::iterator Any(Party& party) {
    const auto number = static_cast<std::ptrdiff_t>(random() % party.held.size());
    return std::next(party.held.begin(), number);
  }
  // The next of any partition.
  std::optional<std::pair<int32_t, Delivery>> Take(Party& party) {
    if (party.held.empty()) return std::nullopt;
    const auto from = Any(party);
    auto taken = std::make_pair(from->first, std::move(from->second.front()));
    from->second.pop_front();
    if (from->second.empty()) party.held.erase(from);
    return taken;
  }

  ConsumersWorld world{GetParam()};
  std::mt19937_64 random{20240101};
  std::vector<Party> parties;
  std::map<std::string, int64_t> versions;
  std::vector<std::string> written;
  std::vector<Effect> effects;
};
INSTANTIATE_TEST_SUITE_P(Engines, TakeOversTest, ::testing::Values("memory", "rocksdb", "live"),
                         [](const auto& engine) { return engine.param; });

void ExpectTokensNeverDecrease(std::vector<Effect> effects) {
  std::sort(effects.begin(), effects.end(),
            [](const Effect& a, const Effect& b) { return a.position < b.position; });
  std::map<int32_t, store::Stamp> last;
  for (const Effect& effect : effects) {
    EXPECT_GE(effect.token, last[effect.partition]) << effect.event;
    last[effect.partition] = effect.token;
  }
}

TEST_P(TakeOversTest, EffectsThatAreTheAcknowledgementHappenOnceAndInOrder) {
  std::set<ErrorReason> refused;
  // Whether it is done, now or before.
  const auto write_effect = [&](Party& party, int32_t partition, const Delivery& delivery) {
    versioning::WriteRequest write = versioning::testing::Request("p" + std::to_string(partition));
    write.name.collection = "effects";
    write.joined.push_back(party.server->leases().Fence(delivery.lease));
    const auto done = world.world->Update(
        std::move(write), versioning::testing::Number(delivery.event.position), true);
    if (done.ok()) {
      effects.push_back({done->position, partition, delivery.lease.token, NameOf(delivery.event)});
      return true;
    }
    const auto reason = ReasonOf(done.status()).value_or(ErrorReason::kInternal);
    refused.insert(reason);
    return reason == ErrorReason::kAlreadyAcknowledged;
  };
  const auto handle = [&](Party& party, size_t most) {
    Receive(party);
    for (size_t i = 0; i < most; ++i) {
      // Another one may come first.
      if (!party.held.empty() && random() % 2 > 0) {
        const auto& [partition, held] = *Any(party);
        if (held.size() > 1 && held[0].lease.token == held[1].lease.token) {
          EXPECT_FALSE(write_effect(party, partition, held[1]));
        }
      }
      const auto taken = Take(party);
      if (!taken) break;
      const auto& [partition, delivery] = *taken;
      const bool done = write_effect(party, partition, delivery);
      // The handler may not have heard of it, and tries again.
      if (random() % 4 == 0) {
        EXPECT_EQ(write_effect(party, partition, delivery), done);
      }
      // What is not done may have been delivered anew, and what came before may be gone with a
      // take-over; then it is not delivered to this one.
      if (done) (void)party.consumer->consumer->Ack(partition, PlaceOf(delivery.event));
    }
  };
  ASSERT_NO_FATAL_FAILURE(TakeOverAndOver(handle, [&] { return effects.size(); }));
  EXPECT_TRUE(HandleUntil(handle, [&] { return effects.size() >= written.size(); }))
      << effects.size() << " of " << written.size();
  EXPECT_THAT(parties[0].server->Parked("mail"), IsEmpty());
  ExpectTokensNeverDecrease(effects);
  std::sort(effects.begin(), effects.end(),
            [](const Effect& a, const Effect& b) { return a.position < b.position; });
  std::map<int32_t, std::vector<std::string>> done;
  std::map<int32_t, std::vector<std::string>> wanted;
  for (const Effect& effect : effects) done[effect.partition].push_back(effect.event);
  for (const std::string& event : written) {
    const std::string id = event.substr(7, event.find('@') - 7);
    wanted[PartitionOf("things", id, kPartitions)].push_back(event);
  }
  EXPECT_EQ(done, wanted);
  EXPECT_GE(TakeOvers(), Rounds(GetParam()));
  if (GetParam() == "memory") {
    EXPECT_THAT(refused,
                UnorderedElementsAre(ErrorReason::kLeaseLost, ErrorReason::kEventOutOfOrder,
                                     ErrorReason::kAlreadyAcknowledged));
  }
}

TEST_P(TakeOversTest, EffectsElsewhereThatRefuseSmallerTokensHappenAtLeastOnce) {
  std::map<int32_t, store::Stamp> greatest;
  std::set<std::string> done;
  int refused = 0;
  const auto handle = [&](Party& party, size_t most) {
    Receive(party);
    for (size_t i = 0; i < most; ++i) {
      const auto taken = Take(party);
      if (!taken) break;
      const auto& [partition, delivery] = *taken;
      if (delivery.lease.token < greatest[partition]) {
        ++refused;
        continue;
      }
      greatest[partition] = delivery.lease.token;
      done.insert(NameOf(delivery.event));
      effects.push_back({static_cast<int64_t>(effects.size()), partition, delivery.lease.token,
                         NameOf(delivery.event)});
      (void)party.consumer->consumer->Ack(partition, PlaceOf(delivery.event));
    }
  };
  ASSERT_NO_FATAL_FAILURE(TakeOverAndOver(handle, [&] { return done.size(); }));
  EXPECT_TRUE(HandleUntil(handle, [&] { return done.size() >= written.size(); }))
      << done.size() << " of " << written.size();
  EXPECT_THAT(parties[0].server->Parked("mail"), IsEmpty());
  EXPECT_EQ(done, std::set<std::string>(written.begin(), written.end()));
  if (GetParam() == "memory") {
    EXPECT_GT(refused, 0);
  }
  // Whoever begins a document's next version has seen the one before.
  std::map<std::string, int64_t> seen;
  for (const Effect& effect : effects) {
    const size_t at = effect.event.find('@');
    int64_t& last = seen[effect.event.substr(0, at)];
    const int64_t version = std::stoll(effect.event.substr(at + 1));
    EXPECT_LE(version, last + 1) << effect.event;
    last = std::max(last, version);
  }
  ExpectTokensNeverDecrease(effects);
}

TEST_P(TakeOversTest, OneThatIsTakenOverHearsOfIt) {
  Write();
  Party& party = parties[0];
  Party& other = parties[1];
  ASSERT_TRUE(world.RunUntil([&] { return HeldBy(party) > 0 && HeldBy(other) > 0; }));
  const size_t had = HeldBy(other);
  ASSERT_NO_FATAL_FAILURE(TakeOver(party, other));
  EXPECT_GE((*party.server)->Get("mail")->take_overs, static_cast<int64_t>(had));
  EXPECT_GE(party.server->leases().counts().take_overs, static_cast<int64_t>(had));
  ComeBack(other);
  ASSERT_TRUE(world.RunUntil([&] { return other.consumer->told().revoked.size() >= had; }));
  size_t lost = 0;
  for (const auto& [partition, reason] : other.consumer->told().revoked) {
    lost += reason == RevokeReason::kLeaseLost ? 1 : 0;
  }
  EXPECT_EQ(lost, had);
  EXPECT_GE(other.server->leases().counts().lost, static_cast<int64_t>(had));
}

}  // namespace
}  // namespace strata::feed::testing
