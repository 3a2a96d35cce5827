// Who has the feed's turns, and for how long.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/feed/feed_world.h"

namespace strata::feed::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::SizeIs;

// Watchers whose events take as long as the test says, on the test's clock.
class FeedTurns : public ::testing::Test {
 protected:
  Watcher OpenFor(const std::string& caller, std::chrono::microseconds each) {
    WatchQuery query = From(0);
    query.caller = caller;
    Watcher watcher = world.Open(std::move(query));
    watcher.inbox->before_add = [this, caller, each] {
      world.world.clock().Advance(each);
      had_.push_back(caller);
    };
    return watcher;
  }

  FeedWorld world{"memory"};
  std::vector<std::string> had_;  // the callers whose events were looked at, in order
};

TEST_F(FeedTurns, EndWithTheirTimeAndGoOnWithTheNext) {
  for (int i = 0; i < 9; ++i) world.Create("id" + std::to_string(i));
  Watcher slow = OpenFor("slow", std::chrono::microseconds(kTurnTimeMax) / 2);
  world.RunToEnd(slow);
  EXPECT_THAT(slow.Seen(), SizeIs(9));
  std::vector<size_t> sizes;
  for (const Message& message : slow.inbox->messages) sizes.push_back(message.events.size());
  EXPECT_THAT(sizes, ElementsAre(0, 2, 2, 2, 2, 1));
}

TEST_F(FeedTurns, TakeOneEventHoweverLongThatLasts) {
  for (int i = 0; i < 3; ++i) world.Create("id" + std::to_string(i));
  Watcher slow = OpenFor("slow", 100 * kTurnTimeMax);
  world.RunToEnd(slow);
  EXPECT_THAT(slow.Seen(), SizeIs(3));
  EXPECT_THAT(slow.inbox->messages, SizeIs(4));
}

TEST_F(FeedTurns, GoRoundByCaller) {
  Watcher one = OpenFor("one", milliseconds(0));
  std::vector<Watcher> others;
  for (int i = 0; i < 5; ++i) others.push_back(OpenFor("other", milliseconds(0)));
  std::vector<Watcher*> all = {&one};
  for (Watcher& other : others) all.push_back(&other);
  world.Run(all);
  world.Create("a");
  world.Run(all);
  ASSERT_THAT(had_, SizeIs(6));
  EXPECT_TRUE(had_[0] == "one" || had_[1] == "one");
}

// Two runners on the test's own thread cannot show that one is at work, so a turn is kept from
// ending: within it the others have theirs.
TEST_F(FeedTurns, OfLongOnesLeaveAPlaceToTheOthers) {
  Watcher brief = OpenFor("brief", milliseconds(0));
  std::vector<Watcher> lengthy;
  for (int i = 0; i < 8; ++i)
    lengthy.push_back(OpenFor("lengthy" + std::to_string(i), 2 * kTurnTimeMax));
  std::vector<Watcher*> all = {&brief};
  for (Watcher& each : lengthy) all.push_back(&each);
  world.Create("a");
  world.Run(all);  // from now on it is known who takes long
  had_.clear();
  int within = 0;
  bool brief_came = false;
  for (Watcher& each : lengthy) {
    each.inbox->before_add = [&] {
      world.world.clock().Advance(2 * kTurnTimeMax);
      ++within;
      EXPECT_EQ(within, 1) << "two long turns at once";
      // What else the executor has to do is done by its other thread.
      world.executor.RunDue();
      brief_came = brief_came || !had_.empty();
      EXPECT_TRUE(brief_came);
      --within;
    };
  }
  world.Create("b");
  world.Run(all);
  EXPECT_THAT(had_, ElementsAre("brief"));
  for (Watcher& each : lengthy) EXPECT_THAT(each.Seen(), SizeIs(2));
  EXPECT_THAT(brief.Seen(), SizeIs(2));
}

// Nobody comes round them with watches that had no turn yet.
TEST_F(FeedTurns, OfAnUnknownWatchAreNotBesideLongOnes) {
  Watcher brief = OpenFor("brief", milliseconds(0));
  world.Create("a");
  world.RunToEnd(brief);
  had_.clear();
  std::vector<Watcher> fresh;
  for (int i = 0; i < 4; ++i) fresh.push_back(OpenFor("new", milliseconds(0)));
  int within = 0;
  std::vector<Watcher*> all;
  for (Watcher& each : fresh) {
    all.push_back(&each);
    each.inbox->before_add = [&] {
      EXPECT_EQ(++within, 1) << "two at once of which nothing is known";
      world.world.clock().Advance(2 * kTurnTimeMax);
      world.executor.RunDue();
      --within;
    };
  }
  world.Run(all);
  world.Create("b");
  world.Run(all);
  for (Watcher& each : fresh) EXPECT_THAT(each.Seen(), SizeIs(2));
  EXPECT_THAT(had_, ElementsAre("brief"));
}

// A message for which there is no room is not made, and nothing is read for it.
TEST_F(FeedTurns, WaitForRoom) {
  Watcher watcher = OpenFor("one", milliseconds(0));
  world.Run({&watcher});
  watcher.inbox->has_room = false;
  world.Create("a");
  world.Run({&watcher});
  EXPECT_THAT(watcher.Seen(), SizeIs(0));
  EXPECT_THAT(had_, SizeIs(0));
  watcher.inbox->has_room = true;
  watcher.watch->Ready();
  world.RunToEnd(watcher);
  EXPECT_THAT(watcher.Seen(), ElementsAre("things/a@1"));
  EXPECT_EQ(watcher.inbox->rooms, 0);
}

}  // namespace
}  // namespace strata::feed::testing
