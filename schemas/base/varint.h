// Numbers in as few bytes as they need.
//
//   varint = 1 to 9 bytes    7 bits each, least significant first, the top bit set on all but the
//                            last: an int64 from 0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace strata {

// REQUIRES: number >= 0.
inline void AppendVarint(int64_t number, std::string& out) {
  auto rest = static_cast<uint64_t>(number);
  while (rest >= 0x80) {
    out += static_cast<char>(rest | 0x80);
    rest >>= 7;
  }
  out += static_cast<char>(rest);
}

// Takes one number from the front; nothing if there is none, and then `in` is of no use.
inline std::optional<int64_t> TakeVarint(std::string_view& in) {
  constexpr int kBytesMax = 9;  // 63 bits
  uint64_t number = 0;
  for (int i = 0; i < kBytesMax && !in.empty(); ++i) {
    const auto byte = static_cast<uint8_t>(in.front());
    in.remove_prefix(1);
    number |= uint64_t{byte & 0x7Fu} << (7 * i);
    if (byte < 0x80) return static_cast<int64_t>(number);
  }
  return std::nullopt;
}

}  // namespace strata
