// The ring of the newest commits.
#include "schemas/feed/ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strata::feed {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

CommitPtr CommitOf(store::CommitPosition position, size_t entries) {
  auto commit = std::make_shared<Commit>();
  commit->position = position;
  commit->entries.resize(entries);
  return commit;
}

std::vector<store::CommitPosition> PositionsBehind(const Ring& ring, store::CommitPosition position,
                                                   size_t entries_max) {
  const auto commits = ring.Behind(position, entries_max);
  std::vector<store::CommitPosition> positions;
  if (!commits) return {-1};
  for (const CommitPtr& commit : *commits) positions.push_back(commit->position);
  return positions;
}

TEST(Ring, GivesWholeCommitsBehindAPosition) {
  Ring ring({});
  ring.Reset(10);
  ring.Append(CommitOf(12, 3));
  ring.Append(CommitOf(13, 1));
  ring.Append(CommitOf(20, 2));
  ring.MoveTo(25);
  EXPECT_EQ(ring.end(), 25);
  EXPECT_THAT(PositionsBehind(ring, 10, 100), ElementsAre(12, 13, 20));
  EXPECT_THAT(PositionsBehind(ring, 12, 100), ElementsAre(13, 20));
  EXPECT_THAT(PositionsBehind(ring, 11, 4), ElementsAre(12, 13));
  EXPECT_THAT(PositionsBehind(ring, 11, 1), ElementsAre(12));
  EXPECT_THAT(PositionsBehind(ring, 25, 100), IsEmpty());
  EXPECT_THAT(PositionsBehind(ring, 9, 100), ElementsAre(-1));
}

TEST(Ring, LetsTheOldestGo) {
  Ring ring({.entries_max = 4});
  ring.Reset(0);
  ring.Append(CommitOf(1, 2));
  ring.Append(CommitOf(2, 2));
  EXPECT_EQ(ring.begin(), 0);
  ring.Append(CommitOf(3, 1));
  EXPECT_EQ(ring.begin(), 1);
  EXPECT_THAT(PositionsBehind(ring, 0, 100), ElementsAre(-1));
  EXPECT_THAT(PositionsBehind(ring, 1, 100), ElementsAre(2, 3));
  ring.Append(CommitOf(4, 5));
  EXPECT_EQ(ring.begin(), 4);
  EXPECT_EQ(ring.end(), 4);
  EXPECT_THAT(PositionsBehind(ring, 4, 100), IsEmpty());
}

TEST(Ring, CountsBytes) {
  Ring ring({.bytes_max = 3 * (sizeof(Commit) + sizeof(Entry))});
  ring.Reset(0);
  for (int i = 1; i <= 10; ++i) ring.Append(CommitOf(i, 1));
  EXPECT_EQ(ring.begin(), 7);
}

}  // namespace
}  // namespace strata::feed
