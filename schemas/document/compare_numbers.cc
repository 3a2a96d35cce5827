// Numbers of all BSON types, compared by their exact value.
#include "schemas/document/compare_numbers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>

#include "schemas/document/bson_view.h"

namespace strata::document {
namespace {

template <typename Number>
int Order(Number a, Number b) {
  return a < b ? -1 : (b < a ? 1 : 0);
}

// 2^63, the first double past every int64.
constexpr double kInt64End = 9223372036854775808.0;

int CompareDoubles(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return Order(!std::isnan(a), !std::isnan(b));
  return Order(a, b);
}

int CompareWithDouble(int64_t whole, double number) {
  if (std::isnan(number)) return 1;
  if (number >= kInt64End) return -1;
  if (number < -kInt64End) return 1;
  const double integral = std::trunc(number);
  const int order = Order(whole, static_cast<int64_t>(integral));
  return order != 0 ? order : Order(integral, number);
}

__extension__ using uint128_t = unsigned __int128;

// A whole number that is as large as a comparison can need: a decimal128 and a double of about the
// same size, brought to whole numbers, stay below 1300 bits.
class Whole {
 public:
  Whole() = default;
  explicit Whole(uint64_t low, uint64_t high = 0)
      : digits_{low, high}, size_(high != 0 ? 2 : (low != 0 ? 1 : 0)) {}

  void MultiplyByFives(int power) {
    constexpr int kStep = 27;  // 5^27 is the last power that fits 64 bits
    constexpr uint64_t kStepFives = 7450580596923828125u;
    for (; power >= kStep; power -= kStep) Multiply(kStepFives);
    uint64_t rest = 1;
    for (; power > 0; --power) rest *= 5;
    Multiply(rest);
  }

  void MultiplyByTwos(int power) {
    const auto whole = static_cast<size_t>(power / 64);
    if (power % 64 != 0) Multiply(uint64_t{1} << (power % 64));
    if (whole == 0 || size_ == 0) return;
    size_ = std::min(size_ + whole, digits_.size());
    std::copy_backward(digits_.begin(), digits_.begin() + static_cast<ptrdiff_t>(size_ - whole),
                       digits_.begin() + static_cast<ptrdiff_t>(size_));
    std::fill_n(digits_.begin(), whole, 0);
  }

  bool IsZero() const { return size_ == 0; }

  double ToDouble() const {
    double number = 0;
    for (size_t i = size_; i-- > 0;) {
      number = number * 18446744073709551616.0 + static_cast<double>(digits_[i]);
    }
    return number;
  }

  friend int CompareWholes(const Whole& a, const Whole& b) {
    if (a.size_ != b.size_) return Order(a.size_, b.size_);
    for (size_t i = a.size_; i-- > 0;) {
      if (a.digits_[i] != b.digits_[i]) return Order(a.digits_[i], b.digits_[i]);
    }
    return 0;
  }

 private:
  void Multiply(uint64_t factor) {
    uint64_t carry = 0;
    for (size_t i = 0; i < size_; ++i) {
      const uint128_t product = uint128_t{digits_[i]} * factor + carry;
      digits_[i] = static_cast<uint64_t>(product);
      carry = static_cast<uint64_t>(product >> 64);
    }
    if (carry != 0 && size_ < digits_.size()) digits_[size_++] = carry;
  }

  std::array<uint64_t, 24> digits_{};  // the least significant first
  size_t size_ = 0;                    // without zeros in front
};

// Any number: (-1)^negative * whole * 2^twos * 10^tens.
struct Exact {
  enum class Kind { kNan, kLow, kFinite, kHigh };
  Kind kind = Kind::kFinite;
  bool negative = false;
  Whole whole;
  int twos = 0;
  int tens = 0;

