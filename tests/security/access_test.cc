// Who calls, and what they may do, by what is in use.
#include "service/security/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "schemas/base/strings.h"
#include "tests/support/manual_clock.h"
#include "tests/support/status_matchers.h"

namespace strata::security {
namespace {

using test_support::HasReason;
using test_support::IsOk;
using test_support::ManualClock;
using testing::HasSubstr;

constexpr std::string_view kSpiffe = "spiffe://example.org/ns/shop/a";

Demand Reading(std::string_view collection) {
  return {Permission::kRead, {ResourceKind::kCollection, collection}};
}
Demand Writing(std::string_view collection) {
  return {Permission::kWrite, {ResourceKind::kCollection, collection}};
}

class AccessTest : public testing::Test {
 protected:
  // For "secret" of user:shop and "short" of user:ci, which lives for a minute.
  std::shared_ptr<const Tokens> MakeTokens() {
    auto tokens = Tokens::Parse(*TokenLine("shop", "secret", std::nullopt) + "\n" +
                                    *TokenLine("ci", "short", clock_.Now() + 60'000'000),
                                clock_.Now());
    EXPECT_TRUE(tokens.ok()) << tokens.status();
    return std::make_shared<Tokens>(*std::move(tokens));
  }
  static std::shared_ptr<const Policy> MakePolicy() {
    auto policy = Policy::Parse(R"({
      "grants": [
        {"principals": ["user:shop"], "role": "writer", "resources": ["collection/shop-*"],
         "acts_for": ["anna"]},
        {"principals": ["*"], "role": "reader", "resources": ["collection/open"]}],
      "quotas": [{"principals": ["user:ci"], "calls_per_second": 1}]})");
    EXPECT_TRUE(policy.ok()) << policy.status();
    return std::make_shared<Policy>(*std::move(policy));
  }

  // The principal, or the reason why there is none.
  std::string Who(const Credentials& credentials) {
    const auto identity = access_.Identify(credentials);
    return identity.ok() ? identity->principal
                         : std::string(ReasonName(*ReasonOf(identity.status())));
  }

  bool ActsFor(const Identity& identity, const Resource& resource, std::string_view name) {
    return access_.AuthorizeActingFor(identity, resource, name, "change.actor", "peer").ok();
  }

