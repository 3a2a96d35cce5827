// Checks that text is UTF-8.
#pragma once

#include <string_view>

namespace strata {

// Whether `text` is UTF-8 as Unicode defines it: shortest forms only, no surrogates, nothing beyond
// U+10FFFF. Zero bytes are text.
bool IsUtf8(std::string_view text);

// The beginning of `text` of at most `size_max` bytes that ends between characters.
// REQUIRES: IsUtf8(text).
std::string_view CutUtf8(std::string_view text, size_t size_max);

}  // namespace strata
