// Decimal128: exact, or nothing. The rows agree with IEEE 754-2008 at 34 digits, inexact results
// refused.
#include "schemas/document/extended_json/decimal.h"

#include <bson/bson.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "schemas/document/bson_view.h"
#include "schemas/document/compare_numbers.h"

namespace strata::document {
namespace {

std::string Text(const std::optional<Decimal>& decimal) {
  return decimal ? DecimalText(DecimalBytes(*decimal)) : "none";
}

struct SumRow {
  const char* a;
  const char* b;
  const char* sum;
};

constexpr SumRow kSums[] = {
    {"1", "2", "3"},
    {"1.50", "1", "2.50"},
    {"1.10", "2.2", "3.30"},
    {"0.1", "0.2", "0.3"},
    {"-1.5", "1.5", "0.0"},
    {"1.5", "-1.25", "0.25"},
    {"-3", "1", "-2"},
    {"0", "0.00", "0.00"},
    {"1", "0.00", "1.00"},
    {"0E+3", "1", "1"},
    {"0E-6176", "1", "1.000000000000000000000000000000000"},
    {"0E+6111", "1.5", "1.5"},
    {"-0", "-0.0", "-0.0"},
    {"-0", "0", "0"},
    {"1E+2", "1E+2", "2E+2"},
    {"1E+2", "1", "101"},
    {"1E+33", "1", "1000000000000000000000000000000001"},
    {"1E+34", "1", "none"},
    {"1E+34", "10", "1.000000000000000000000000000000001E+34"},
    {"1E+34", "-1", "9999999999999999999999999999999999"},
    {"1E+35", "-1", "none"},
    {"2E+34", "-1", "none"},
    {"1E+6111", "1E-6176", "none"},
    {"1E-6176", "1E-6176", "2E-6176"},
    {"1E-6176", "-1E-6176", "0E-6176"},
    {"9999999999999999999999999999999999", "1", "1.000000000000000000000000000000000E+34"},
    {"9999999999999999999999999999999999", "2", "none"},
    {"9999999999999999999999999999999999", "0.1", "none"},
    {"9999999999999999999999999999999999", "-0.1", "none"},
    {"999999999999999999999999999999999.9", "0.1", "1000000000000000000000000000000000"},
    {"9999999999999999999999999999999999E+6111", "1E+6111", "none"},
    {"-9999999999999999999999999999999999E+6111", "1E+6111",
     "-9.999999999999999999999999999999998E+6144"},
    {"5000000000000000000000000000000000E+6111", "5000000000000000000000000000000000E+6111",
     "none"},
    {"1E+40", "100", "none"},
    {"3.00000000000000000000", "1E+25", "10000000000000000000000003.00000000"},
    {"3.000000", "1E+25", "10000000000000000000000003.000000"},
    {"3.00000000000000000000", "1E+20", "100000000000000000003.0000000000000"},
};

TEST(Decimal, ASumIsExactOrNone) {
  for (const SumRow& row : kSums) {
    SCOPED_TRACE(std::string(row.a) + " + " + row.b);
    const std::optional<Decimal> a = ParseDecimal(row.a);
    const std::optional<Decimal> b = ParseDecimal(row.b);
    ASSERT_TRUE(a && b);
    EXPECT_EQ(Text(Sum(*a, *b)), row.sum);
    EXPECT_EQ(Text(Sum(*b, *a)), row.sum);
  }
}

// What was added can be taken away again, and the order of the three agrees.
TEST(Decimal, RandomSumsCanBeUndone) {
  std::mt19937_64 random(20261122);
  Decimal::Coefficient end = 1;  // 10^34
  for (int i = 0; i < 34; ++i) end *= 10;
  const auto make = [&] {
    Decimal decimal;
    decimal.negative = random() % 2 == 0;
    decimal.coefficient =
        (Decimal::Coefficient{random()} << 64 | random()) >> (15 + random() % 100);
    while (decimal.coefficient >= end) decimal.coefficient /= 10;
    decimal.exponent = static_cast<int>(random() % 24) - 12;
    return decimal;
  };
  int sums = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Decimal a = make();
    Decimal b = make();
    const std::optional<Decimal> sum = Sum(a, b);
    if (!sum) continue;
    ++sums;
    const int order =
        CompareNumbers(kBsonDecimal, DecimalBytes(*sum), kBsonDecimal, DecimalBytes(a));
    EXPECT_EQ(order, b.coefficient == 0 ? 0 : (b.negative ? -1 : 1)) << Text(a) << " " << Text(b);
    b.negative = !b.negative;
    const std::optional<Decimal> back = Sum(*sum, b);
    ASSERT_TRUE(back) << Text(a) << " " << Text(b);
    EXPECT_EQ(CompareNumbers(kBsonDecimal, DecimalBytes(*back), kBsonDecimal, DecimalBytes(a)), 0);
  }
  EXPECT_GT(sums, 10'000);
}

TEST(Decimal, ATextIsReadExactlyOrNotAtAll) {
  const std::pair<const char*, const char*> rows[] = {
      {"0070050010060030.0000001000800061000000006", "none"},
      {"0070050010060030.0000001000800061000000000", "70050010060030.00000010008000610000"},
      {"12345678901234567890123456789012345", "none"},
      {"12345678901234567890123456789012340", "1.234567890123456789012345678901234E+34"},
      {"123456789012345678901234567890123400000.00001", "none"},
      {"20000000470000000001000000008000000000.00E21", "2.000000047000000000100000000800000E+58"},
      {"1e99999999999999999999", "none"},
      {"0e99999999999999999999", "0E+6111"},
      {"1e-99999999999999999999", "none"},
      {"1E 5", "none"},
      {"1E+05", "1E+5"},
  };
  for (const auto& [text, expected] : rows) EXPECT_EQ(Text(ParseDecimal(text)), expected) << text;
}

// libbson's own reader, which is right up to 34 digits. With more and a point it refuses numbers
// whose last digits are zeros, and cuts others off.
TEST(Decimal, IsReadAsByLibbson) {
  std::mt19937 random(20261122);
  const auto below = [&](size_t end) { return random() % end; };
  int read = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string text;
    if (below(3) == 0) text += below(2) == 0 ? '-' : '+';
    const size_t digits = below(35);
    const char only = below(3) == 0 ? '0' : '\0';
    for (size_t j = 0; j < digits; ++j) {
      if (below(12) == 0) text += '.';
      text += only != '\0' && below(4) != 0 ? only : static_cast<char>('0' + below(10));
    }
    if (below(2) == 0) text += "E" + std::to_string(static_cast<int>(below(12600)) - 6300);
    bson_decimal128_t expected;
    const bool valid = bson_decimal128_from_string(text.c_str(), &expected);
    const std::optional<Decimal> decimal = ParseDecimal(text);
    ASSERT_EQ(decimal.has_value(), valid) << text;
    if (!valid) continue;
    ++read;
    std::string bytes;
    AppendNumber(expected.low, bytes);
    AppendNumber(expected.high, bytes);
    EXPECT_EQ(DecimalBytes(*decimal), bytes) << text;
    EXPECT_EQ(LoadDecimal(bytes), decimal) << text;
    EXPECT_EQ(ParseDecimal(DecimalText(bytes)), decimal) << text;
  }
  EXPECT_GT(read, 5'000);
}

TEST(Decimal, ADoubleHasOneIfItsDigitsFit) {
  const std::pair<double, const char*> rows[] = {
      {0.0, "0"},
      {-0.0, "-0"},
      {1.0, "1"},
      {-2.5, "-2.5"},
      {0.5, "0.5"},
      {100.0, "100"},
      {0.0009765625, "0.0009765625"},
      {1e22, "10000000000000000000000"},
      {9007199254740993.0, "9007199254740992"},
      {std::ldexp(1.0, 112), "5192296858534827628530496329220096"},
      {std::ldexp(1.0, 113), "none"},
      {std::ldexp(1e22, 60), "1.152921504606846976000000000000000E+40"},
      {std::ldexp(1.0, -48), "3.552713678800500929355621337890625E-15"},
      {0.1, "none"},
      {1.1, "none"},
      {1e300, "none"},
      {5e-324, "none"},
      {std::numeric_limits<double>::infinity(), "none"},
      {std::nan(""), "none"},
  };
  for (const auto& [number, text] : rows) EXPECT_EQ(Text(DecimalOfDouble(number)), text) << number;
  for (const int exponent : {-60, -48, -30, 0, 20, 60, 99}) {
    const double number = std::ldexp(1.0, exponent);
    const std::optional<Decimal> decimal = DecimalOfDouble(number);
    if (!decimal) continue;
    std::string bytes;
    AppendNumber(number, bytes);
    EXPECT_EQ(CompareNumbers(kBsonDecimal, DecimalBytes(*decimal), kBsonDouble, bytes), 0);
  }
}

TEST(Decimal, EveryIntegerHasOne) {
  EXPECT_EQ(Text(DecimalOfInteger(0)), "0");
  EXPECT_EQ(Text(DecimalOfInteger(-7)), "-7");
  EXPECT_EQ(Text(DecimalOfInteger(std::numeric_limits<int64_t>::min())), "-9223372036854775808");
  EXPECT_EQ(Text(DecimalOfInteger(std::numeric_limits<int64_t>::max())), "9223372036854775807");
}

TEST(Decimal, WhatIsNotCanonicalOrNotFiniteIsNoDecimal) {
  const auto bytes = [](uint64_t high, uint64_t low) {
    std::string both;
    AppendNumber(low, both);
    AppendNumber(high, both);
    return both;
  };
  EXPECT_EQ(Text(LoadDecimal(bytes(0x3040000000000000, 5))), "5");
  // 10^34 - 1 and 10^34.
  EXPECT_TRUE(LoadDecimal(bytes(0x3041ED09BEAD87C0, 0x378D8E63FFFFFFFF)));
  EXPECT_FALSE(LoadDecimal(bytes(0x3041ED09BEAD87C0, 0x378D8E6400000000)));
  EXPECT_TRUE(IsFiniteDecimal(bytes(0x3041ED09BEAD87C0, 0x378D8E6400000000)));
  EXPECT_FALSE(LoadDecimal(bytes(0x6C10000000000000, 0)));
  EXPECT_TRUE(IsFiniteDecimal(bytes(0x6C10000000000000, 0)));
  for (const uint64_t high : {uint64_t{0x7800000000000000}, uint64_t{0xF800000000000000},
                              uint64_t{0x7C00000000000000}, uint64_t{0xFE00000000000000}}) {
    EXPECT_FALSE(LoadDecimal(bytes(high, 0)));
    EXPECT_FALSE(IsFiniteDecimal(bytes(high, 0)));
  }
}

}  // namespace
}  // namespace strata::document