  int Sign() const { return whole.IsZero() ? 0 : (negative ? -1 : 1); }
};

Exact ExactOfInteger(int64_t number) {
  Exact exact;
  exact.negative = number < 0;
  const auto bits = static_cast<uint64_t>(number);
  exact.whole = Whole(exact.negative ? 0 - bits : bits);
  return exact;
}

Exact ExactOfDouble(double number) {
  Exact exact;
  exact.negative = std::signbit(number);
  if (std::isnan(number)) {
    exact.kind = Exact::Kind::kNan;
  } else if (std::isinf(number)) {
    exact.kind = exact.negative ? Exact::Kind::kLow : Exact::Kind::kHigh;
  } else {
    int exponent = 0;
    const double fraction = std::frexp(std::abs(number), &exponent);
    exact.whole = Whole(static_cast<uint64_t>(std::ldexp(fraction, 53)));
    exact.twos = exponent - 53;
  }
  return exact;
}

// IEEE 754-2008 decimal128 with the coefficient as a binary whole number: the sign, 14 bits of
// exponent, 113 bits of coefficient.
Exact ExactOfDecimal(std::string_view value) {
  constexpr int kBias = 6176;
  const auto low = LoadNumber<uint64_t>(value.data());
  const auto high = LoadNumber<uint64_t>(value.data() + 8);
  Exact exact;
  exact.negative = (high >> 63) != 0;
  if (((high >> 61) & 3) == 3) {
    if (((high >> 59) & 3) == 3) {
      const bool nan = ((high >> 58) & 1) != 0;
      exact.kind =
          nan ? Exact::Kind::kNan : (exact.negative ? Exact::Kind::kLow : Exact::Kind::kHigh);
    }
    // Otherwise the coefficient has more than 34 digits, which the standard reads as zero.
    return exact;
  }
  exact.whole = Whole(low, high & ((uint64_t{1} << 49) - 1));
  exact.tens = static_cast<int>((high >> 49) & 0x3FFF) - kBias;
  return exact;
}

Exact ExactOf(uint8_t type, std::string_view value) {
  if (type == kBsonDecimal) return ExactOfDecimal(value);
  if (type == kBsonDouble) return ExactOfDouble(LoadNumber<double>(value));
  return ExactOfInteger(LoadInteger(type, value));
}

double Log10(const Exact& exact) {
  constexpr double kLog10Of2 = 0.30102999566398119521;
  return std::log10(exact.whole.ToDouble()) + exact.twos * kLog10Of2 + exact.tens;
}

// REQUIRES: finite and not zero. Takes copies, as it brings both to whole numbers.
int CompareMagnitudes(Exact a, Exact b) {
  // The logarithms are off by 1e-11 at the most. Only numbers of the same size are multiplied out:
  // that bounds the powers.
  const double distance = Log10(a) - Log10(b);
  if (std::abs(distance) > 1e-9) return distance < 0 ? -1 : 1;
  const int fives = std::min(a.tens, b.tens);
  const int twos = std::min(a.twos + a.tens, b.twos + b.tens);
  for (Exact* const exact : {&a, &b}) {
    exact->whole.MultiplyByFives(exact->tens - fives);
    exact->whole.MultiplyByTwos(exact->twos + exact->tens - twos);
  }
  return CompareWholes(a.whole, b.whole);
}

int CompareExact(const Exact& a, const Exact& b) {
  if (a.kind != b.kind) return Order(a.kind, b.kind);
  if (a.kind != Exact::Kind::kFinite) return 0;
  if (a.Sign() != b.Sign()) return Order(a.Sign(), b.Sign());
  if (a.Sign() == 0) return 0;
  return a.negative ? CompareMagnitudes(b, a) : CompareMagnitudes(a, b);
}

}  // namespace

bool IsNumber(uint8_t type) {
  return type == kBsonDouble || type == kBsonDecimal || IsInteger(type);
}

int CompareNumbers(uint8_t type_a, std::string_view a, uint8_t type_b, std::string_view b) {
  if (type_a == kBsonDecimal || type_b == kBsonDecimal) {
    if (type_a == type_b && a == b) return 0;
    return CompareExact(ExactOf(type_a, a), ExactOf(type_b, b));
  }
  if (type_a == kBsonDouble && type_b == kBsonDouble) {
    return CompareDoubles(LoadNumber<double>(a), LoadNumber<double>(b));
  }
  if (type_a == kBsonDouble)
    return -CompareWithDouble(LoadInteger(type_b, b), LoadNumber<double>(a));
  if (type_b == kBsonDouble)
    return CompareWithDouble(LoadInteger(type_a, a), LoadNumber<double>(b));
  return Order(LoadInteger(type_a, a), LoadInteger(type_b, b));
}

std::optional<int64_t> WholeNumber(uint8_t type, std::string_view value) {
  if (IsInteger(type)) return LoadInteger(type, value);
  double number = 0;
  if (type == kBsonDouble) {
    number = LoadNumber<double>(value);
  } else {
    const Exact exact = ExactOfDecimal(value);
    if (exact.kind != Exact::Kind::kFinite) return std::nullopt;
    if (exact.Sign() == 0) return 0;
    // What was rounded here, the comparison below sees.
    number = exact.Sign() * exact.whole.ToDouble() * std::pow(10.0, exact.tens);
    number = std::nearbyint(number);
  }
  if (!(number >= -kInt64End && number < kInt64End)) return std::nullopt;
  const auto whole = static_cast<int64_t>(number);
  std::string bytes;
  AppendNumber(whole, bytes);
  if (CompareNumbers(type, value, kBsonInt64, bytes) != 0) return std::nullopt;
  return whole;
}

}  // namespace strata::document
