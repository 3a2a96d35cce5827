// What a partition has delivered, passed over and got acknowledged.
#include "schemas/feed/window.h"

#include <gtest/gtest.h>

#include <optional>

namespace strata::feed {
namespace {

using lease::Place;
using What = Window::Acknowledged;

OpenEvent PlaceAt(store::CommitPosition position, int32_t index = 0) {
  OpenEvent event;
  event.place = {position, index};
  return event;
}
Place Whole(store::CommitPosition position) { return {position, std::nullopt}; }

class WindowTest : public ::testing::Test {
 protected:
  Window window{Whole(10), Place()};
};

TEST_F(WindowTest, WhatIsPassedOverWithNothingOpenIsDone) {
  window.Pass(Whole(15));
  EXPECT_EQ(window.done(), Whole(15));
  window.Pass(Whole(12));
  EXPECT_EQ(window.done(), Whole(15));
  // No event has been acknowledged for that.
  EXPECT_EQ(window.last_delivered(), Place());
}

TEST_F(WindowTest, AnAcknowledgementIsOfAllUpToAnEvent) {
  for (int32_t i = 0; i < 4; ++i) window.Deliver(PlaceAt(20, i), 1);
  EXPECT_EQ(window.last_delivered(), (Place{20, 3}));
  const auto acknowledged = window.Acknowledge({20, 2});
  EXPECT_EQ(acknowledged.what, What::kNow);
  EXPECT_EQ(acknowledged.events, 3u);
  EXPECT_EQ(window.done(), (Place{20, 2}));
  EXPECT_EQ(window.first().place, (Place{20, 3}));
  EXPECT_EQ(window.Acknowledge({20, 1}).what, What::kBefore);
  EXPECT_EQ(window.Acknowledge({20, 4}).what, What::kUnknown);
  EXPECT_EQ(window.Acknowledge(Whole(20)).what, What::kUnknown);
}

TEST_F(WindowTest, WhatIsPassedOverIsDoneWhenAllInFrontOfItIs) {
  window.Deliver(PlaceAt(20), 1);
  window.Pass({21, 0});
  window.Deliver(PlaceAt(22), 1);
  window.Pass(Whole(25));
  EXPECT_EQ(window.done(), Whole(10));
  window.Acknowledge({20, 0});
  EXPECT_EQ(window.done(), (Place{21, 0}));
  window.Acknowledge({22, 0});
  EXPECT_EQ(window.done(), Whole(25));
  EXPECT_EQ(window.last_delivered(), (Place{22, 0}));
}

TEST_F(WindowTest, RoomIsForSoManyEventsAndBytesButAlwaysForOne) {
  window.Deliver(PlaceAt(20), 2 * kWindowBytesMax);
  EXPECT_FALSE(window.HasRoom(5));
  window.Acknowledge({20, 0});
  EXPECT_TRUE(window.HasRoom(5));
  for (int32_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(window.HasRoom(5));
    window.Deliver(PlaceAt(21, i), 1);
  }
  EXPECT_FALSE(window.HasRoom(5));
  EXPECT_EQ(window.bytes(), 5u);
}

TEST_F(WindowTest, WhatIsVoidComesAgainBehindWhatIsAcknowledged) {
  for (int32_t i = 0; i < 4; ++i) window.Deliver(PlaceAt(20, i), 1);
  window.Pass(Whole(30));
  window.Acknowledge({20, 0});
  EXPECT_EQ(window.end(), Whole(30));
  window.Void();
  EXPECT_EQ(window.open(), 0u);
  EXPECT_EQ(window.bytes(), 0u);
  EXPECT_EQ(window.end(), (Place{20, 0}));
  EXPECT_EQ(window.last_delivered(), (Place{20, 0}));
  EXPECT_EQ(window.Acknowledge({20, 1}).what, What::kUnknown);
}

TEST_F(WindowTest, WhatWasDeliveredLastIsTakenBack) {
  window.Deliver(PlaceAt(20), 3);
  window.Deliver(PlaceAt(21), 4);
  window.TakeBack();
  EXPECT_EQ(window.open(), 1u);
  EXPECT_EQ(window.bytes(), 3u);
  EXPECT_EQ(window.last_delivered(), (Place{20, 0}));
  window.TakeBack();
  EXPECT_EQ(window.last_delivered(), Place());
}

TEST_F(WindowTest, AWriteMayAcknowledgeUpToAnyPlace) {
  for (int32_t i = 0; i < 3; ++i) window.Deliver(PlaceAt(20 + i), 1);
  EXPECT_EQ(window.AcknowledgeUpTo(Whole(21)), 2u);
  EXPECT_EQ(window.done(), Whole(21));
  EXPECT_EQ(window.AcknowledgeUpTo(Whole(50)), 1u);
  EXPECT_EQ(window.done(), Whole(50));
}

}  // namespace
}  // namespace strata::feed
