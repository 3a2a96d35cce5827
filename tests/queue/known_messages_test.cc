// What one server knows of a message is over once another has changed it.
#include "tests/queue/queues_world.h"

namespace strata::queue::testing {
namespace {

using ::testing::SizeIs;

class KnownOfMessages : public QueuesTest {
 protected:
  // It has been handed out here, and is refused by the other server.
  std::string LetDieElsewhere() {
    EXPECT_THAT(queues.Create("mails"), IsOk());
    EXPECT_THAT(queues.Push("mails", Numbered(1)), IsOk());
    const auto reserved = queues.Reserve("mails");
    EXPECT_THAT(reserved, IsOk());
    if (!reserved.ok() || reserved->empty()) return "";
    RollbackRequest refusal;
    refusal.tokens = {reserved->front().token};
    refusal.dead = true;
    EXPECT_THAT(other.Rollback(refusal), IsOk());
    return reserved->front().id.ToText();
  }

  QueueProcess other{world->store(), world.clock(), 2};
};
INSTANTIATE_TEST_SUITE_P(Engines, KnownOfMessages, ::testing::ValuesIn(kEngines), EngineName);

TEST_P(KnownOfMessages, DoesNotKeepThoseThatDiedElsewhereFromBeingReplayed) {
  ReplayRequest replay;
  replay.queue = "mails";
  replay.message_ids = {LetDieElsewhere()};
  const auto replayed = queues.Replay(replay);
  ASSERT_THAT(replayed, IsOk());
  EXPECT_EQ(replayed->messages, 1);
  EXPECT_THAT(*queues.Reserve("mails"), SizeIs(1));
}

TEST_P(KnownOfMessages, DoesNotKeepThoseThatDiedElsewhereFromBeingPurged) {
  LetDieElsewhere();
  PurgeRequest purge;
  purge.queue = "mails";
  purge.states = {State::kDead};
  const auto purged = queues.Purge(purge);
  ASSERT_THAT(purged, IsOk());
  EXPECT_EQ(purged->messages, 1);
}

}  // namespace
}  // namespace strata::queue::testing
