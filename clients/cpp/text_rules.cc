#include "clients/cpp/text_rules.h"

namespace strata::client {

bool IsValidUtf8(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  for (size_t i = 0; i < text.size();) {
    const unsigned lead = byte(i);
    if (lead < 0x80) {
      ++i;
      continue;
    }
    const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || text.size() - i < length) return false;
    // The second byte rules out what has a shorter form, surrogates, and what is past U+10FFFF.
    const unsigned least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const unsigned most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (byte(i + 1) < least || byte(i + 1) > most) return false;
    for (size_t j = 2; j < length; ++j) {
      if ((byte(i + j) & 0xC0) != 0x80) return false;
    }
    i += length;
  }
  return true;
}

void AppendSegment(std::string_view name, std::string& pointer) {
  pointer += '/';
  for (const char c : name) {
    if (c == '~') {
      pointer += "~0";
    } else if (c == '/') {
      pointer += "~1";
    } else {
      pointer += c;
    }
  }
}

}  // namespace strata::client
