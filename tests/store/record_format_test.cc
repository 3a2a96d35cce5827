// The envelope of RocksDB records: literal bytes, round trips, what is refused.
#include "service/engines/rocksdb/record_format.h"

#include <limits>
#include <random>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"

namespace strata::engines::rocks {
namespace {

constexpr int64_t kGreatest = std::numeric_limits<int64_t>::max();

TEST(RecordFormat, TheLiteralBytes) {
  EXPECT_EQ(RecordHeader(1, 0), std::string("\0\x01", 2));
  EXPECT_EQ(RecordHeader(300, 5), "\x01\xAC\x02\x05");
  EXPECT_EQ(EncodePosition(0), std::string(1, '\0'));
  EXPECT_EQ(EncodePosition(128), "\x80\x01");
}

TEST(RecordFormat, WhatIsWrittenIsParsed) {
  for (const int64_t position : {int64_t{1}, int64_t{127}, int64_t{128}, kGreatest}) {
    for (const UnixMicros expire_time : {int64_t{0}, int64_t{1}, kGreatest}) {
      for (const std::string value : {"", "v", "\x01\x02"}) {
        const std::string stored = RecordHeader(position, expire_time) + value;
        const auto record = ParseRecord(stored);
        ASSERT_TRUE(record);
        EXPECT_EQ(record->position, position);
        EXPECT_EQ(record->expire_time, expire_time);
        EXPECT_EQ(record->value, value);
      }
    }
    EXPECT_EQ(ParsePosition(EncodePosition(position)), position);
    EXPECT_EQ(ParsePosition(EncodePosition(position) + "x"), std::nullopt);
  }
}

TEST(RecordFormat, WhatWasNeverWrittenIsRefused) {
  EXPECT_FALSE(ParseRecord(""));
  EXPECT_FALSE(ParseRecord(std::string(1, '\0')));
  EXPECT_FALSE(ParseRecord(std::string("\0\0", 2)));  // no position is 0
  EXPECT_FALSE(ParseRecord("\x02\x01"));              // an unknown flag
  EXPECT_FALSE(ParseRecord("\x01\x01"));              // no expiry after its flag
  EXPECT_FALSE(ParseRecord(std::string("\x01\x01\0", 3)));
  EXPECT_FALSE(ParseRecord(std::string(1, '\0') + std::string(9, '\xFF')));
  EXPECT_FALSE(ParsePosition(""));
  EXPECT_FALSE(ParsePosition("\x80"));
}

TEST(RecordFormat, AnyBytesAreParsedWithinTheirBounds) {
  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  std::mt19937_64 generator(seed);
  for (int i = 0; i < 100'000; ++i) {
    std::string stored(generator() % 24, '\0');
    for (char& byte : stored) byte = static_cast<char>(generator() >> 56);
    if (!stored.empty()) stored[0] = static_cast<char>(generator() % 3);
    const auto record = ParseRecord(stored);
    if (!record) continue;
    ASSERT_GT(record->position, 0);
    ASSERT_GE(record->expire_time, 0);
    ASSERT_LE(record->value.size(), stored.size());
  }
}

}  // namespace
}  // namespace strata::engines::rocks
