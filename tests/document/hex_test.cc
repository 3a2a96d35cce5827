// Bytes from hexadecimal digits.
#include "schemas/base/hex.h"

#include <optional>
#include <string>

#include "gtest/gtest.h"

namespace strata {
namespace {

TEST(Hex, DigitsOfEitherCaseAreBytes) {
  EXPECT_EQ(BytesOfHex(""), "");
  EXPECT_EQ(BytesOfHex("00ff7F"), std::string("\0\xFF\x7F", 3));
  EXPECT_EQ(BytesOfHex("abcdef"), "\xAB\xCD\xEF");
  EXPECT_EQ(BytesOfHex("ABCDEF"), "\xAB\xCD\xEF");
  EXPECT_EQ(BytesOfHex("0123456789"), "\x01\x23\x45\x67\x89");
}

TEST(Hex, OtherTextIsNone) {
  for (const char* const text :
       {"0", "abc", "0g", "g0", "0x", " 0", "0 ", "/0", ":0", "@0", "`0"}) {
    EXPECT_EQ(BytesOfHex(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace strata
