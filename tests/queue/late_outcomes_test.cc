// Two servers over a store that loses outcomes and goes on: what is repeated is done once, however
// late its first attempt takes effect.
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/queue/queues_world.h"
#include "tests/support/late_store.h"
#include "tests/support/volume.h"

namespace strata::queue::testing {
namespace {

constexpr double kLost = 0.2;

class LateOutcomesOfQueues : public ::testing::TestWithParam<Engine> {
 protected:
  LateOutcomesOfQueues()
      : seed_(test_support::TestSeed()),
        world({.engine = GetParam().name, .mode = GetParam().mode}),
        late_(world.engine(), seed_, kLost),
        below_(late_, {.engine = GetParam().name, .mode = GetParam().mode}, world.clock()) {}

  QueueProcess& Any() { return random_() % 2 == 0 ? one : other; }
  static bool IsUnknown(const absl::Status& status) {
    return ReasonOf(status) == ErrorReason::kOutcomeUnknown;
  }
  // Calls until the outcome is known.
  template <typename Call>
  auto Repeated(Call call) {
    auto result = call(Any());
    for (int i = 0; i < 200 && IsUnknown(StatusOf(result)); ++i) {
      world.clock().Advance(std::chrono::milliseconds(1));
      result = call(Any());
    }
    return result;
  }
  static std::vector<std::string> Listed(QueueProcess& process) {
    MessageQuery query;
    query.queue = "mails";
    const absl::StatusOr<MessagePage> page = process->ListMessages(query, 100);
    EXPECT_THAT(page, IsOk());
    return page.ok() ? NumbersOf(page->messages) : std::vector<std::string>();
  }
  template <typename T>
  static absl::Status StatusOf(const absl::StatusOr<T>& result) {
    return result.status();
  }

  const uint64_t seed_;
  std::mt19937_64 random_{seed_};
  World world;
  test_support::LateStore late_;
  versioning::testing::Process below_;
  QueueProcess one{below_.store(), world.clock(), 1};
  QueueProcess other{below_.store(), world.clock(), 2};
};
INSTANTIATE_TEST_SUITE_P(Engines, LateOutcomesOfQueues, ::testing::ValuesIn(kEngines), EngineName);

TEST_P(LateOutcomesOfQueues, NoMessageIsLostOrAcknowledgedTwice) {
  STRATA_TRACE_SEED(seed_);
  constexpr int kMessages = test_support::Sampled(60, 25);
  const absl::StatusOr<Queue> made =
      Repeated([](QueueProcess& process) { return process.Create("mails"); });
  ASSERT_TRUE(made.ok() || ReasonOf(made.status()) == ErrorReason::kQueueExists) << made.status();
  std::set<std::string> missing;
  for (int i = 0; i < kMessages; ++i) {
    PushedMessage message = Numbered(i);
    message.request_id = "push-" + std::to_string(i);
    ASSERT_THAT(Repeated([&](QueueProcess& process) { return process.Push("mails", message); }),
                IsOk());
    missing.insert(std::to_string(i));
  }
  for (int turn = 0; !missing.empty(); ++turn) {
    ASSERT_LT(turn, 100 * kMessages) << missing.size() << " were never handed out";
    const QueueProcess::Messages held = Any().Reserve("mails", 1 + random_() % 4);
    if (!held.ok()) {
      ASSERT_TRUE(IsUnknown(held.status())) << held.status();
      continue;
    }
    if (held->empty()) {
      // Some are reserved for calls that never heard of it.
      world.clock().Advance(seconds(31));
      continue;
    }
    for (const MessageView& view : *held) {
      const std::string number = ToHeaders(view.message.payload)->at("number");
      if (random_() % 4 == 0) {
        (void)Repeated([&](QueueProcess& process) { return process.Rollback(view.token); });
        continue;
      }
      const absl::StatusOr<bool> acknowledged =
          Repeated([&](QueueProcess& process) { return process.Acknowledge(view.token); });
      ASSERT_THAT(acknowledged, IsOk()) << number;
      EXPECT_EQ(missing.erase(number), 1u) << number << " is acknowledged twice";
    }
  }
  EXPECT_GT(late_.unknown(), 0u);
  late_.StopLosing();
  late_.Settle();
  // Nothing comes back, and nothing is left, hints without messages aside.
  world.clock().Advance(std::chrono::hours(1));
  for (QueueProcess* process : {&one, &other}) {
    EXPECT_THAT(*process->Reserve("mails", 10), ::testing::IsEmpty());
    (*process)->StartBackground();
    process->executor().RunDue();
  }
  EXPECT_THAT(one.Delete("mails"), IsOk()) << "it is not empty";
}

// A queue that is deleted and made anew by force, over and over, ends as the last one.
TEST_P(LateOutcomesOfQueues, AQueueIsDeletedAndMadeAnew) {
  STRATA_TRACE_SEED(seed_);
  for (QueueProcess* process : {&one, &other}) (*process)->StartBackground();
  const int rounds = GetParam().name == "rocksdb" ? 6 : 25;
  for (int i = 0; i < rounds; ++i) {
    const absl::StatusOr<Queue> made =
        Repeated([](QueueProcess& process) { return process.Create("mails"); });
    ASSERT_TRUE(made.ok() || ReasonOf(made.status()) == ErrorReason::kQueueExists) << made.status();
    PushedMessage message = Numbered(i);
    message.request_id = "push-" + std::to_string(i);
    ASSERT_THAT(Repeated([&](QueueProcess& process) { return process.Push("mails", message); }),
                IsOk());
    if (random_() % 2 == 0) {
      late_.Settle();
      EXPECT_THAT(Listed(Any()), ::testing::ElementsAre(std::to_string(i)));
    }
    absl::Status deleted;
    do {
      deleted = Any().Delete("mails", /*force=*/true);
    } while (IsUnknown(deleted));
    ASSERT_TRUE(deleted.ok() || ReasonOf(deleted) == ErrorReason::kQueueNotFound) << deleted;
    if (random_() % 2 == 0) {
      // What is left of it is swept, perhaps when the next one is there.
      world.clock().Advance(std::chrono::hours(25));
      Any().executor().RunDue();
    }
  }
  late_.StopLosing();
  late_.Settle();
  ASSERT_THAT(one.Create("mails"), IsOk());
  ASSERT_THAT(other.Push("mails", Numbered(7)), IsOk());
  for (QueueProcess* process : {&one, &other}) {
    EXPECT_THAT(Listed(*process), ::testing::ElementsAre("7"));
  }
}

}  // namespace
}  // namespace strata::queue::testing
