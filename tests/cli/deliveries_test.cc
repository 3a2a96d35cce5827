// Claims about which deliveries of a stream count, as partitions come and go and events fail.
#include "clients/cli/deliveries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace strata::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr size_t kAll = 100;

class DeliveriesTest : public testing::Test {
 protected:
  DeliveriesTest() {
    deliveries_.Begin();
    Assign(0, 9);
  }

  void Assign(int32_t partition, int64_t token) {
    v1::ConsumeResponse message;
    message.mutable_assigned()->set_partition(partition);
    message.mutable_assigned()->set_token(token);
    deliveries_.Add(message);
  }
  void Revoke(int32_t partition) {
    v1::ConsumeResponse message;
    message.mutable_revoked()->set_partition(partition);
    deliveries_.Add(message);
  }
  void Acknowledge(int64_t position) {
    v1::ConsumeResponse message;
    message.mutable_acknowledged()->set_position(position);
    deliveries_.Add(message);
  }
  void Deliver(const std::vector<int64_t>& positions, int64_t token = 9, int32_t partition = 0,
               bool replay = false) {
    v1::ConsumeResponse message;
    message.mutable_deliveries()->set_partition(partition);
    for (const int64_t position : positions) {
      v1::Delivery& delivery = *message.mutable_deliveries()->add_deliveries();
      delivery.mutable_event()->set_position(position);
      delivery.mutable_lease()->set_token(token);
      delivery.set_replay(replay);
    }
    deliveries_.Add(message);
  }
  Deliveries::Taken Take() { return deliveries_.Await(1).at(0); }
  // All that there are; there is at least one.
  std::vector<int64_t> Rest() {
    std::vector<int64_t> positions;
    for (const Deliveries::Taken& taken : deliveries_.Await(kAll)) {
      positions.push_back(taken.place().position);
    }
    return positions;
  }

  Deliveries deliveries_;
};

TEST_F(DeliveriesTest, OfAPartitionComeInTheirOrderAndPartitionsInTurns) {
  Deliver({7, 8, 9});
  Deliver({5}, 9, 1);
  EXPECT_EQ(Take().place().position, 7);
  EXPECT_THAT(Rest(), ElementsAre(5, 8, 9));
}

TEST_F(DeliveriesTest, AReplayCountsWhateverFailsBesideIt) {
  Deliver({7, 8});
  Deliver({3}, 9, 0, /*replay=*/true);
  deliveries_.Fail(Take());
  EXPECT_THAT(Rest(), ElementsAre(3));
}

TEST_F(DeliveriesTest, OfAPartitionThatWentAreDropped) {
  Assign(1, 10);
  Deliver({7, 8});
  Deliver({5}, 10, 1);
  const Deliveries::Taken taken = Take();
  EXPECT_TRUE(deliveries_.Holds(taken));
  Revoke(0);
  EXPECT_FALSE(deliveries_.Holds(taken));
  EXPECT_THAT(Rest(), ElementsAre(5));
}

TEST_F(DeliveriesTest, BehindAFailureCountOnceItHasComeAgain) {
  Deliver({7, 8});
  deliveries_.Fail(Take());
  Deliver({9, 10});  // on their way meanwhile
  Deliver({7, 8});
  EXPECT_THAT(Rest(), ElementsAre(7, 8));
}

TEST_F(DeliveriesTest, BehindAFailureCountOnceItIsDoneWith) {
  Deliver({7, 8});
  deliveries_.Fail(Take());
  Acknowledge(6);
  Deliver({8});
  Acknowledge(7);
  Deliver({9});
  EXPECT_THAT(Rest(), ElementsAre(9));
}

TEST_F(DeliveriesTest, OfWhatWasParkedCountBehindAFailure) {
  Deliver({7});
  deliveries_.Fail(Take());
  Deliver({3}, 9, 0, /*replay=*/true);
  EXPECT_THAT(Rest(), ElementsAre(3));
}

// The partition went and came again while it was worked on: what fails late holds up nothing.
TEST_F(DeliveriesTest, AFailureOfBeforeConcernsNobody) {
  Deliver({7});
  const Deliveries::Taken late = Take();
  Revoke(0);
  Assign(0, 11);
  deliveries_.Fail(late);
  EXPECT_FALSE(deliveries_.Holds(late));
  Deliver({8}, 11);
  EXPECT_THAT(Rest(), ElementsAre(8));
}

TEST_F(DeliveriesTest, OfAStreamThatIsOverAreForgotten) {
  Deliver({7, 8});
  const Deliveries::Taken taken = Take();
  deliveries_.End();
  EXPECT_THAT(deliveries_.Await(kAll), IsEmpty());
  EXPECT_TRUE(deliveries_.AwaitEnd(std::chrono::seconds(0)));
  deliveries_.Begin();
  EXPECT_FALSE(deliveries_.Holds(taken));
  EXPECT_FALSE(deliveries_.AwaitEnd(std::chrono::seconds(0)));
  Assign(0, 12);
  Deliver({7}, 12);
  EXPECT_THAT(Rest(), ElementsAre(7));
}

TEST_F(DeliveriesTest, AreNotTakenAnyMoreOnceItIsStopped) {
  Deliver({7, 8});
  deliveries_.Stop();
  EXPECT_THAT(deliveries_.Await(kAll), IsEmpty());
  deliveries_.Begin();
  Deliver({7, 8});
  EXPECT_THAT(deliveries_.Await(kAll), IsEmpty());
  EXPECT_TRUE(deliveries_.stopped());
}

}  // namespace
}  // namespace strata::cli
