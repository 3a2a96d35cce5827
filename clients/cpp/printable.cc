// Terminals obey some characters; this file knows which, and how wide the others are.
#include "clients/cpp/printable.h"

#include <cstdint>
#include <cstdio>

namespace strata::client {
CodePoint FirstCodePoint(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return {};
  uint32_t value = lead & (0xFFU >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3F);
  }
  return {value, length};
}

bool IsObeyed(uint32_t code_point) {
  return code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0) || code_point == 0x061C ||
         code_point == 0x200E || code_point == 0x200F ||
         (code_point >= 0x202A && code_point <= 0x202E) ||
         (code_point >= 0x2066 && code_point <= 0x2069);
}

namespace {

struct CodePoints {
  uint32_t first;
  uint32_t last;
};

constexpr CodePoints kWide[] = {{0x1100, 0x115F},   {0x2E80, 0x303E},  {0x3041, 0xA4CF},
                                {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},  {0xFE30, 0xFE6F},
                                {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},  {0x1F300, 0x1F64F},
                                {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};
constexpr CodePoints kCombining[] = {
    {0x0300, 0x036F}, {0x200B, 0x200F}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}};

template <size_t n>
bool InOneOf(const CodePoints (&ranges)[n], uint32_t value) {
  for (const CodePoints& range : ranges) {
    if (value >= range.first && value <= range.last) return true;
  }
  return false;
}

void AppendEscapes(std::string_view bytes, std::string& out) {
  for (const char c : bytes) {
    char escape[8];
    std::snprintf(escape, sizeof escape, "\\x%02x", static_cast<unsigned char>(c));
    out += escape;
  }
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint code = FirstCodePoint(text);
    const std::string_view bytes = text.substr(0, code.length == 0 ? 1 : code.length);
    if (code.value == '\n' || code.value == '\t' || code.value == '\r') {
      out += ' ';
    } else if (code.length == 0 || IsObeyed(code.value)) {
      AppendEscapes(bytes, out);
    } else {
      out += bytes;
    }
    text.remove_prefix(bytes.size());
  }
  return out;
}

size_t DisplayWidth(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) {
    const CodePoint code = FirstCodePoint(text);
    if (!InOneOf(kCombining, code.value)) width += InOneOf(kWide, code.value) ? 2 : 1;
    text.remove_prefix(code.length == 0 ? 1 : code.length);
  }
  return width;
}

}  // namespace strata::client
