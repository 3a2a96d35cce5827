// Text from elsewhere made safe for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace strata::client {

// `text` on one line: tabs and line ends become blanks, other control characters (of ASCII and of
// Unicode's C1 block, which terminals obey too) become "\x1b"-like escapes, and so do bytes that
// are not UTF-8.
std::string Printable(std::string_view text);

// How many columns `text`, which is printable, takes on a terminal: one for each code point, two
// for the wide ones of East Asia and emoji, none for combining marks.
size_t DisplayWidth(std::string_view text);

}  // namespace strata::client
