// Who is woken, by what concerns them.
#include "schemas/feed/parking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>

namespace strata::feed {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Someone final : public Follower {
 public:
  explicit Someone(std::vector<std::string> collections) {
    selection_.collections = std::move(collections);
  }
  const Selection& selection() const override { return selection_; }
  void Wake(store::CommitPosition /*passed*/) override {}

 private:
  Selection selection_;
};

FollowerPtr Of(std::vector<std::string> collections) {
  return std::make_shared<Someone>(std::move(collections));
}

CommitPtr In(store::CommitPosition position, const std::string& collection) {
  auto commit = std::make_shared<Commit>();
  commit->position = position;
  Entry& entry = commit->entries.emplace_back();
  entry.type = EventType::kVersion;
  entry.collection = collection;
  entry.id = "a";
  return commit;
}

Parking::Time At(int second) { return Parking::Time(seconds(second)); }

TEST(Parking, WakesThoseOfACollectionAndThoseOfAll) {
  Parking parking;
  const FollowerPtr ones = Of({"ones", "twos"});
  const FollowerPtr threes = Of({"threes"});
  const FollowerPtr all = Of({});
  for (const FollowerPtr& follower : {ones, threes, all}) parking.Add(follower, {At(10), 0});
  const std::vector<CommitPtr> commits = {In(5, "nobody's"), In(7, "twos"), In(8, "ones")};
  std::map<const Follower*, store::CommitPosition> woken;
  for (const Woken& each : parking.TakeFor(commits)) woken[each.follower.get()] = each.passed;
  EXPECT_THAT(woken, SizeIs(2));
  EXPECT_EQ(woken[all.get()], 4);
  EXPECT_EQ(woken[ones.get()], 6);
  EXPECT_EQ(parking.size(), 1u);
  EXPECT_TRUE(parking.Remove(*threes));
  EXPECT_FALSE(parking.Remove(*threes));
  EXPECT_EQ(parking.NextDue(), std::nullopt);
}

TEST(Parking, ABookmarkCountsWhileThereIsSomethingToTell) {
  Parking parking;
  const FollowerPtr told = Of({"ones"});
  const FollowerPtr untold = Of({"ones"});
  parking.Add(told, {At(10), 5});
  parking.Add(untold, {At(20), 4});
  EXPECT_EQ(parking.NextDue(), At(10));
  EXPECT_THAT(parking.TakeDue(At(15), 5), IsEmpty());
  EXPECT_EQ(parking.NextDue(), At(20));
  EXPECT_THAT(parking.TakeDue(At(20), 5), SizeIs(1));
  EXPECT_EQ(parking.NextDue(), std::nullopt);
  parking.Moved();
  EXPECT_EQ(parking.NextDue(), At(10));
  const std::vector<Woken> due = parking.TakeDue(At(20), 6);
  ASSERT_THAT(due, SizeIs(1));
  EXPECT_EQ(due.front().follower, told);
  EXPECT_EQ(due.front().passed, 6);
  EXPECT_EQ(parking.size(), 0u);
}

TEST(Parking, WhoIsQuietMayBeWokenAndRemovedToo) {
  Parking parking;
  const FollowerPtr one = Of({"ones"});
  const FollowerPtr two = Of({"twos"});
  parking.Add(one, {At(1), 5});
  parking.Add(two, {At(1), 5});
  EXPECT_THAT(parking.TakeDue(At(2), 5), IsEmpty());
  EXPECT_TRUE(parking.Remove(*two));
  const std::vector<CommitPtr> commits = {In(6, "ones")};
  EXPECT_THAT(parking.TakeFor(commits), SizeIs(1));
  parking.Moved();
  EXPECT_EQ(parking.NextDue(), std::nullopt);
}

}  // namespace
}  // namespace strata::feed
