// The bridge between std::string_view and absl::string_view, which are two types in Debian's
// Abseil.
#pragma once

#include <string_view>

#include "absl/strings/string_view.h"

namespace strata {

inline absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view ToStd(absl::string_view text) { return {text.data(), text.size()}; }

}  // namespace strata
