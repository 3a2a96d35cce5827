// Text from elsewhere made safe for a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace strata::client {

// The first character of a text that is not empty.
struct CodePoint {
  uint32_t value = 0;
  size_t length = 0;  // of its bytes; 0: they are not UTF-8
};
CodePoint FirstCodePoint(std::string_view text);

// Whether a terminal would act on it (control characters of ASCII and of Unicode's C1 block), or
// lines would change their direction (bidirectional marks and overrides can make one text look like
// another).
bool IsObeyed(uint32_t code_point);

// `text` on one line: tabs and line ends become blanks, other characters that terminals obey become
// "\x1b"-like escapes, and so do bytes that are not UTF-8.
std::string Printable(std::string_view text);

// How many columns `text`, which is printable, takes on a terminal: one for each code point, two
// for the wide ones of East Asia and emoji, none for combining marks.
size_t DisplayWidth(std::string_view text);

}  // namespace strata::client
