// What a policy, a file of tokens or a header must not be: each is refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "schemas/base/strings.h"
#include "service/security/access.h"
#include "service/security/policy.h"
#include "service/security/tokens.h"
#include "tests/support/manual_clock.h"
#include "tests/support/status_matchers.h"

namespace strata::security {
namespace {

using test_support::HasReason;
using test_support::ManualClock;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct Bad {
  std::string text;
  std::string words;  // of the message
  std::string field;
};

std::string Repeated(std::string_view text, int times) {
  std::string made;
  for (int i = 0; i < times; ++i) made += text;
  return made;
}

std::string Shown(const std::string& text) { return text.substr(0, 200); }

std::string OfGrants(const std::string& grant) { return R"({"grants": [)" + grant + "]}"; }
std::string OfQuotas(const std::string& quotas) { return R"({"quotas": [)" + quotas + "]}"; }
std::string OfRole(const std::string& role, const std::string& resource) {
  return OfGrants(R"({"principals": ["user:a"], "role": ")" + role + R"(", "resources": [")" +
                  resource + R"("]})");
}
std::string OfPrincipal(const std::string& principal) {
  return OfGrants(R"({"principals": [")" + principal +
                  R"("], "role": "reader", "resources": ["*"]})");
}
std::string OfLimit(const std::string& limit) {
  return OfQuotas(R"({"principals": ["user:a"], )" + limit + "}");
}

void ExpectRefused(const std::vector<Bad>& all) {
  for (const Bad& bad : all) {
    SCOPED_TRACE(Shown(bad.text));
    const absl::Status status = Policy::Parse(bad.text).status();
    EXPECT_THAT(status, HasReason(ErrorReason::kInvalidField));
    const std::string message(ToStd(status.message()));
    EXPECT_THAT(message, StartsWith("policy: "));
    EXPECT_THAT(message, HasSubstr(bad.words));
    EXPECT_LT(message.size(), 400u);
    EXPECT_EQ(MetadataOf(status, "field"), bad.field);
  }
}

