// The keys of the store: literal bytes, order, round trips, hostile bytes.
#include "schemas/store/key_codec.h"

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"

namespace strata::store {
namespace {

constexpr int64_t kGreatest = std::numeric_limits<int64_t>::max();

bool InRange(std::string_view key, const Range& range) {
  return key >= range.begin && (range.end.empty() || key < range.end);
}

TEST(KeyCodec, TheLiteralBytesOfEachKey) {
  EXPECT_EQ(HeadKey(1, "174"), std::string("\0\0\0\0\0\0\0\x01"
                                           "174\0",
                                           12));
  EXPECT_EQ(VersionKey(1, "174", 3), HeadKey(1, "174") + std::string("\0\0\0\0\0\0\0\x03", 8));
  EXPECT_EQ(RequestKey(1, "174", "r-1"), HeadKey(1, "174") + "r-1");
  EXPECT_EQ(LedgerKey(258), std::string("\0\0\0\0\0\0\x01\x02", 8));
}

TEST(KeyCodec, KeysSortAsWhatTheyName) {
  // In the order that their keys must have.
  const std::vector<int64_t> numbers = {1, 2, 255, 256, 65'535, int64_t{1} << 40, kGreatest};
  const std::vector<std::string> ids = {"", "a", "a b", "a/b", "a0", "aa", "b", "\x7F", "\xC3\xA4"};
  std::vector<std::string> versions;
  for (const int64_t incarnation : numbers) {
    for (const std::string& id : ids) {
      for (const int64_t version : numbers)
        versions.push_back(VersionKey(incarnation, id, version));
    }
  }
  EXPECT_TRUE(std::is_sorted(versions.begin(), versions.end()));
  std::vector<std::string> heads;
  for (const int64_t incarnation : numbers) {
    for (const std::string& id : ids) heads.push_back(HeadKey(incarnation, id));
  }
  EXPECT_TRUE(std::is_sorted(heads.begin(), heads.end()));
  std::vector<std::string> blocks;
  for (const int64_t position : numbers) blocks.push_back(LedgerKey(position));
  EXPECT_TRUE(std::is_sorted(blocks.begin(), blocks.end()));
}

TEST(KeyCodec, WhatIsWrittenIsParsed) {
  for (const int64_t number : {int64_t{0}, int64_t{1}, int64_t{256}, kGreatest}) {
    for (const std::string id : {"", "a", "a/b", "\xE4\xB8\xAD"}) {
      const DocumentKey document{number, id};
      EXPECT_EQ(ParseHeadKey(HeadKey(document)), document);
      const auto version = ParseVersionKey(VersionKey(document, number));
      ASSERT_TRUE(version);
      EXPECT_EQ(version->document, document);
      EXPECT_EQ(version->version, number);
    }
    EXPECT_EQ(ParseLedgerKey(LedgerKey(number)), number);
  }
}

TEST(KeyCodec, AVersionsKeyIsNotTakenForAHeads) {
  // Version 256 ends with a zero byte, as a head's key does.
  EXPECT_EQ(ParseHeadKey(VersionKey(1, "a", 256)), std::nullopt);
  EXPECT_EQ(ParseHeadKey(VersionKey(1, "", 256)), std::nullopt);
}

TEST(KeyCodec, HostileBytesAreRefusedOrRoundTrip) {
  EXPECT_EQ(ParseHeadKey(""), std::nullopt);
  EXPECT_EQ(ParseHeadKey(std::string(8, '\0')), std::nullopt);
  EXPECT_EQ(ParseHeadKey(std::string(9, '\xFF')), std::nullopt);
  EXPECT_EQ(ParseHeadKey(std::string(8, '\xFF') + std::string(1, '\0')), std::nullopt);
  EXPECT_FALSE(ParseVersionKey(""));
  EXPECT_FALSE(ParseVersionKey(std::string(16, '\0')));
  EXPECT_FALSE(ParseLedgerKey(std::string(8, '\xFF')));
  EXPECT_FALSE(ParseLedgerKey(std::string(9, '\0')));

  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  std::mt19937_64 generator(seed);
  int parsed = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string key(generator() % 28, '\0');
    for (char& byte : key) byte = std::string("\0\0\0\x01\xFF\x7F", 6)[generator() % 6];
    if (const auto head = ParseHeadKey(key)) {
      ASSERT_EQ(HeadKey(*head), key);
      ++parsed;
    }
    if (const auto version = ParseVersionKey(key)) {
      ASSERT_EQ(VersionKey(version->document, version->version), key);
      ++parsed;
    }
    if (const auto position = ParseLedgerKey(key)) {
      ASSERT_EQ(LedgerKey(*position), key);
      ++parsed;
    }
  }
  EXPECT_GT(parsed, 1'000);
}

TEST(KeyCodec, APrefixEndsBeforeTheNextKeyWithoutIt) {
  EXPECT_EQ(PrefixEnd("a"), "b");
  EXPECT_EQ(PrefixEnd("a\xFF"), "b");
  EXPECT_EQ(PrefixEnd(std::string("a\0", 2)), "a\x01");
  EXPECT_EQ(PrefixEnd(""), "");
  EXPECT_EQ(PrefixEnd("\xFF\xFF"), "");
}

TEST(KeyCodec, AnIncarnationsRangeHoldsItsKeysOnly) {
  for (const int64_t incarnation : {int64_t{1}, int64_t{255}, kGreatest - 1}) {
    const Range range = IncarnationRange(incarnation);
    for (const std::string id : {"", "a", "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"}) {
      EXPECT_TRUE(InRange(HeadKey(incarnation, id), range));
      EXPECT_TRUE(InRange(VersionKey(incarnation, id, kGreatest), range));
      EXPECT_TRUE(InRange(RequestKey(incarnation, id, "\xFF"), range));
      EXPECT_FALSE(InRange(VersionKey(incarnation - 1, id, kGreatest), range));
      EXPECT_FALSE(InRange(HeadKey(incarnation + 1, id), range));
    }
  }
}

}  // namespace
}  // namespace strata::store
