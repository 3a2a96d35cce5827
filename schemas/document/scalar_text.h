// The text forms of values that JSON has no type for: base64, hex digits, UUIDs, dates, numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace strata::document {

// Base64 of RFC 4648, section 4. Decoding takes exactly what encoding gives: padded, no spaces.
void AppendBase64(std::string_view bytes, std::string& out);
std::optional<std::string> DecodeBase64(std::string_view text);

// Two lower-case digits a byte; decoding takes both cases.
void AppendHex(std::string_view bytes, std::string& out);
std::optional<std::string> DecodeHex(std::string_view text);

// 8-4-4-4-12 hex digits, as 16 bytes.
std::optional<std::string> DecodeUuid(std::string_view text);

// "2026-01-31T12:00:00Z" or with milliseconds ".250Z". Reading also takes an offset ("+01:00",
// "+0100"), one to three digits behind the point, and any year of four digits.
inline constexpr int64_t kDateTextMin = 0;                // 1970-01-01T00:00:00Z
inline constexpr int64_t kDateTextMax = 253402300799999;  // 9999-12-31T23:59:59.999Z
void AppendDate(int64_t unix_millis, std::string& out);
std::optional<int64_t> ParseDate(std::string_view text);

// Whole numbers: digits behind an optional "-", within the type's range.
template <typename Integer>
std::optional<Integer> ParseInteger(std::string_view text);
extern template std::optional<int32_t> ParseInteger(std::string_view text);
extern template std::optional<int64_t> ParseInteger(std::string_view text);

// The shortest text that reads back as the same double; whole ones end in ".0" or have an exponent.
void AppendDouble(double number, std::string& out);
// Nothing for NaN, infinity and what a double cannot hold.
std::optional<double> ParseDouble(std::string_view text);

// Decimal128 in 16 BSON bytes. Nothing for NaN, infinity and what cannot be held exactly.
std::string DecimalText(std::string_view bytes);
std::optional<std::string> ParseDecimal(std::string_view text);

}  // namespace strata::document
