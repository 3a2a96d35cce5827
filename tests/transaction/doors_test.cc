// Doors: whoever is inside stays until they leave; nobody comes in afterwards.
#include "schemas/base/doors.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

namespace strata::transaction {
namespace {

TEST(Doors, LetInUntilTheyAreClosed) {
  Doors doors;
  {
    const Doors::Visit visit(doors);
    EXPECT_TRUE(visit.let_in());
    EXPECT_TRUE(Doors::Visit(doors).let_in());
  }
  doors.Close();
  EXPECT_TRUE(doors.closed());
  EXPECT_FALSE(Doors::Visit(doors).let_in());
}

TEST(Doors, CloseWhenTheLastVisitorHasLeft) {
  Doors doors;
  std::promise<void> inside;
  std::atomic<bool> has_left = false;
  std::thread visitor([&] {
    const Doors::Visit visit(doors);
    inside.set_value();
    while (!doors.closed()) std::this_thread::yield();
    has_left = true;
  });
  inside.get_future().wait();
  doors.Close();
  EXPECT_TRUE(has_left);
  visitor.join();
}

}  // namespace
}  // namespace strata::transaction
