// What goes on while an engine refuses writes because its disk is nearly full: what makes room.
#include <optional>
#include <string>

#include "tests/queue/queues_world.h"
#include "tests/support/hooked_store.h"

namespace strata::queue::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// As an engine does: removals are still taken.
std::optional<store::CommitResult> RefuseUnlessRemoval(const store::WriteBatch& batch) {
  if (batch.removal()) return std::nullopt;
  store::CommitResult refused;
  refused.status = Error(ErrorReason::kDiskFull, "the disk is nearly full");
  return refused;
}

class OnAFullDisk : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    ASSERT_THAT(queues.Create("mails"), IsOk());
    for (int i = 1; i <= 8; ++i) ASSERT_THAT(queues.Push("mails", Numbered(i)), IsOk());
  }
  void Fill() {
    test_support::StoreHooks hooks;
    hooks.instead_of_commit = RefuseUnlessRemoval;
    hooked.set_hooks(hooks);
  }
  void MakeRoom() { hooked.set_hooks({}); }

  World world{{.engine = GetParam().name, .mode = GetParam().mode}};
  test_support::HookedStore hooked{world->store()};
  QueueProcess queues{hooked, world.clock()};
};
INSTANTIATE_TEST_SUITE_P(Engines, OnAFullDisk, ::testing::ValuesIn(kEngines), EngineName);

TEST_P(OnAFullDisk, AQueueIsDrained) {
  Fill();
  EXPECT_THAT(queues.Push("mails", Numbered(9)), HasReason(ErrorReason::kDiskFull));
  const auto reserved = queues.Reserve("mails", 3);
  ASSERT_THAT(reserved, IsOk());
  EXPECT_THAT(NumbersOf(reserved), ElementsAre("1", "2", "3"));
  for (const MessageView& message : *reserved) {
    EXPECT_THAT(queues.Acknowledge(message.token), IsOk());
  }
  EXPECT_THAT(NumbersOf(queues.Pop("mails", 2)), ElementsAre("4", "5"));
  PurgeRequest purge;
  purge.queue = "mails";
  purge.states = {State::kReady};
  const auto purged = queues.Purge(purge);
  ASSERT_THAT(purged, IsOk());
  EXPECT_EQ(purged->messages, 3);
  MakeRoom();
  EXPECT_THAT(NumbersOf(queues.Reserve("mails", 10)), IsEmpty());
}

TEST_P(OnAFullDisk, QueuesAndTheirSchedulesAreDeleted) {
  ASSERT_THAT(queues.Create("empty"), IsOk());
  Schedule schedule;
  schedule.queue = "mails";
  schedule.name = "nightly";
  schedule.cron = "30 2 * * *";
  ASSERT_THAT(queues.CreateSchedule(schedule), IsOk());
  Fill();
  Answer<absl::Status> deleted;
  queues->DeleteSchedule("mails", "nightly", kNoDeadline, deleted.Callback());
  EXPECT_THAT(queues.Await(deleted), IsOk());
  EXPECT_THAT(queues.Delete("empty"), IsOk());
  EXPECT_THAT(queues.Delete("mails"), HasReason(ErrorReason::kQueueNotEmpty));
  EXPECT_THAT(queues.Delete("mails", true), IsOk());
  EXPECT_THAT(queues.Create("more"), HasReason(ErrorReason::kDiskFull));
}

// History is kept, and takes as much again.
TEST_P(OnAFullDisk, WhatIsKeptIsNotAcknowledged) {
  ASSERT_THAT(queues.Update("mails",
                            [](QueueSettings& settings) {
                              settings.history_retention = std::chrono::hours(1);
                              return absl::OkStatus();
                            }),
              IsOk());
  const auto reserved = queues.Reserve("mails");
  ASSERT_THAT(*reserved, SizeIs(1));
  Fill();
  EXPECT_THAT(queues.Acknowledge(reserved->front().token), HasReason(ErrorReason::kDiskFull));
  MakeRoom();
  EXPECT_THAT(queues.Acknowledge(reserved->front().token), IsOk());
}

// Asked at the same time they are one commit.
TEST_P(OnAFullDisk, WhatMakesRoomIsNotRefusedForItsCompany) {
  const auto reserved = queues.Reserve("mails", 2);
  ASSERT_THAT(*reserved, SizeIs(2));
  Answer<QueueProcess::Pushes> pushed;
  Answer<QueueProcess::Results> acknowledged;
  Answer<QueueProcess::Messages> popped;
  bool asked = false;
  test_support::StoreHooks hooks;
  hooks.instead_of_commit = RefuseUnlessRemoval;
  hooks.before_commit = [&](const store::WriteBatch&) {
    if (std::exchange(asked, true)) return;
    // A round is in flight: these are gathered for the next.
    PushRequest push;
    push.queue = "mails";
    push.messages = {Numbered(9)};
    queues->Push(push, pushed.Callback());
    queues->Acknowledge({(*reserved)[1].token}, kNoDeadline, acknowledged.Callback());
    ReserveRequest pop;
    pop.queue = "mails";
    pop.pop = true;
    queues->Reserve(pop, popped.Callback());
  };
  hooked.set_hooks(hooks);
  EXPECT_THAT(queues.Acknowledge((*reserved)[0].token), IsOk());
  const auto pushes = queues.Await(pushed);
  EXPECT_THAT(pushes.ok() ? pushes->front().status() : pushes.status(),
              HasReason(ErrorReason::kDiskFull));
  EXPECT_THAT(queues.Await(acknowledged).front(), IsOk());
  EXPECT_THAT(NumbersOf(queues.Await(popped)), ElementsAre("3"));
  MakeRoom();
  EXPECT_THAT(NumbersOf(queues.Reserve("mails", 10)), ElementsAre("4", "5", "6", "7", "8"));
}

}  // namespace
}  // namespace strata::queue::testing
