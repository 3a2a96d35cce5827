#include "schemas/base/field_checks.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"
#include "schemas/base/utf8.h"

namespace strata {
namespace {

std::string TextOf(int64_t number) { return std::to_string(number); }
std::string TextOf(std::chrono::microseconds time) {
  return absl::FormatDuration(absl::FromChrono(time));
}

template <typename Value>
absl::Status CheckBounds(std::string_view field, Value value, Value least, Value most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return Error(ErrorReason::kInvalidField,
               absl::StrCat(ToAbsl(field), " is ", TextOf(value), ", but has to be ", TextOf(least),
                            " to ", TextOf(most)))
      .With("field", field)
      .With("limit", TextOf(value < least ? least : most));
}

// "FIELD has 3 bytes, at most 2 are allowed".
absl::Status CheckSize(std::string_view field, std::string_view subject, size_t size, size_t most,
                       std::string_view what) {
  if (size <= most) return absl::OkStatus();
  return Error(ErrorReason::kInvalidField,
               absl::StrCat(ToAbsl(subject.empty() ? field : subject), " has ", size, " ",
                            ToAbsl(what), ", at most ", most, " are allowed"))
      .With("field", field)
      .With("limit", static_cast<int64_t>(most));
}

}  // namespace

std::string Element(std::string_view list, size_t index) {
  return absl::StrCat(ToAbsl(list), "[", index, "]");
}

std::string Inside(std::string_view field, std::string_view name) {
  return absl::StrCat(ToAbsl(field), field.empty() ? "" : ".", ToAbsl(name));
}

absl::Status InElement(const absl::Status& refusal, std::string_view list, size_t index,
                       std::string_view field) {
  if (!ReasonOf(refusal)) return refusal;
  std::string whole = Element(list, index);
  if (!field.empty()) whole = Inside(whole, field);
  return Error::Of(InField(refusal, whole)).With("index", static_cast<int64_t>(index));
}

absl::Status FieldError(std::string_view field, std::string_view problem) {
  return Error(ErrorReason::kInvalidField, absl::StrCat(ToAbsl(field), " ", ToAbsl(problem)))
      .With("field", field);
}

absl::Status CheckRange(std::string_view field, int64_t value, int64_t least, int64_t most) {
  return CheckBounds(field, value, least, most);
}

absl::Status CheckRange(std::string_view field, std::chrono::microseconds value,
                        std::chrono::microseconds least, std::chrono::microseconds most) {
  return CheckBounds(field, value, least, most);
}

absl::Status CheckLeast(std::string_view field, int64_t value, int64_t least,
                        std::string_view advice) {
  if (value >= least) return absl::OkStatus();
  return Error(ErrorReason::kInvalidField, absl::StrCat(ToAbsl(field), " is ", value, ", at least ",
                                                        least, " is required", ToAbsl(advice)))
      .With("field", field)
      .With("limit", least);
}

absl::Status CheckCount(std::string_view field, size_t count, size_t most, std::string_view what) {
  return CheckSize(field, field, count, most, what);
}

absl::Status CheckBytes(std::string_view field, size_t bytes, size_t most,
                        std::string_view subject) {
  return CheckSize(field, subject, bytes, most, "bytes");
}

absl::Status CheckText(std::string_view field, std::string_view text, size_t bytes_max,
                       std::string_view subject) {
  RETURN_IF_ERROR(CheckBytes(field, text.size(), bytes_max, subject));
  if (IsUtf8(text) && text.find('\0') == text.npos) return absl::OkStatus();
  return Error(ErrorReason::kInvalidField, absl::StrCat(ToAbsl(subject.empty() ? field : subject),
                                                        " is not UTF-8, or holds a zero byte"))
      .With("field", field);
}

}  // namespace strata
