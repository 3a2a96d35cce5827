// Adding numbers of all BSON types.
#include "schemas/document/addition.h"

#include <cmath>
#include <optional>

#include "schemas/document/extended_json/decimal.h"

namespace strata::document {
namespace {

template <typename Number>
Addition Made(uint8_t type, Number number) {
  Addition made{{type, {}}, {}};
  AppendNumber(number, made.sum.bytes);
  return made;
}

Addition Refused(std::string_view problem) { return {{}, problem}; }

double AsDouble(uint8_t type, std::string_view value) {
  return type == kBsonDouble ? LoadNumber<double>(value)
                             : static_cast<double>(LoadInteger(type, value));
}

std::optional<Decimal> AsDecimal(uint8_t type, std::string_view value) {
  if (type == kBsonDecimal) return LoadDecimal(value);
  if (type == kBsonDouble) return DecimalOfDouble(LoadNumber<double>(value));
  return DecimalOfInteger(LoadInteger(type, value));
}

Addition AddDecimals(const std::optional<Decimal>& a, const std::optional<Decimal>& b) {
  if (!a || !b) {
    return Refused(
        "adds a decimal128 and a double that 34 digits do not hold exactly, such as 0.1; write "
        R"({"$numberDecimal": "0.1"}, or set the member to a decimal128 first)");
  }
  const std::optional<Decimal> sum = Sum(*a, *b);
  if (!sum) {
    return Refused(
        "makes a decimal128 that 34 digits do not hold exactly; set the value instead, rounded as "
        "it should be");
  }
  return {{kBsonDecimal, DecimalBytes(*sum)}, {}};
}

Addition AddDoubles(double a, double b) {
  const double sum = a + b;
  if (!std::isfinite(sum)) {
    return Refused("makes a double that is too large; set the value instead");
  }
  return Made(kBsonDouble, sum);
}

Addition AddIntegers(int64_t a, int64_t b, bool narrow) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) {
    return Refused(
        R"(makes an integer beyond 64 bits; increment by {"$numberDecimal": "1"} to go on with a )"
        R"(decimal128, or by {"$numberDouble": "1.0"} to go on with a double)");
  }
  if (narrow && sum == static_cast<int32_t>(sum)) {
    return Made(kBsonInt32, static_cast<int32_t>(sum));
  }
  return Made(kBsonInt64, sum);
}

}  // namespace

Addition AddNumbers(uint8_t type_a, std::string_view a, uint8_t type_b, std::string_view b) {
  if (type_a == kBsonDecimal || type_b == kBsonDecimal) {
    return AddDecimals(AsDecimal(type_a, a), AsDecimal(type_b, b));
  }
  if (type_a == kBsonDouble || type_b == kBsonDouble) {
    return AddDoubles(AsDouble(type_a, a), AsDouble(type_b, b));
  }
  const bool narrow = type_a == kBsonInt32 && type_b == kBsonInt32;
  return AddIntegers(LoadInteger(type_a, a), LoadInteger(type_b, b), narrow);
}

}  // namespace strata::document
