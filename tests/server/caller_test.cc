// Whom calls are counted for, by what gRPC says of their connections.
#include "service/server/caller.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "schemas/base/error.h"

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

security::Rules TokensOf(const std::string& name, const std::string& token) {
  const std::string line = *security::TokenLine(name, token, std::nullopt);
  return {std::make_shared<const security::Tokens>(*security::Tokens::Parse(line, 0)), nullptr};
}

TEST(CallerTest, APrincipalIsOneCallerWhereverItCallsFrom) {
  security::Access access;
  access.Use(TokensOf("anna", "strata_1"));
  Callers callers(access);
  CallersSeen one(callers);
  CallersSeen other(callers);
  const security::Credentials credentials{{"Bearer strata_1"}, {}, {}};
  const Recognized here = one.Of("ipv4:10.0.0.7:1", credentials);
  const Recognized there = other.Of("ipv4:10.0.0.8:1", credentials);
  EXPECT_EQ(here.caller, there.caller);
  EXPECT_EQ(here.caller->name(), "user:anna");
  EXPECT_EQ(here.identity->principal, "user:anna");
  EXPECT_NE(here.caller->quota(), nullptr);
  const Recognized nobody = one.Of("ipv4:10.0.0.7:1", {});
  EXPECT_EQ(nobody.caller->name(), "10.0.0.7");
  EXPECT_EQ(nobody.identity->principal, "");
  EXPECT_EQ(nobody.caller->quota(), nullptr);
}

TEST(CallerTest, WhoPresentsAWrongTokenIsCountedByItsAddressAndNotRemembered) {
  security::Access access;
  access.Use(TokensOf("anna", "strata_1"));
  Callers callers(access);
  CallersSeen seen(callers);
  const security::Credentials credentials{{"Bearer strata_2"}, {}, {}};
  const Recognized wrong = seen.Of("ipv4:10.0.0.7:1", credentials);
  EXPECT_EQ(ReasonOf(wrong.refusal), ErrorReason::kCredentialsInvalid);
  EXPECT_EQ(wrong.caller->name(), "10.0.0.7");
  EXPECT_EQ(wrong.identity->principal, "");
}

// Whatever a thread remembers: other rules count from the next call on.
TEST(CallerTest, OtherRulesMakeOtherCallersOfTheSameToken) {
  security::Access access;
  access.Use(TokensOf("anna", "strata_1"));
  Callers callers(access);
  CallersSeen seen(callers);
  const security::Credentials credentials{{"Bearer strata_1"}, {}, {}};
  EXPECT_EQ(seen.Of("ipv4:10.0.0.7:1", credentials).caller->name(), "user:anna");
  access.Use(TokensOf("bob", "strata_1"));
  EXPECT_EQ(seen.Of("ipv4:10.0.0.7:1", credentials).caller->name(), "user:bob");
  access.Use(TokensOf("bob", "strata_2"));
  EXPECT_EQ(ReasonOf(seen.Of("ipv4:10.0.0.7:1", credentials).refusal),
            ErrorReason::kCredentialsInvalid);
}

// Texts of any length and kind stay apart.
TEST(CallerTest, CredentialsOfDifferentKindsAreDifferentCallers) {
  security::Access access;
  Callers callers(access);
  CallersSeen seen(callers);
  const auto name = [&](const security::Credentials& credentials) {
    return seen.Of("ipv4:10.0.0.7:1", credentials).caller->name();
  };
  EXPECT_EQ(name({{}, {}, {"spiffe://a"}}), "dns:spiffe://a");
  EXPECT_EQ(name({{}, {"spiffe://a"}, {}}), "spiffe://a");
  EXPECT_EQ(name({{}, {"spiffe://a", "spiffe://b"}, {}}), "10.0.0.7");
  EXPECT_EQ(name({{}, {"spiffe://a"}, {"b"}}), "spiffe://a");
  EXPECT_EQ(name({{}, {}, {""}}), "10.0.0.7");
  // Too long to be remembered, and recognised all the same.
  const std::string long_name(3000, 'x');
  EXPECT_EQ(name({{}, {"spiffe://a", long_name}, {}}), "spiffe://a");
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
