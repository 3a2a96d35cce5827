// Whom calls are counted for, by what gRPC says of their connections.
#include "service/server/caller.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace strata::server {
namespace {

TEST(CallerTest, AnAddressIsWhatAConnectionTellsWithoutItsPort) {
  EXPECT_EQ(AddressOfPeer("ipv4:10.0.0.7:51234"), "10.0.0.7");
  EXPECT_EQ(AddressOfPeer("ipv6:%5B::1%5D:51234"), "::1");
  EXPECT_EQ(AddressOfPeer("unix:/run/strata"), "unix:/run/strata");
  EXPECT_EQ(AddressOfPeer(""), "");
}

TEST(CallerTest, ConnectionsOfOneAddressAreOneCallerForEveryThread) {
  security::Access access;
  Callers callers(access);
  CallersSeen one(callers);
  CallersSeen other(callers);
  const std::shared_ptr<Caller> caller = one.Of("ipv4:10.0.0.7:1", {}).caller;
  EXPECT_EQ(one.Of("ipv4:10.0.0.7:2", {}).caller, caller);
  EXPECT_EQ(other.Of("ipv4:10.0.0.7:3", {}).caller, caller);
  EXPECT_NE(one.Of("ipv4:10.0.0.8:1", {}).caller, caller);
}

TEST(CallerTest, WhoIsGoneIsForgottenAndWhoIsThereIsNot) {
  security::Access access;
  Callers callers(access);
  const std::shared_ptr<Caller> there = callers.Of("", "there");
  there->bytes_in_flight = 7;
  for (int i = 0; i < 10'000; ++i) callers.Of("", std::to_string(i));
  EXPECT_EQ(callers.Of("", "there"), there);
  const std::weak_ptr<Caller> gone = callers.Of("", "gone");
  EXPECT_TRUE(gone.expired());
}

}  // namespace
}  // namespace strata::server
