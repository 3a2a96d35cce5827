// The file of tokens.
#include "service/security/tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "schemas/base/sha256.h"
#include "tests/support/manual_clock.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"

namespace strata::security {
namespace {

using test_support::HasReason;
using test_support::ManualClock;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

constexpr UnixMicros kNow = ManualClock::kStart;

std::string HashOf(std::string_view token) {
  return std::string(HashBytes(Sha256().Update(token).Finish()));
}

TEST(TokensTest, ATokenIsFoundByItsHashAlone) {
  // Of "abc", as FIPS 180-2 prints it.
  const std::string text =
      "# callers\n"
      "\n"
      "shop sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n"
      "  ci@example.org\tsha256:CB8379AC2098AA165029E3938A51DA0BCECFC008FD6795F401178647F96C5B34 "
      "expires=2024-01-01T01:00:00.5+01:00 # def\n"
      "A.z_9-@ sha256:0000000000000000000000000000000000000000000000000000000000000000#none";
  ASSERT_OK_AND_ASSIGN(const Tokens tokens, Tokens::Parse(text, kNow));
  EXPECT_EQ(tokens.size(), 3u);
  const Token* const shop = tokens.Find(HashOf("abc"));
  ASSERT_NE(shop, nullptr);
  EXPECT_EQ(shop->name, "shop");
  EXPECT_EQ(shop->expires, std::nullopt);
  const Token* const ci = tokens.Find(HashOf("def"));
  ASSERT_NE(ci, nullptr);
  EXPECT_EQ(ci->name, "ci@example.org");
  EXPECT_EQ(ci->expires, kNow + 500'000);
  EXPECT_EQ(tokens.Find("abc"), nullptr);
  EXPECT_EQ(tokens.Find(""), nullptr);
  EXPECT_EQ(tokens.Find(HashOf("abcd")), nullptr);
}

TEST(TokensTest, AFileMayHaveNone) {
  for (const std::string text : {"", "\n", "# none yet", " \t \n#\n"}) {
    ASSERT_OK_AND_ASSIGN(const Tokens tokens, Tokens::Parse(text, kNow));
    EXPECT_EQ(tokens.size(), 0u);
  }
}

TEST(TokensTest, AnExpiryIsTakenUntilItsLastMicrosecond) {
  const std::string line = "a sha256:" + std::string(64, '1') + " expires=2024-01-01T00:00:01Z";
  ASSERT_OK_AND_ASSIGN(const Tokens before, Tokens::Parse(line, kNow + 999'999));
  EXPECT_TRUE(before.expired().empty());
  ASSERT_OK_AND_ASSIGN(const Tokens then, Tokens::Parse(line, kNow + 1'000'000));
  ASSERT_EQ(then.expired().size(), 1u);
  EXPECT_EQ(then.expired().front().name, "a");
  EXPECT_EQ(then.expired().front().line, 1);
}

// An operator who removes one token must not find that it still works since another has expired.
TEST(TokensTest, OneThatHasExpiredIsRefusedAloneAndByName) {
  const std::string file = "# first\nold sha256:" + std::string(64, '1') +
                           " expires=1969-12-31T23:59:59Z\nnew sha256:" + std::string(64, '2');
  ASSERT_OK_AND_ASSIGN(const Tokens tokens, Tokens::Parse(file, kNow));
  EXPECT_EQ(tokens.size(), 2u);
  ASSERT_EQ(tokens.expired().size(), 1u);
  EXPECT_EQ(tokens.expired().front().name, "old");
  EXPECT_EQ(tokens.expired().front().line, 2);
}

TEST(TokensTest, AMadeTokenAndItsLineBelongTogether) {
  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  test_support::SeededEntropy entropy(seed);
  std::set<std::string> made;
  std::string file;
  for (int i = 0; i < 100; ++i) {
    const std::string token = MakeToken(entropy);
    EXPECT_THAT(token, MatchesRegex("strata_[A-Za-z0-9_-]{43}"));
    EXPECT_TRUE(made.insert(token).second);
    const auto expires = i % 2 == 0 ? std::nullopt : std::optional(kNow + 1 + i);
    ASSERT_OK_AND_ASSIGN(const std::string line,
                         TokenLine("user-" + std::to_string(i), token, expires));
    EXPECT_THAT(line, Not(HasSubstr(token)));
    file += line + "\n";
    ASSERT_OK_AND_ASSIGN(const Tokens tokens, Tokens::Parse(file, kNow));
    const Token* const found = tokens.Find(HashOf(token));
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->name, "user-" + std::to_string(i));
    EXPECT_EQ(found->expires, expires);
  }
}

TEST(TokensTest, ALineIsMadeForNamesAlone) {
  for (const std::string& name :
       {std::string(), std::string("a b"), std::string("a\nb"), std::string("ä"), std::string("#a"),
        std::string(129, 'a'), std::string("a\0", 2)}) {
    EXPECT_THAT(TokenLine(name, "strata_x", std::nullopt), HasReason(ErrorReason::kInvalidField));
  }
  EXPECT_TRUE(TokenLine(std::string(128, 'a'), "strata_x", std::nullopt).ok());
}

}  // namespace
}  // namespace strata::security
