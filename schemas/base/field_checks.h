// What is wrong with a field of a request: INVALID_FIELD, in one wording for all requests. The text
// begins with the field, the metadata "field" names it, and "limit" is the bound that was passed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace strata {

// "messages[2]".
std::string Element(std::string_view list, size_t index);
// "message.delay"; inside an empty field, which is the request itself, "delay".
std::string Inside(std::string_view field, std::string_view name);

// The same refusal of an element of `list`, or of `field` inside it: so "field" names it, and
// "index" too.
absl::Status InElement(const absl::Status& refusal, std::string_view list, size_t index,
                       std::string_view field = {});

absl::Status FieldError(std::string_view field, std::string_view problem);

// Both bounds are allowed.
absl::Status CheckRange(std::string_view field, int64_t value, int64_t least, int64_t most);
absl::Status CheckRange(std::string_view field, std::chrono::microseconds value,
                        std::chrono::microseconds least, std::chrono::microseconds most);
// `advice` follows the problem.
absl::Status CheckLeast(std::string_view field, int64_t value, int64_t least,
                        std::string_view advice = {});
absl::Status CheckCount(std::string_view field, size_t count, size_t most,
                        std::string_view what = "elements");
// `subject` is the text in the message, unless that is the field itself.
absl::Status CheckBytes(std::string_view field, size_t bytes, size_t most,
                        std::string_view subject = {});
// The same, and the text is UTF-8 without zero bytes.
absl::Status CheckText(std::string_view field, std::string_view text, size_t bytes_max,
                       std::string_view subject = {});

}  // namespace strata
