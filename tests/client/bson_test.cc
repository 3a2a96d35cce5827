// BSON in both directions, against the bytes of another library and the server's own check.
#include <bson/bson.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>

#include "schemas/document/bson_check.h"
#include "schemas/document/content.h"
#include "strata/client/error.h"
#include "strata/client/value.h"
#include "tests/client/random_value.h"

namespace strata::client {
namespace {

TEST(Bson, WhatIsWrittenIsReadAndHasTheSameBytesAgain) {
  std::mt19937_64 random(17);
  for (int i = 0; i < 3000; ++i) {
    const Value value = RandomObject(random, 5);
    const auto bson = ToBson(value);
    ASSERT_TRUE(bson.ok()) << bson.status();
    bson_t checked;
    ASSERT_TRUE(
        bson_init_static(&checked, reinterpret_cast<const uint8_t*>(bson->data()), bson->size()));
    EXPECT_TRUE(bson_validate(&checked, BSON_VALIDATE_NONE, nullptr));
    const auto read = FromBson(*bson);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(*read == value);
    EXPECT_EQ(ToBson(*read).value_or(""), *bson);
  }
}

// Whatever stands in damaged bytes, reading them ends with an error or with a value.
TEST(Bson, DamagedBytesAreRefusedOrReadButNeverMore) {
  std::mt19937_64 random(18);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bson = ToBson(RandomObject(random, 4)).value_or("");
    if (random() % 4 == 0) bson.resize(random() % (bson.size() + 1));
    for (uint64_t j = random() % 3; j > 0 && !bson.empty(); --j) {
      bson[random() % bson.size()] = static_cast<char>(random());
    }
    if (!FromBson(bson).ok()) ++refused;
  }
  EXPECT_GT(refused, 1000);
}

std::string PathOf(const Value& value) {
  const auto bson = ToBson(value);
  if (bson.ok()) return "accepted";
  const Error error = ErrorOf(bson.status());
  EXPECT_TRUE(error.reason == Reason::kInvalidContent || error.reason == Reason::kDocumentTooLarge)
      << bson.status();
  return error.metadata.at("path");
}

Value Nested(int levels) {
  Value value = 1;
  for (int i = 0; i < levels; ++i) value = Object{{"a", value}};
  return value;
}

TEST(Bson, WhatTheServerWouldRefuseIsRefusedWithItsPath) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const std::string zero_byte("a\0b", 3);
  EXPECT_EQ(PathOf(Object{{"a", Array{1, Object{{"b/c~", nan}}}}}), "/a/1/b~1c~0");
  EXPECT_EQ(PathOf(Object{{"a", -infinity}}), "/a");
  EXPECT_EQ(PathOf(Object{{"a", "\xff"}}), "/a");
  EXPECT_EQ(PathOf(Object{{"a", "\xed\xa0\x80"}}), "/a");
  EXPECT_EQ(PathOf(Object{{"\xc0\x80", 1}}), "/\xc0\x80");
  EXPECT_EQ(PathOf(Object{{zero_byte, 1}}), "/" + zero_byte);
  EXPECT_EQ(PathOf(Object{{"r", Regex{.pattern = zero_byte}}}), "/r");
  EXPECT_EQ(PathOf(Value(3)), "");
  EXPECT_EQ(PathOf(Nested(24)), "accepted");
  std::string deepest;
  for (int i = 0; i < 24; ++i) deepest += "/a";
  EXPECT_EQ(PathOf(Nested(25)), deepest);
  EXPECT_EQ(PathOf(Object{{"s", std::string((size_t{2} << 20) - 13, 'x')}}), "accepted");
  EXPECT_EQ(PathOf(Object{{"s", std::string((size_t{2} << 20) - 12, 'x')}}), "");
  // A string with a zero byte is a string.
  EXPECT_EQ(PathOf(Object{{"s", zero_byte}}), "accepted");
}

TEST(Bson, DepthsAreCountedAsTheServerCountsThem) {
  const document::Limits limits;
  EXPECT_EQ(limits.depth_max, 24);
  EXPECT_TRUE(document::IsWellFormed(ToBson(Nested(24)).value_or(""), limits.depth_max));
  EXPECT_FALSE(document::IsWellFormed(ToBson(Nested(24)).value_or(""), limits.depth_max - 1));
}

}  // namespace
}  // namespace strata::client
