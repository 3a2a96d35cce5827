#include "tests/client/random_value.h"

#include <cmath>
#include <string>
#include <utility>

namespace strata::client {
namespace {

std::string RandomText(std::mt19937_64& random) {
  static const char* const kPieces[] = {"a",  "Z", "/",  "~",      "é",    "漢", "😀", "$date",
                                        "\"", "",  "\n", "\u00ad", "\x7f", "0",  ".", " "};
  std::string text;
  for (uint64_t i = random() % 5; i > 0; --i) text += kPieces[random() % std::size(kPieces)];
  return text;
}

std::string RandomBytes(std::mt19937_64& random, size_t count) {
  std::string bytes;
  while (bytes.size() < count) bytes += static_cast<char>(random());
  return bytes;
}

double RandomDouble(std::mt19937_64& random) {
  static constexpr double kEdges[] = {0.0, -0.0, 1.0, 0.1, 1e308, 5e-324, 9007199254740993.0};
  if (random() % 3 == 0) return kEdges[random() % std::size(kEdges)];
  const auto bits = static_cast<int64_t>(random());
  const double number =
      std::ldexp(static_cast<double>(bits), static_cast<int>(random() % 200) - 100);
  return std::isfinite(number) ? number : 0.5;
}

Decimal128 RandomDecimal(std::mt19937_64& random) {
  std::string text = random() % 2 == 0 ? "-" : "";
  for (uint64_t i = 1 + random() % 34; i > 0; --i) text += static_cast<char>('0' + random() % 10);
  text += "E" + std::to_string(static_cast<int>(random() % 12000) - 6100);
  return Decimal128::FromText(text).value_or(Decimal128());
}

Value RandomValue(std::mt19937_64& random, int depth) {
  switch (random() % (depth > 1 ? 17 : 15)) {
    case 0:
      return nullptr;
    case 1:
      return random() % 2 == 0;
    case 2:
      return static_cast<int32_t>(random());
    case 3:
      return static_cast<int64_t>(random());
    case 4:
      return static_cast<int64_t>(random() % 100);
    case 5:
      return RandomDouble(random);
    case 6:
      return RandomText(random);
    case 7:
      return Binary{.bytes = RandomBytes(random, random() % 20), .subtype = 0x80};
    case 8:
      return NewUuid();
    case 9:
      return Date{static_cast<int64_t>(random())};
    case 10:
      return RandomDecimal(random);
    case 11: {
      ObjectId id;
      for (uint8_t& byte : id.bytes) byte = static_cast<uint8_t>(random());
      return id;
    }
    case 12:
      return Regex{.pattern = RandomText(random), .options = "i"};
    case 13:
      return Timestamp{static_cast<uint32_t>(random()), static_cast<uint32_t>(random())};
    case 14:
      return random() % 2 == 0 ? Value(MinKey()) : Value(MaxKey());
    case 15: {
      Array array;
      for (uint64_t i = random() % 12; i > 0; --i) array.push_back(RandomValue(random, depth - 1));
      return array;
    }
    default:
      return RandomObject(random, depth - 1);
  }
}

}  // namespace

Value RandomObject(std::mt19937_64& random, int depth) {
  Object object;
  // Numbered, because a document names no member twice.
  for (uint64_t i = random() % 8; i > 0; --i) {
    object.Append(RandomText(random) + std::to_string(i), RandomValue(random, depth));
  }
  return object;
}

}  // namespace strata::client