TEST(BadPolicies, ThatAreNotJson) {
  const std::string bom = "\xEF\xBB\xBF{}";
  ExpectRefused({
      {"", "not JSON: it ends before the value does", "policy"},
      {" \n", "not JSON: it ends before the value does, in line 2", "policy"},
      {"[]", "not JSON: expected an object", "policy"},
      {"null", "not JSON: expected an object", "policy"},
      {"7", "not JSON: expected an object", "policy"},
      {"{} {}", "there is more after the value", "policy"},
      {bom, "not JSON: it begins with a byte order mark", "policy"},
      {"{\"grants\": [\n", "it ends before the value does, in line 2", "policy"},
      {"{\"grants\": [],\n}", "a comma after the last element, in line 2", "policy"},
      {"{\"grants\": [{},]}", "a comma after the last element, in line 1", "policy"},
      {"{\n\n// all\n}", "a comment, in line 3", "policy"},
      {"{/* all */}", "a comment, in line 1", "policy"},
      {"# all\n{}", "a comment, in line 1", "policy"},
      {"{'grants': []}", "single quotes, in line 1", "policy"},
      {"{grants: []}", "expected a member's name in double quotes, in line 1", "policy"},
      {"{\"grants\" []}", "expected ':' after a member's name", "policy"},
      {"{\"grants\": [] \"quotas\": []}", "expected ',' or '}'", "policy"},
      {OfRole("reader", "collection/a\nb"), "control character in a text, in line 1", "policy"},
      {OfRole("reader", std::string(1, '\0')), "control character in a text", "policy"},
      {OfRole("reader", R"(collection/\x41)"), "unknown escape", "policy"},
      {OfRole("reader", R"(collection/\ud800)"), "surrogate", "policy"},
      {OfRole("reader", "collection/\xFF"), "UTF-8", "policy"},
      {Repeated("[", 10'000), "more than 16 levels", "policy"},
      {Repeated("[", 1'000'000), "more than 16 levels", "policy"},
      {Repeated("{\"grants\":", 10'000), "more than 16 levels", "policy"},
      {Repeated("{\"a\":[", 100'000), "more than 16 levels", "policy"},
      {std::string(Policy::kBytesMax + 1, ' '), "1048577 bytes, at most 1048576", "policy"},
      {std::string(10 << 20, '{'), "at most 1048576", "policy"},
      {"\"", "not JSON", "policy"},
      {"\"\\", "unknown escape", "policy"},
  });
}

TEST(BadPolicies, OfAnotherShape) {
  ExpectRefused({
      {R"({"grant": []})", "is no member; there are grants, quotas", "grant"},
      {R"({"": []})", "is no member", "policy"},
      {R"({"@type": "x"})", "is no member", "@type"},
      {OfGrants(R"({"rôle": "x"})"), "is no member; there are", "grants[0].rôle"},
      {OfGrants(R"({"actsFor": ["*"]})"), "there are acts_for, principals", "grants[0].actsFor"},
      {R"({"grants": [], "grants": []})", "stands there twice", "grants"},
      {OfGrants(R"({"role": "reader", "role": "admin"})"), "stands there twice", "grants[0].role"},
      {OfGrants(R"({"r\u006fle": "reader", "role": "admin"})"), "stands there twice",
       "grants[0].role"},
      {R"({"grants": null})", "is null, but has to be a list", "grants"},
      {R"({"grants": {}})", "is an object, but has to be a list", "grants"},
      {OfGrants("null"), "is null, but has to be an object", "grants[0]"},
      {OfGrants("[]"), "is a list, but has to be an object", "grants[0]"},
      {OfGrants("{}, 3"), "is a number, but has to be an object", "grants[1]"},
      {OfGrants(R"({"role": 3})"), "is a number, but has to be a text", "grants[0].role"},
      {OfGrants(R"({"role": ["x"]})"), "is a list, but has to be a text", "grants[0].role"},
      {OfGrants(R"({"principals": "*"})"), "is a text, but has to be a list",
       "grants[0].principals"},
      {OfGrants(R"({"principals": ["*", null]})"), "is null, but has to be a text",
       "grants[0].principals[1]"},
      {OfGrants(R"({"principals": [["*"]]})"), "is a list, but has to be a text",
       "grants[0].principals[0]"},
  });
}

TEST(BadPolicies, OfGrants) {
  const std::string roles = "there are reader, auditor, writer, admin, operator";
  ExpectRefused({
      {OfGrants(R"({"role": "reader", "resources": ["*"]})"), "is required",
       "grants[0].principals"},
      {OfGrants(R"({"principals": [], "role": "reader", "resources": ["*"]})"), "is required",
       "grants[0].principals"},
      {OfGrants(R"({"principals": ["a"], "resources": ["*"]})"), "is required: one of reader",
       "grants[0].role"},
      {OfGrants(R"({"principals": ["a"], "role": "reader"})"), "is required",
       "grants[0].resources"},
      {OfRole("owner", "*"), "is no role; " + roles, "grants[0].role"},
      {OfRole("Reader", "*"), "is no role; " + roles, "grants[0].role"},
      {OfPrincipal(""), "is empty", "grants[0].principals[0]"},
      {OfPrincipal("user:*x"), "\"*\" elsewhere than at its end", "grants[0].principals[0]"},
      {OfPrincipal("**"), "\"*\" elsewhere than at its end", "grants[0].principals[0]"},
      {OfPrincipal("user: a"), "printable ASCII without blanks", "grants[0].principals[0]"},
      {OfPrincipal("user:é"), "printable ASCII without blanks", "grants[0].principals[0]"},
      {OfPrincipal(std::string(513, 'a')), "513 bytes, at most 512", "grants[0].principals[0]"},
      {OfRole("reader", ""), "is empty", "grants[0].resources[0]"},
      {OfRole("reader", "collection/a*b"), "\"*\" elsewhere", "grants[0].resources[0]"},
      {OfRole("reader", "collections/x"), "is of no kind", "grants[0].resources[0]"},
      {OfRole("reader", "coll*"), "is of no kind", "grants[0].resources[0]"},
      {OfRole("reader", "books"), "collection/, queue/, lease/", "grants[0].resources[0]"},
      {OfRole("reader", "server/x"), "is of no kind", "grants[0].resources[0]"},
      {OfRole("reader", "queue/"), "names none; queue/* is all", "grants[0].resources[0]"},
      {OfRole("reader", R"(queue/\u0007)"), "control character", "grants[0].resources[0]"},
      {OfRole("admin", "server"), "only an operator", "grants[0].resources[0]"},
      {OfRole("operator", "*"), "is not \"server\"", "grants[0].resources[0]"},
      {OfGrants(R"({"principals": ["a"], "role": "operator", "resources": ["server", "queue/*"]})"),
       "is not \"server\"", "grants[0].resources[1]"},
      {OfGrants(R"({"principals": ["a"], "role": "writer", "resources": ["*"],
                    "acts_for": ["b", "c*d"]})"),
       "\"*\" elsewhere", "grants[0].acts_for[1]"},
      {OfGrants(R"({"principals": ["a"], "role": "reader", "resources": ["*"],
                    "acts_for": ["b"]})"),
       "roles that write", "grants[0].acts_for"},
  });
}

TEST(BadPolicies, OfQuotas) {
  ExpectRefused({
      {OfQuotas(R"({"calls_per_second": 1})"), "is required", "quotas[0].principals"},
      {OfQuotas(R"({"principals": ["user:a"]})"), "limits nothing", "quotas[0]"},
      {OfQuotas(R"({"principals": ["a", "a"], "calls_per_second": 1})"),
       "stands in quotas[0].principals[0] too", "quotas[0].principals[1]"},
      {OfQuotas(R"({"principals": ["a*"], "calls_per_second": 1},
                   {"principals": ["b", "a*"], "calls_in_flight": 1})"),
       "stands in quotas[0].principals[0] too", "quotas[1].principals[1]"},
      {OfLimit(R"("calls_per_second": 0)"), "is 0, but has to be 0.001 to 1000000000",
       "quotas[0].calls_per_second"},
      {OfLimit(R"("calls_per_second": -5)"), "is -5, but", "quotas[0].calls_per_second"},
      {OfLimit(R"("calls_per_second": 1e12)"), "to 1000000000", "quotas[0].calls_per_second"},
      {OfLimit(R"("calls_per_second": 1e400)"), "a number beyond what a double holds", "policy"},
      {OfLimit(R"("calls_per_second": NaN)"), "expected a value", "policy"},
      {OfLimit(R"("calls_per_second": "NaN")"), "is a text, but has to be a number",
       "quotas[0].calls_per_second"},
      {OfLimit(R"("calls_per_second": "Infinity")"), "is a text, but has to be a number",
       "quotas[0].calls_per_second"},
      {OfLimit(R"("calls_per_second": Infinity)"), "expected a value", "policy"},
      {OfLimit(R"("calls_per_second": true)"), "is true or false", "quotas[0].calls_per_second"},
      {OfLimit(R"("calls_per_second": 0x10)"), "expected ',' or '}'", "policy"},
      {OfLimit(R"("mib_per_second": 0)"), "is 0, but has to be 0.001 to 1000000",
       "quotas[0].mib_per_second"},
      {OfLimit(R"("mib_per_second": 2000000)"), "is 2000000, but", "quotas[0].mib_per_second"},
      {OfLimit(R"("calls_in_flight": 0)"), "is 0, but has to be 1 to 1000000",
       "quotas[0].calls_in_flight"},
      {OfLimit(R"("calls_in_flight": -1)"), "is -1, but", "quotas[0].calls_in_flight"},
      {OfLimit(R"("calls_in_flight": 1.5)"), "a whole number", "quotas[0].calls_in_flight"},
      {OfLimit(R"("calls_in_flight": 3000000000)"), "a whole number", "quotas[0].calls_in_flight"},
      {OfLimit(R"("calls_in_flight": 1000001)"), "is 1000001", "quotas[0].calls_in_flight"},
      {OfLimit(R"("calls": 1)"), "is no member; there are calls_in_flight", "quotas[0].calls"},
  });
}

TEST(BadTokens, AreRefusedByLineAndNeverQuoted) {
  const std::string hex = Repeated("5ecre7", 10) + "abcd";  // no hex: r
  const std::string right = Repeated("5ec2e7", 10) + "abcd";
  const std::string other = Repeated("5ec2e8", 10) + "abcd";
  const std::string good = "a sha256:" + right + "\n";
  const std::vector<Bad> all = {
      {"a", "64 hexadecimal digits", "line 1"},
      {"a sha256:", "64 hexadecimal digits", "line 1"},
      {"a sha256: " + right, "64 hexadecimal digits", "line 1"},
      {"a SHA256:" + right, "64 hexadecimal digits", "line 1"},
      {"a sha512:" + right, "64 hexadecimal digits", "line 1"},
      {"a sha256:" + hex, "64 hexadecimal digits", "line 1"},
      {"a sha256:" + right.substr(1), "64 hexadecimal digits", "line 1"},
      {"a sha256:" + right + "0", "64 hexadecimal digits", "line 1"},
      {"a strata_5ec2e7", "64 hexadecimal digits", "line 1"},
      {"strata_5ec2e7+/=", "no name", "line 1"},
      {"sha256:" + right, "no name", "line 1"},
      {"\n\n# x\nä sha256:" + right, "no name", "line 4"},
      {"user:a sha256:" + right, "no name", "line 1"},
      {std::string(129, 'a') + " sha256:" + right, "no name", "line 1"},
      {std::string("a\0b sha256:", 11) + right, "no name", "line 1"},
      {"\xEF\xBB\xBF" + good, "no name", "line 1"},
      {good + "\n" + "a sha256:" + other, "name stands in line 1", "line 3"},
      {good + "b sha256:" + right, "hash stands in line 1", "line 2"},
      {good + "b sha256:" + Repeated("5EC2E7", 10) + "ABCD", "hash stands in line 1", "line 2"},
      {"a sha256:" + right + "\r\n", "carriage return", "line 1"},
      {good + "# old\r\n", "carriage return", "line 2"},
      {"a sha256:" + right + " expires", "expires=TIME", "line 1"},
      {"a sha256:" + right + " until=2999-01-01T00:00:00Z", "expires=TIME", "line 1"},
      {"a sha256:" + right + " expires=2999-01-01T00:00:00Z b", "expires=TIME", "line 1"},
      {"a sha256:" + right + " expires=", "no time with a zone", "line 1"},
      {"a sha256:" + right + " expires=2999-01-01", "no time with a zone", "line 1"},
      {"a sha256:" + right + " expires=2999-01-01T00:00:00", "no time with a zone", "line 1"},
      {"a sha256:" + right + " expires=2999-02-30T00:00:00Z", "no time with a zone", "line 1"},
      {"a sha256:" + right + " expires=infinite-future", "no time with a zone", "line 1"},
      {std::string(Tokens::kBytesMax + 1, '\n'), "1048577 bytes, at most 1048576", "tokens"},
      {std::string(10 << 20, 'x'), "at most 1048576", "tokens"},
      {std::string(Tokens::kBytesMax, 'x'), "no name", "line 1"},
  };
  for (const Bad& bad : all) {
    SCOPED_TRACE(Shown(bad.text));
    const absl::Status status = Tokens::Parse(bad.text, ManualClock::kStart).status();
    EXPECT_THAT(status, HasReason(ErrorReason::kInvalidField));
    const std::string message(ToStd(status.message()));
    EXPECT_THAT(message, HasSubstr(bad.words));
    EXPECT_THAT(message, Not(HasSubstr("5ec")));
    EXPECT_LT(message.size(), 200u);
    EXPECT_EQ(MetadataOf(status, "field"), bad.field);
  }
}

TEST(BadHeaders, AreRefusedByWhatIsWrongAndNeverQuoted) {
  Access access;
  access.Use({.tokens = std::make_shared<Tokens>(), .policy = nullptr});
  const struct {
    std::vector<std::string> values;
    std::string_view words;
  } all[] = {
      {{""}, "is empty"},
      {{"s3cret"}, "does not begin with \"Bearer \""},
      {{"bearer s3cret"}, "is unknown here"},
      {{"Basic s3cret"}, "does not begin with \"Bearer \""},
      {{" Bearer s3cret"}, "does not begin with \"Bearer \""},
      {{"Bearer\ts3cret"}, "does not begin with \"Bearer \""},
      {{"Bearer"}, "has no token"},
      {{"Bearer "}, "has no token"},
      {{"Bearer  s3cret"}, "is unknown here"},
      {{"Bearer s3cret"}, "is unknown here"},
      {{"Bearer s3cret, Bearer s3cret"}, "is unknown here"},
      {{std::string("Bearer s3cret\0", 14)}, "is unknown here"},
      {{"Bearer " + std::string(250, 's')}, "has 257 bytes, at most 256"},
      {{"Bearer " + std::string(1 << 20, 's')}, "has 1048583 bytes, at most 256"},
      {{"Bearer s3cret", "Bearer s3cret"}, "2 authorization headers"},
      {{"", ""}, "2 authorization headers"},
  };
  int64_t refused = 0;
  for (const auto& bad : all) {
    SCOPED_TRACE(Shown(bad.values[0]));
    Credentials credentials{.authorization = {}, .uris = {"spiffe://a/b"}, .dns_names = {"a.b"}};
    credentials.authorization.assign(bad.values.begin(), bad.values.end());
    const auto identity = access.Identify(credentials);
    EXPECT_THAT(identity, HasReason(ErrorReason::kCredentialsInvalid));
    const std::string message(ToStd(identity.status().message()));
    EXPECT_THAT(message, HasSubstr(bad.words));
    EXPECT_THAT(message, Not(HasSubstr("s3cret")));
    EXPECT_LT(message.size(), 200u);
    EXPECT_EQ(access.denied(), ++refused);
  }
}

}  // namespace
}  // namespace strata::security
