// Checks that text is UTF-8, eight plain characters at a time.
#include "schemas/base/utf8.h"

#include <cstdint>
#include <cstring>

namespace strata {
namespace {

bool IsContinuation(uint8_t byte) { return (byte & 0xC0) == 0x80; }

// The length of the character at `at`, which does not begin with an ASCII byte; 0 if it is none.
size_t CharacterSize(const uint8_t* at, size_t left) {
  const uint8_t first = at[0];
  if (first < 0xC2 || left < 2 || !IsContinuation(at[1])) return 0;
  if (first < 0xE0) return 2;
  if (left < 3 || !IsContinuation(at[2])) return 0;
  if (first < 0xF0) {
    const bool overlong = first == 0xE0 && at[1] < 0xA0;
    const bool surrogate = first == 0xED && at[1] >= 0xA0;
    return overlong || surrogate ? 0 : 3;
  }
  if (first > 0xF4 || left < 4 || !IsContinuation(at[3])) return 0;
  const bool overlong = first == 0xF0 && at[1] < 0x90;
  const bool beyond = first == 0xF4 && at[1] >= 0x90;
  return overlong || beyond ? 0 : 4;
}

}  // namespace

bool IsUtf8(std::string_view text) {
  const auto* at = reinterpret_cast<const uint8_t*>(text.data());
  size_t left = text.size();
  while (left > 0) {
    if (left >= 8) {
      uint64_t eight;
      std::memcpy(&eight, at, sizeof(eight));
      if ((eight & 0x8080808080808080u) == 0) {
        at += 8;
        left -= 8;
        continue;
      }
    }
    size_t size = 1;
    if (*at >= 0x80) {
      size = CharacterSize(at, left);
      if (size == 0) return false;
    }
    at += size;
    left -= size;
  }
  return true;
}

std::string_view CutUtf8(std::string_view text, size_t size_max) {
  if (text.size() <= size_max) return text;
  size_t size = size_max;
  while (size > 0 && IsContinuation(static_cast<uint8_t>(text[size]))) --size;
  return text.substr(0, size);
}

}  // namespace strata
