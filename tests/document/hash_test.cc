// SHA-256 over parts.
#include "schemas/document/hash.h"

#include <gtest/gtest.h>

#include "tests/document/documents.h"

namespace strata::document {
namespace {

std::string Hex(const Hash& hash) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : hash) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

// The expected values come from `printf … | sha256sum`.
TEST(PartHasher, AgreesWithSha256OfThePartsBehindTheirLengths) {
  // Nothing.
  EXPECT_EQ(Hex(PartHasher().Finish()),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  // 00 00 00 00 00 00 00 03 "abc"
  EXPECT_EQ(Hex(PartHasher().Add("abc").Finish()),
            "c3494ca1a2cf8eeb8a11ded316fb55b83c3bbbedb6313cd50415251e5d09e12f");
  // 00 00 00 00 00 00 00 08  00 00 00 00 00 00 01 02
  EXPECT_EQ(Hex(PartHasher().Add(int64_t{258}).Finish()),
            "1006ec94e9bbfbd65cfcee1a1cb653aab8d306099ab61b3bb45c57e468963434");
}

TEST(PartHasher, TellsListsOfPartsApart) {
  EXPECT_NE(PartHasher().Add("ab").Add("c").Finish(), PartHasher().Add("a").Add("bc").Finish());
  EXPECT_NE(PartHasher().Add("").Finish(), PartHasher().Finish());
  EXPECT_NE(PartHasher().Add(int64_t{-1}).Finish(), PartHasher().Add(int64_t{1}).Finish());
}

TEST(ContentHash, IsTheHashOfSaltAndBytes) {
  const Content content = Doc(R"({"a": 1})");
  EXPECT_EQ(ContentHash("salt", content), PartHasher().Add("salt").Add(content.bytes()).Finish());
  EXPECT_NE(ContentHash("salt", content), ContentHash("tlas", content));
}

}  // namespace
}  // namespace strata::document