  ManualClock clock_;
  Access access_{clock_};
  const Identity shop_{.principal = "user:shop", .token_hash = {}};
};

TEST_F(AccessTest, ACertificateIsItsOneSpiffeIdOrItsOneDnsName) {
  const auto who = [this](std::vector<std::string_view> uris, std::vector<std::string_view> names) {
    return Who({.authorization = {}, .uris = std::move(uris), .dns_names = std::move(names)});
  };
  EXPECT_EQ(who({kSpiffe}, {}), kSpiffe);
  EXPECT_EQ(who({kSpiffe}, {"a.b"}), kSpiffe);
  EXPECT_EQ(who({"https://a.b/", kSpiffe}, {"a.b", "c.d"}), kSpiffe);
  EXPECT_EQ(who({"spiffe://a/b", kSpiffe}, {"a.b"}), "dns:a.b");
  EXPECT_EQ(who({"spiffe://a/b", kSpiffe}, {}), "");
  EXPECT_EQ(who({kSpiffe, kSpiffe}, {}), "");
  EXPECT_EQ(who({"https://a.b/", "SPIFFE://a/b"}, {"a.b"}), "dns:a.b");
  EXPECT_EQ(who({}, {"a.b", "c.d"}), "");
  EXPECT_EQ(who({}, {}), "");
}

TEST_F(AccessTest, ACertificatesNameIsShortAndPrintable) {
  const auto who = [this](std::string_view uri, std::string_view name) {
    return Who({.authorization = {}, .uris = {uri}, .dns_names = {name}});
  };
  const std::string longest = "spiffe://" + std::string(kPrincipalBytesMax - 9, 'a');
  EXPECT_EQ(who(longest, ""), longest);
  // Another name of the same certificate does not make up for it.
  EXPECT_EQ(who(longest + "a", "a.b"), "CREDENTIALS_INVALID");
  EXPECT_EQ(who("spiffe://a b", "a.b"), "CREDENTIALS_INVALID");
  EXPECT_EQ(who("spiffe://a\n", "a.b"), "CREDENTIALS_INVALID");
  EXPECT_EQ(who(std::string_view("spiffe://a\0b", 12), "a.b"), "CREDENTIALS_INVALID");
  EXPECT_EQ(who("spiffe://\x7f", "a.b"), "CREDENTIALS_INVALID");
  EXPECT_EQ(who("", "é"), "CREDENTIALS_INVALID");
  EXPECT_EQ(who("", std::string(kPrincipalBytesMax - 4, 'a')),
            "dns:" + std::string(kPrincipalBytesMax - 4, 'a'));
  EXPECT_EQ(who("", std::string(kPrincipalBytesMax - 3, 'a')), "CREDENTIALS_INVALID");
}

TEST_F(AccessTest, ATokenSaysWhoBeforeACertificateDoes) {
  access_.Use({.tokens = MakeTokens(), .policy = nullptr});
  const Credentials both{
      .authorization = {"Bearer secret"}, .uris = {kSpiffe}, .dns_names = {"a.b"}};
  EXPECT_EQ(Who(both), "user:shop");
  // RFC 9110: a scheme in letters of either case, blanks after it.
  for (const char* const header : {"bearer secret", "BEARER secret", "Bearer   secret "}) {
    EXPECT_EQ(Who({.authorization = {header}, .uris = {}, .dns_names = {}}), "user:shop") << header;
  }
  EXPECT_EQ(Who({.authorization = {}, .uris = {kSpiffe}, .dns_names = {}}), kSpiffe);
  EXPECT_EQ(Who({}), "");
  EXPECT_EQ(Who({.authorization = {"Bearer wrong"}, .uris = {kSpiffe}, .dns_names = {}}),
            "CREDENTIALS_INVALID");
  EXPECT_EQ(access_.denied(), 1);
}

TEST_F(AccessTest, WhereNobodyAsksForTokensAHeaderIsNobodysBusiness) {
  const Credentials odd{.authorization = {"Basic x", "y"}, .uris = {kSpiffe}, .dns_names = {}};
  EXPECT_FALSE(access_.reads_tokens());
  EXPECT_EQ(Who(odd), kSpiffe);
  access_.Use({.tokens = nullptr, .policy = MakePolicy()});
  EXPECT_TRUE(access_.reads_tokens());
  EXPECT_EQ(Who(odd), "CREDENTIALS_INVALID");
  EXPECT_EQ(Who({.authorization = {"Bearer secret"}, .uris = {kSpiffe}, .dns_names = {}}),
            "CREDENTIALS_INVALID");
  access_.Use({.tokens = MakeTokens(), .policy = nullptr});
  EXPECT_TRUE(access_.reads_tokens());
  access_.Use({});
  EXPECT_FALSE(access_.reads_tokens());
}

TEST_F(AccessTest, ATokenIsWrongFromItsExpiryOnWhoeverHoldsIt) {
  access_.Use({.tokens = MakeTokens(), .policy = nullptr});
  const Credentials credentials{.authorization = {"Bearer short"}, .uris = {}, .dns_names = {}};
  clock_.Advance(std::chrono::microseconds(59'999'999));
  const auto identity = access_.Identify(credentials);
  ASSERT_THAT(identity, IsOk());
  EXPECT_THAT(access_.CheckStillValid(*identity), IsOk());
  clock_.Advance(std::chrono::microseconds(1));
  EXPECT_THAT(access_.CheckStillValid(*identity), HasReason(ErrorReason::kCredentialsInvalid));
  EXPECT_EQ(Who(credentials), "CREDENTIALS_INVALID");
  EXPECT_EQ(access_.denied(), 2);
}

TEST_F(AccessTest, AnIdentityHoldsAsLongAsItsTokenIsItsOwn) {
  access_.Use({.tokens = MakeTokens(), .policy = nullptr});
  const auto identity =
      access_.Identify({.authorization = {"Bearer secret"}, .uris = {}, .dns_names = {}});
  ASSERT_THAT(identity, IsOk());
  const Identity by_certificate{.principal = std::string(kSpiffe), .token_hash = {}};
  const auto use = [&](const std::string& file) {
    auto tokens = Tokens::Parse(file, clock_.Now());
    access_.Use({.tokens = std::make_shared<Tokens>(*std::move(tokens)), .policy = nullptr});
  };
  use(*TokenLine("other", "another", std::nullopt));
  EXPECT_THAT(access_.CheckStillValid(*identity), HasReason(ErrorReason::kCredentialsInvalid));
  EXPECT_THAT(access_.CheckStillValid(by_certificate), IsOk());
  use(*TokenLine("other", "secret", std::nullopt));
  EXPECT_THAT(access_.CheckStillValid(*identity), HasReason(ErrorReason::kCredentialsInvalid));
  use(*TokenLine("shop", "secret", std::nullopt));
  EXPECT_THAT(access_.CheckStillValid(*identity), IsOk());
  access_.Use({.tokens = nullptr, .policy = MakePolicy()});
  EXPECT_THAT(access_.CheckStillValid(*identity), HasReason(ErrorReason::kCredentialsInvalid));
  access_.Use({});
  EXPECT_THAT(access_.CheckStillValid(*identity), IsOk());
}

TEST_F(AccessTest, WithoutAPolicyEverybodyMayDoEverything) {
  access_.Use({.tokens = MakeTokens(), .policy = nullptr});
  EXPECT_THAT(access_.Admit(Permission::kErase, {}), IsOk());
  EXPECT_THAT(access_.Authorize({}, {Writing("a")}, "peer"), IsOk());
  EXPECT_TRUE(access_.Permits({}, Permission::kOperate, {ResourceKind::kServer, ""}));
  EXPECT_TRUE(ActsFor({}, {ResourceKind::kCollection, "a"}, "anna"));
  EXPECT_EQ(access_.denied(), 0);
}

TEST_F(AccessTest, WithAPolicyNobodyComesFarWithoutAName) {
  access_.Use({.tokens = nullptr, .policy = MakePolicy()});
  EXPECT_THAT(access_.Admit(Permission::kOpen, {}), IsOk());
  EXPECT_EQ(access_.denied(), 0);
  for (const Permission permission : {Permission::kPrincipal, Permission::kRead}) {
    EXPECT_THAT(access_.Admit(permission, {}), HasReason(ErrorReason::kCredentialsMissing));
    EXPECT_THAT(access_.Admit(permission, shop_), IsOk());
  }
  EXPECT_EQ(access_.denied(), 2);
  EXPECT_THAT(access_.Authorize({}, {Reading("open")}, "peer"),
              HasReason(ErrorReason::kPermissionDenied));
}

TEST_F(AccessTest, ARequestNeedsAllThatItAsksFor) {
  access_.Use({.tokens = nullptr, .policy = MakePolicy()});
  EXPECT_THAT(access_.Authorize(shop_, {}, "peer"), IsOk());
  EXPECT_THAT(access_.Authorize(shop_, {Writing("shop-1"), Reading("open")}, "peer"), IsOk());
  const absl::Status denied =
      access_.Authorize(shop_, {Writing("shop-1"), Writing("open"), Reading("x")}, "peer");
  EXPECT_THAT(denied, HasReason(ErrorReason::kPermissionDenied));
  EXPECT_EQ(ToStd(denied.message()), "user:shop has no write on collection/open");
  EXPECT_EQ(MetadataOf(denied),
            (ErrorMetadata{{"permission", "write"}, {"resource", "collection/open"}}));
  EXPECT_EQ(access_.denied(), 1);
  EXPECT_FALSE(access_.Permits(shop_, Permission::kWrite, {ResourceKind::kCollection, "open"}));
  EXPECT_TRUE(access_.Permits(shop_, Permission::kRead, {ResourceKind::kCollection, "open"}));
  EXPECT_EQ(access_.denied(), 1);
}

TEST_F(AccessTest, ADenialIsShortHoweverLongTheName) {
  access_.Use({.tokens = nullptr, .policy = MakePolicy()});
  const std::string name(4 << 20, 'x');
  const absl::Status denied = access_.Authorize(shop_, {Writing(name)}, "peer");
  EXPECT_THAT(denied, HasReason(ErrorReason::kPermissionDenied));
  EXPECT_LT(denied.message().size(), 400u);
  EXPECT_LT(MetadataOf(denied, "resource")->size(), 400u);
}

TEST_F(AccessTest, ActingForIsGranted) {
  access_.Use({.tokens = nullptr, .policy = MakePolicy()});
  const Resource own{ResourceKind::kCollection, "shop-1"};
  EXPECT_TRUE(ActsFor(shop_, own, "anna"));
  EXPECT_FALSE(ActsFor(shop_, own, "bob"));
  EXPECT_FALSE(ActsFor(shop_, {ResourceKind::kCollection, "open"}, "anna"));
  EXPECT_EQ(access_.denied(), 2);
  const absl::Status denied = access_.AuthorizeActingFor(shop_, own, std::string(4 << 20, 'x'),
                                                         "change.on_behalf_of", "peer");
  EXPECT_THAT(denied, HasReason(ErrorReason::kActForDenied));
  EXPECT_LT(denied.message().size(), 700u);
}

TEST_F(AccessTest, WhatIsInUseCountsFromTheNextQuestionOn) {
  const uint64_t before = access_.generation();
  access_.Use({.tokens = nullptr, .policy = MakePolicy()});
  EXPECT_NE(access_.generation(), before);
  EXPECT_THAT(access_.Authorize(shop_, {Reading("x")}, "peer"),
              HasReason(ErrorReason::kPermissionDenied));
  const auto quota = access_.QuotaOf("user:ci");
  EXPECT_THAT(quota->Take(0, clock_.SteadyNow()), IsOk());
  EXPECT_THAT(quota->Take(0, clock_.SteadyNow()), HasReason(ErrorReason::kQuotaExceeded));
  EXPECT_EQ(access_.QuotaOf("user:ci"), quota);
  EXPECT_NE(access_.QuotaOf("user:shop"), quota);
  access_.Use({});
  EXPECT_THAT(access_.Authorize(shop_, {Reading("x")}, "peer"), IsOk());
  EXPECT_THAT(quota->Take(0, clock_.SteadyNow()), IsOk());
}

}  // namespace
}  // namespace strata::security
