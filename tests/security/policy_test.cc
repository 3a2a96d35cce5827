// What a policy grants, against the words of its description and against a slow reading of it.
#include "service/security/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"

namespace strata::security {
namespace {

constexpr Permission kAsked[] = {Permission::kRead,   Permission::kAudit, Permission::kWrite,
                                 Permission::kManage, Permission::kErase, Permission::kOperate};

Resource Collection(std::string_view name) { return {ResourceKind::kCollection, name}; }
constexpr Resource kServer{ResourceKind::kServer, ""};

Policy Parsed(const std::string& json) {
  auto policy = Policy::Parse(json);
  EXPECT_TRUE(policy.ok()) << policy.status();
  return policy.ok() ? *std::move(policy) : Policy();
}

std::string GrantText(const std::vector<std::string>& principals, const std::string& role,
                      const std::vector<std::string>& resources,
                      const std::vector<std::string>& acts_for = {}) {
  const auto list = [](const std::vector<std::string>& texts) {
    return texts.empty() ? "[]" : "[\"" + absl::StrJoin(texts, "\", \"") + "\"]";
  };
  return "{\"principals\": " + list(principals) + ", \"role\": \"" + role +
         "\", \"resources\": " + list(resources) + ", \"acts_for\": " + list(acts_for) + "}";
}

std::string PolicyText(const std::vector<std::string>& grants,
                       const std::vector<std::string>& quotas = {}) {
  return "{\"grants\": [" + absl::StrJoin(grants, ",\n") + "], \"quotas\": [" +
         absl::StrJoin(quotas, ",\n") + "]}";
}

TEST(PolicyTest, ARolePermitsWhatItsDescriptionSays) {
  const std::map<std::string, std::set<Permission>> roles = {
      {"reader", {Permission::kRead}},
      {"auditor", {Permission::kRead, Permission::kAudit}},
      {"writer", {Permission::kRead, Permission::kWrite}},
      {"admin",
       {Permission::kRead, Permission::kAudit, Permission::kWrite, Permission::kManage,
        Permission::kErase}},
  };
  for (const auto& [role, permitted] : roles) {
    const Policy policy = Parsed(PolicyText({GrantText({"user:a"}, role, {"collection/b"})}));
    for (const Permission permission : kAsked) {
      SCOPED_TRACE(role + " " + std::string(PermissionName(permission)));
      EXPECT_EQ(policy.Permits("user:a", {permission, Collection("b")}),
                permitted.contains(permission));
      EXPECT_FALSE(policy.Permits("user:a", {permission, Collection("c")}));
      EXPECT_FALSE(policy.Permits("user:b", {permission, Collection("b")}));
      EXPECT_FALSE(policy.Permits("user:a", {permission, {ResourceKind::kQueue, "b"}}));
      EXPECT_FALSE(policy.Permits("user:a", {permission, kServer}));
    }
  }
}

TEST(PolicyTest, AnOperatorOperatesAndNobodyElse) {
  const Policy policy = Parsed(PolicyText(
      {GrantText({"user:op"}, "operator", {"server"}), GrantText({"*"}, "admin", {"*"})}));
  for (const Permission permission : kAsked) {
    EXPECT_EQ(policy.Permits("user:op", {permission, kServer}), true) << PermissionName(permission);
    EXPECT_EQ(policy.Permits("user:a", {permission, kServer}), permission != Permission::kOperate);
  }
  const Policy alone = Parsed(PolicyText({GrantText({"user:op"}, "operator", {"server"})}));
  for (const Permission permission : kAsked) {
    EXPECT_FALSE(alone.Permits("user:op", {permission, Collection("b")}));
    EXPECT_EQ(alone.Permits("user:op", {permission, kServer}), permission == Permission::kOperate);
  }
}

TEST(PolicyTest, WhatMayBeAnyOfAKindNeedsThemAll) {
  const auto permits = [](const std::string& pattern, const Resource& resource) {
    return Parsed(PolicyText({GrantText({"*"}, "reader", {pattern})}))
        .Permits("user:a", {Permission::kRead, resource});
  };
  EXPECT_TRUE(permits("*", Collection(kEvery)));
  EXPECT_TRUE(permits("collection/*", Collection(kEvery)));
  EXPECT_FALSE(permits("collection/b*", Collection(kEvery)));
  EXPECT_FALSE(permits("queue/*", Collection(kEvery)));
  EXPECT_TRUE(permits("queue/*", {ResourceKind::kQueue, kEvery}));
  EXPECT_TRUE(permits("collection/b*", Collection("b")));
  EXPECT_TRUE(permits("collection/b*", Collection("books")));
  EXPECT_FALSE(permits("collection/b*", Collection("a-b")));
  EXPECT_FALSE(permits("collection/b", Collection("books")));
  EXPECT_FALSE(permits("collection/books", Collection("b")));
  EXPECT_FALSE(permits("collection/b", Collection("B")));
}

TEST(PolicyTest, AnEmptyOneGrantsNothing) {
  for (const std::string json : {"{}", "{\"grants\": [], \"quotas\": []}", " {\r\n\t} \n"}) {
    const Policy policy = Parsed(json);
    EXPECT_FALSE(policy.Permits("user:a", {Permission::kRead, Collection("b")}));
    EXPECT_FALSE(policy.PermitsActingFor("user:a", Collection("b"), "b"));
    EXPECT_FALSE(policy.QuotaOf("user:a").any());
  }
}

TEST(PolicyTest, NobodyIsNoPrincipal) {
  const Policy policy = Parsed(PolicyText({GrantText({"*"}, "admin", {"*"}, {"*"})}));
  EXPECT_TRUE(policy.Permits("user:a", {Permission::kRead, Collection("b")}));
  EXPECT_FALSE(policy.Permits("", {Permission::kRead, Collection("b")}));
  EXPECT_FALSE(policy.PermitsActingFor("", Collection("b"), "anna"));
}

TEST(PolicyTest, OneGrantHasToHoldAllOfActingFor) {
  const Policy policy = Parsed(PolicyText(
      {GrantText({"user:gateway"}, "writer", {"collection/a"}, {"anna", "Bob Smith", "shop/*"}),
       GrantText({"user:gateway"}, "writer", {"collection/b"}),
       GrantText({"user:other"}, "writer", {"collection/b"}, {"*"})}));
  EXPECT_TRUE(policy.PermitsActingFor("user:gateway", Collection("a"), "anna"));
  EXPECT_TRUE(policy.PermitsActingFor("user:gateway", Collection("a"), "Bob Smith"));
  EXPECT_TRUE(policy.PermitsActingFor("user:gateway", Collection("a"), "shop/7"));
  EXPECT_FALSE(policy.PermitsActingFor("user:gateway", Collection("a"), "Anna"));
  EXPECT_FALSE(policy.PermitsActingFor("user:gateway", Collection("b"), "anna"));
  EXPECT_TRUE(policy.PermitsActingFor("user:other", Collection("b"), "anna"));
  EXPECT_FALSE(policy.PermitsActingFor("user:other", Collection("a"), "anna"));
}

TEST(PolicyTest, OfSeveralQuotasTheClosestCounts) {
  const Policy policy = Parsed(PolicyText(
      {}, {R"({"principals": ["user:b*"], "calls_per_second": 2})",
           R"({"principals": ["*", "user:batch"], "calls_per_second": 0.5, "mib_per_second": 1.5})",
           R"({"principals": ["user:bat*", "spiffe://x/*"], "calls_in_flight": 7})"}));
  EXPECT_EQ(policy.QuotaOf("user:batch"), (QuotaLimits{0.5, 1.5 * (1 << 20), 0}));
  EXPECT_EQ(policy.QuotaOf("user:batch2"), (QuotaLimits{0, 0, 7}));
  EXPECT_EQ(policy.QuotaOf("user:bob"), (QuotaLimits{2, 0, 0}));
  EXPECT_EQ(policy.QuotaOf("dns:a"), (QuotaLimits{0.5, 1.5 * (1 << 20), 0}));
}

TEST(PolicyTest, ALargeOneIsReadInReasonableTime) {
  std::vector<std::string> grants;
  for (int i = 0; i < 9'000; ++i) {
    grants.push_back(GrantText({"user:" + std::to_string(i)}, "reader",
                               {"collection/shop-" + std::to_string(i)}));
  }
  const std::string text = PolicyText(grants);
  ASSERT_LT(text.size(), Policy::kBytesMax);
  const Policy policy = Parsed(text);
  EXPECT_TRUE(policy.Permits("user:8999", {Permission::kRead, Collection("shop-8999")}));
}

// The description of a policy, taken literally.
class SlowPolicy {
 public:
  struct Grant {
    std::vector<std::string> principals;
    std::string role;
    std::vector<std::string> resources;
    std::vector<std::string> acts_for;
  };
  struct Quota {
    std::string principal;
    double calls_per_second;
  };

  std::vector<Grant> grants;
  std::vector<Quota> quotas;

  static bool Matches(const std::string& pattern, const std::string& text) {
    if (pattern.back() != '*') return pattern == text;
    const std::string start = pattern.substr(0, pattern.size() - 1);
    return text.substr(0, start.size()) == start;
  }
  static bool Any(const std::vector<std::string>& patterns, const std::string& text) {
    for (const std::string& pattern : patterns) {
      if (Matches(pattern, text)) return true;
    }
    return false;
  }
  static bool RoleHas(const std::string& role, Permission permission) {
    if (permission == Permission::kOperate) return role == "operator";
    if (role == "operator") return false;
    if (permission == Permission::kRead || role == "admin") return true;
    if (permission == Permission::kWrite) return role == "writer";
    return permission == Permission::kAudit && role == "auditor";
  }
  // `name` empty: whether the principal may do it for itself.
  bool Permits(const std::string& principal, Permission permission, const std::string& resource,
               const std::string& name) const {
    for (const Grant& grant : grants) {
      if (!Any(grant.principals, principal) || !RoleHas(grant.role, permission)) continue;
      if (Any(grant.resources, resource) && (name.empty() || Any(grant.acts_for, name)))
        return true;
    }
    return false;
  }
  double CallsPerSecond(const std::string& principal) const {
    double closest = 0;
    size_t length = 0;
    for (const Quota& quota : quotas) {
      if (quota.principal == principal) return quota.calls_per_second;
      if (!Matches(quota.principal, principal) || quota.principal.size() < length) continue;
      length = quota.principal.size();
      closest = quota.calls_per_second;
    }
    return closest;
  }
};

class RandomPolicies {
 public:
  explicit RandomPolicies(uint64_t seed) : random_(seed) {}

  size_t Below(size_t end) { return random_() % end; }
  bool Chance(size_t of) { return Below(of) == 0; }

  // Of few letters, so that patterns often match.
  std::string Name() {
    std::string name;
    do {
      name += "ab/"[Below(3)];
    } while (Chance(2));
    return name;
  }
  std::string Pattern(const std::string& start) {
    if (Chance(4)) return start + "*";
    return start + Name() + (Chance(2) ? "*" : "");
  }
  std::string ResourcePattern() {
    if (Chance(8)) return "*";
    return Pattern(Chance(2) ? "collection/" : "queue/");
  }
  template <typename Make>
  std::vector<std::string> Some(size_t least, Make&& make) {
    std::vector<std::string> texts;
    for (size_t i = least + Below(3); i > 0; --i) texts.push_back(make());
    return texts;
  }

  SlowPolicy Make() {
    SlowPolicy policy;
    for (size_t i = Below(5); i > 0; --i) {
      SlowPolicy::Grant grant;
      static constexpr const char* kRoles[] = {"reader", "auditor", "writer", "admin", "operator"};
      grant.role = kRoles[Below(5)];
      grant.principals = Some(1, [&] { return Pattern("user:"); });
      grant.resources = grant.role == "operator" ? std::vector<std::string>{"server"}
                                                 : Some(1, [&] { return ResourcePattern(); });
      if (grant.role == "writer" || grant.role == "admin") {
        grant.acts_for = Some(0, [&] { return Pattern(""); });
      }
      policy.grants.push_back(grant);
    }
    std::set<std::string> limited;
    for (size_t i = Below(5); i > 0; --i) limited.insert(Pattern("user:"));
    for (const std::string& principal : limited) {
      policy.quotas.push_back({principal, static_cast<double>(1 + Below(1000))});
    }
    return policy;
  }

 private:
  std::mt19937_64 random_;
};

std::string TextOf(const SlowPolicy& policy) {
  std::vector<std::string> grants;
  for (const auto& grant : policy.grants) {
    grants.push_back(GrantText(grant.principals, grant.role, grant.resources, grant.acts_for));
  }
  std::vector<std::string> quotas;
  for (const auto& quota : policy.quotas) {
    quotas.push_back("{\"principals\": [\"" + quota.principal +
                     "\"], \"calls_per_second\": " + std::to_string(quota.calls_per_second) + "}");
  }
  return PolicyText(grants, quotas);
}

void ExpectTheSame(const SlowPolicy& slow, const Policy& policy, RandomPolicies& random) {
  const std::string principal = "user:" + random.Name();
  const ResourceKind kind = random.Chance(2) ? ResourceKind::kCollection : ResourceKind::kQueue;
  const std::string name = random.Chance(5) ? std::string(kEvery) : random.Name();
  const Resource resource = random.Chance(10) ? kServer : Resource{kind, name};
  const Permission permission = kAsked[random.Below(std::size(kAsked))];
  const std::string actor = random.Name();
  SCOPED_TRACE(principal + " " + std::string(PermissionName(permission)) + " " + resource.text() +
               " for " + actor);
  EXPECT_EQ(policy.Permits(principal, {permission, resource}),
            slow.Permits(principal, permission, resource.text(), ""));
  EXPECT_EQ(policy.PermitsActingFor(principal, resource, actor),
            slow.Permits(principal, Permission::kWrite, resource.text(), actor));
  EXPECT_EQ(policy.QuotaOf(principal).calls_per_second, slow.CallsPerSecond(principal));
}

TEST(PolicyTest, ASlowReadingSaysTheSame) {
  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  RandomPolicies random(seed);
  int permitted = 0;
  for (int i = 0; i < 300 && !testing::Test::HasFailure(); ++i) {
    const SlowPolicy slow = random.Make();
    const std::string text = TextOf(slow);
    SCOPED_TRACE(text);
    const Policy policy = Parsed(text);
    for (int j = 0; j < 100; ++j) ExpectTheSame(slow, policy, random);
    permitted += slow.Permits("user:a", Permission::kRead, "collection/a", "") ? 1 : 0;
  }
  EXPECT_GT(permitted, 10);
}

}  // namespace
}  // namespace strata::security
