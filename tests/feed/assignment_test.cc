// Who gets which partition, as a pure function: from every start, in every order, and by crowds
// that come and go.
#include "schemas/feed/assignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/volume.h"

namespace strata::feed {
namespace {

std::string Name(size_t member) { return "m" + std::to_string(member); }

// What each has decided, on what it saw then, and not done yet.
using Plan = std::optional<Move>;
struct World {
  std::vector<std::string> holders;
  std::vector<Plan> plans;

  friend auto operator<=>(const World& a, const World& b) {
    const auto key = [](const World& world) {
      std::vector<std::pair<int, int>> decided;
      for (const Plan& plan : world.plans) {
        decided.emplace_back(plan ? 1 + static_cast<int>(plan->kind) : 0,
                             plan ? plan->partition : 0);
      }
      return std::pair(world.holders, decided);
    };
    return key(a) <=> key(b);
  }
};

Assignment SeenBy(size_t member, size_t members, const std::vector<std::string>& holders) {
  Assignment seen;
  seen.me = Name(member);
  for (size_t i = 0; i < members; ++i) seen.members.push_back(Name(i));
  seen.holders = holders;
  return seen;
}

std::vector<World> Steps(const World& world) {
  std::vector<World> steps;
  for (size_t m = 0; m < world.plans.size(); ++m) {
    World next = world;
    if (!world.plans[m]) {
      next.plans[m] = NextMove(SeenBy(m, world.plans.size(), world.holders));
      if (next.plans[m]) steps.push_back(std::move(next));
      continue;
    }
    std::string& holder = next.holders[static_cast<size_t>(world.plans[m]->partition)];
    if (world.plans[m]->kind == Move::Kind::kTake) {
      if (holder.empty()) holder = Name(m);
    } else if (holder == Name(m)) {
      holder.clear();
    }
    next.plans[m].reset();
    steps.push_back(std::move(next));
  }
  return steps;
}

bool Balanced(const std::vector<std::string>& holders, size_t members) {
  std::map<std::string, size_t> counts;
  for (size_t m = 0; m < members; ++m) counts[Name(m)] = 0;
  for (const std::string& holder : holders) {
    if (holder.empty()) return false;
    ++counts[holder];
  }
  const auto [least, most] =
      std::minmax_element(counts.begin(), counts.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
  return most->second - least->second <= 1;
}

// All that can happen from every start, where each acts on what it saw, perhaps long ago.
class EveryOrder {
 public:
  EveryOrder(size_t partitions, size_t members) : members_(members) {
    std::vector<std::string> holders(partitions);
    AddStarts(holders, 0);
    while (!todo_.empty()) {
      const World world = std::move(todo_.back());
      todo_.pop_back();
      if (graph_.contains(world)) continue;
      std::vector<World> steps = Steps(world);
      for (const World& next : steps) todo_.push_back(next);
      graph_.emplace(world, std::move(steps));
    }
  }

  void ExpectAllEndBalanced() const {
    std::map<World, std::vector<const World*>> back;
    std::set<World> reach;
    std::vector<const World*> todo;
    for (const auto& [world, steps] : graph_) {
      for (const World& next : steps) back[next].push_back(&world);
      if (!steps.empty()) continue;
      ASSERT_TRUE(Balanced(world.holders, members_)) << ::testing::PrintToString(world.holders);
      reach.insert(world);
      todo.push_back(&world);
    }
    while (!todo.empty()) {
      const World* const world = todo.back();
      todo.pop_back();
      for (const World* before : back[*world]) {
        if (reach.insert(*before).second) todo.push_back(before);
      }
    }
    // None goes round for ever.
    EXPECT_EQ(reach.size(), graph_.size());
  }

 private:
  void AddStarts(std::vector<std::string>& holders, size_t partition) {
    if (partition == holders.size()) {
      todo_.push_back({holders, std::vector<Plan>(members_)});
      return;
    }
    for (size_t m = 0; m <= members_; ++m) {
      holders[partition] = m < members_ ? Name(m) : "";
      AddStarts(holders, partition + 1);
    }
  }

  const size_t members_;
  std::map<World, std::vector<World>> graph_;
  std::vector<World> todo_;
};

TEST(Assignment, FromEveryStartInEveryOrderAllEndBalanced) {
  for (size_t partitions = 1; partitions <= test_support::Sampled(4, 3); ++partitions) {
    for (size_t members = 1; members <= 3; ++members) {
      SCOPED_TRACE(std::to_string(partitions) + " partitions, " + std::to_string(members));
      EveryOrder(partitions, members).ExpectAllEndBalanced();
    }
  }
}

TEST(Assignment, WhatIsOnItsWayOutCountsAsFreeButNotForWhoLetsItGo) {
  Assignment seen = SeenBy(0, 2, {"m0", "m0", ""});
  seen.leaving = {false, false, true};
  // 3 partitions for 2: m0 has its 2, and m1 will have the third.
  EXPECT_EQ(NextMove(seen), std::nullopt);
  // One more would be one too many.
  seen.holders = {"m0", "m0", "m0", ""};
  seen.leaving = {false, false, false, true};
  EXPECT_EQ(NextMove(seen), (Move{Move::Kind::kLetGo, 2}));
}

TEST(Assignment, OneWhoIsGoneKeepsItsPartitionsUntilTheyAreFree) {
  EXPECT_EQ(NextMove(SeenBy(0, 1, {"gone", "m0"})), std::nullopt);
  EXPECT_EQ(NextMove(SeenBy(0, 1, {"", "m0"})), (Move{Move::Kind::kTake, 0}));
}

TEST(Assignment, AChoiceSpreadsWhoTakes) {
  std::set<int32_t> taken;
  for (size_t choice = 0; choice < 8; ++choice) {
    taken.insert(NextMove(SeenBy(0, 1, {"", "", "", ""}), choice)->partition);
  }
  EXPECT_EQ(taken.size(), 4u);
}

// A crowd over 64 partitions. Each looks once a round, in any order, and does all that its look
// tells it to, as a consumer does; a token tells whose a partition is.
class Crowd {
 public:
  explicit Crowd(uint64_t seed) : random_(seed) {}

  void Join() { members_.insert(Name(next_++)); }
  void LeaveOne() {
    auto leaver = members_.begin();
    std::advance(leaver, static_cast<std::ptrdiff_t>(random_() % members_.size()));
    for (std::string& holder : holders_) {
      if (holder == *leaver) holder.clear();
    }
    members_.erase(leaver);
  }
  size_t size() const { return members_.size(); }

  // How many were let go.
  size_t LookRound() {
    std::vector<std::string> order(members_.begin(), members_.end());
    std::shuffle(order.begin(), order.end(), random_);
    size_t let_go = 0;
    for (const std::string& member : order) let_go += Look(member);
    return let_go;
  }
  // By how much they have more than the greatest shares allow.
  size_t Excess() const {
    const size_t floor = holders_.size() / members_.size();
    size_t rest = holders_.size() % members_.size();
    std::vector<size_t> counts;
    for (const std::string& member : members_) {
      counts.push_back(static_cast<size_t>(std::count(holders_.begin(), holders_.end(), member)));
    }
    std::sort(counts.rbegin(), counts.rend());
    size_t excess = 0;
    for (const size_t count : counts) {
      size_t share = floor;
      if (rest > 0) {
        ++share;
        --rest;
      }
      if (count > share) excess += count - share;
    }
    return excess;
  }
  bool IsBalanced() const {
    std::map<std::string, size_t> counts;
    for (const std::string& member : members_) counts[member] = 0;
    for (const std::string& holder : holders_) {
      if (holder.empty()) return false;
      ++counts.at(holder);
    }
    const size_t floor = holders_.size() / members_.size();
    return std::all_of(counts.begin(), counts.end(), [&](const auto& count) {
      return count.second >= floor &&
             count.second <= floor + (holders_.size() % members_.size() > 0 ? 1 : 0);
    });
  }

 private:
  size_t Look(const std::string& member) {
    Assignment seen;
    seen.me = member;
    seen.members.assign(members_.begin(), members_.end());
    seen.holders = holders_;
    size_t let_go = 0;
    while (const std::optional<Move> move = NextMove(seen, random_())) {
      const auto partition = static_cast<size_t>(move->partition);
      const bool take = move->kind == Move::Kind::kTake;
      EXPECT_EQ(holders_[partition], take ? "" : member) << "held twice";
      holders_[partition] = seen.holders[partition] = take ? member : "";
      let_go += take ? 0 : 1;
    }
    return let_go;
  }

  std::mt19937_64 random_;
  size_t next_ = 0;
  std::set<std::string> members_;
  std::vector<std::string> holders_ = std::vector<std::string>(64);
};

TEST(Assignment, OneToNineWhoComeAndGoAreBalancedWithinThreeLooksAndMoveNoMoreThanTheyMust) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    Crowd crowd(seed);
    crowd.Join();
    for (int change = 0; change < 40; ++change) {
      if (crowd.size() < 9 && (crowd.size() == 1 || random() % 2 == 0)) {
        crowd.Join();
      } else {
        crowd.LeaveOne();
      }
      const size_t excess = crowd.Excess();
      size_t let_go = 0;
      for (int look = 0; look < 3; ++look) let_go += crowd.LookRound();
      ASSERT_TRUE(crowd.IsBalanced()) << crowd.size();
      ASSERT_LE(let_go, excess);
    }
  }
}

}  // namespace
}  // namespace strata::feed
