// The text forms of values that JSON has no type for: base64, hex digits, UUIDs, dates, numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace strata::document {

// Base64 of RFC 4648, section 4. Decoding takes exactly what encoding gives: padded, no spaces.
std::string Base64Text(std::string_view bytes);
std::optional<std::string> ParseBase64(std::string_view text);

// Two lower-case digits a byte; reading takes both cases.
std::string HexText(std::string_view bytes);
std::optional<std::string> ParseHex(std::string_view text);

// 8-4-4-4-12 hex digits, as 16 bytes.
std::optional<std::string> ParseUuid(std::string_view text);

// "2026-01-31T12:00:00Z" or with milliseconds ".250Z". Reading takes RFC 3339 to the millisecond:
// seconds and zone are required, "T" and "Z" may be small letters, and there are no leap seconds;
// an offset may lack its colon ("+0100"), as some of MongoDB's tools write it.
inline constexpr int64_t kDateTextMin = 0;                // 1970-01-01T00:00:00Z
inline constexpr int64_t kDateTextMax = 253402300799999;  // 9999-12-31T23:59:59.999Z
// REQUIRES: kDateTextMin <= unix_millis <= kDateTextMax.
std::string DateText(int64_t unix_millis);
std::optional<int64_t> ParseDate(std::string_view text);

// Whether these are options of a BSON regular expression: letters of "ilmsux", each once and in
// this order (bsonspec.org). Drivers sort others or refuse them, so they would not come back as
// they were.
bool AreRegexOptions(std::string_view text);

// Whole numbers: digits after an optional "-", within the type's range.
template <typename Integer>
std::optional<Integer> ParseInteger(std::string_view text);
extern template std::optional<int32_t> ParseInteger(std::string_view text);
extern template std::optional<int64_t> ParseInteger(std::string_view text);

// The shortest text that reads back as the same double; whole ones end in ".0" or have an exponent.
void AppendDouble(double number, std::string& out);
// The nearest double. Nothing for NaN, infinity and what is too large; what is too small is zero.
std::optional<double> ParseDouble(std::string_view text);

}  // namespace strata::document
