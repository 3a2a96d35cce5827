// The payload of a status is a row of names and values,
// "reason=VERSION_CONFLICT&metadata.actual=4", because whoever prints a status sees it.
#include "strata/client/error.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "absl/strings/cord.h"
#include "clients/cpp/error_status.h"

namespace strata::client {
namespace {

constexpr std::pair<Reason, std::string_view> kReasonNames[] = {
#define REASON(enumerator, name, code, retry_delay_ms) {Reason::enumerator, name},
#include "strata/error_reasons.def"
#undef REASON
};

constexpr char kPayload[] = "strata.client.Error";
constexpr std::string_view kReason = "reason";
constexpr std::string_view kRequestId = "request_id";
constexpr std::string_view kUnknown = "outcome_unknown";
constexpr std::string_view kRetryDelay = "retry_delay_ms";
constexpr std::string_view kMetadata = "metadata.";

// What ends a name or a value, and what a terminal obeys.
bool IsEscaped(char c) { return c == '%' || c == '&' || c == '=' || c < ' ' || c > '~'; }

void AppendEscaped(std::string_view text, std::string& row) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  for (const char c : text) {
    if (!IsEscaped(c)) {
      row += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    row += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
}

void Append(std::string_view name, std::string_view value, std::string& row) {
  if (!row.empty()) row += '&';
  AppendEscaped(name, row);
  row += '=';
  AppendEscaped(value, row);
}

std::string Unescaped(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    if (text[i] == '%' && text.size() - i > 2 &&
        std::from_chars(&text[i + 1], &text[i + 1] + 2, byte, 16).ec == std::errc()) {
      plain += static_cast<char>(byte);
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// False: the row is at its end.
bool Take(std::string_view& row, std::string& name, std::string& value) {
  if (row.empty()) return false;
  const std::string_view pair = row.substr(0, row.find('&'));
  row.remove_prefix(std::min(row.size(), pair.size() + 1));
  const size_t middle = std::min(pair.find('='), pair.size());
  name = Unescaped(pair.substr(0, middle));
  value = Unescaped(pair.substr(std::min(pair.size(), middle + 1)));
  return true;
}

std::string CodeText(absl::StatusCode code) { return absl::StatusCodeToString(code); }

}  // namespace

absl::Status StatusOf(const Error& error) {
  absl::Status status(error.code, error.message);
  std::string row;
  if (!error.reason_name.empty()) Append(kReason, error.reason_name, row);
  if (!error.request_id.empty()) Append(kRequestId, error.request_id, row);
  if (error.outcome_unknown) Append(kUnknown, "true", row);
  if (error.retry_delay.has_value()) {
    Append(kRetryDelay, std::to_string(absl::ToInt64Milliseconds(*error.retry_delay)), row);
  }
  for (const auto& [name, value] : error.metadata)
    Append(std::string(kMetadata) + name, value, row);
  status.SetPayload(kPayload, absl::Cord(row));
  return status;
}

Error ErrorOf(const absl::Status& status) {
  Error error;
  error.code = status.code();
  error.message = std::string(status.message());
  const auto payload = status.GetPayload(kPayload);
  if (!payload.has_value()) return error;
  const std::string bytes(*payload);
  std::string_view row = bytes;
  std::string name;
  for (std::string value; Take(row, name, value);) {
    if (name == kReason) error.reason_name = value;
    if (name == kRequestId) error.request_id = value;
    if (name == kUnknown) error.outcome_unknown = true;
    if (name == kRetryDelay) error.retry_delay = absl::Milliseconds(std::stoll(value));
    if (name.starts_with(kMetadata)) error.metadata[name.substr(kMetadata.size())] = value;
  }
  error.reason = ReasonFromName(error.reason_name);
  return error;
}

Reason ReasonOf(const absl::Status& status) {
  return status.ok() ? Reason::kNone : ErrorOf(status).reason;
}

Reason ReasonFromName(std::string_view name) {
  for (const auto& [reason, its_name] : kReasonNames) {
    if (its_name == name) return reason;
  }
  return Reason::kNone;
}

std::string ReasonName(Reason reason) {
  for (const auto& [each, name] : kReasonNames) {
    if (each == reason) return std::string(name);
  }
  return "";
}

std::string Error::ToString() const {
  std::string text = (reason_name.empty() ? CodeText(code) : reason_name) + ": " + message;
  std::string_view separator = " (";
  for (const auto& [name, value] : metadata) {
    text.append(separator).append(name).append("=").append(value);
    separator = " ";
  }
  if (!metadata.empty()) text += ")";
  return text;
}

absl::Status RefusedContent(const std::string& path, const std::string& problem) {
  Error error;
  error.code = absl::StatusCode::kInvalidArgument;
  error.reason_name = ReasonName(Reason::kInvalidContent);
  error.message = (path.empty() ? "the document" : "member \"" + path + "\"") + " " + problem;
  error.metadata = {{"field", "content"}, {"path", path}, {"problem", problem}};
  return StatusOf(error);
}

absl::Status TooLargeContent(const std::string& path) {
  Error error;
  error.code = absl::StatusCode::kResourceExhausted;
  error.reason_name = ReasonName(Reason::kDocumentTooLarge);
  error.message = "the document has more than 2 MiB";
  error.metadata = {{"limit", "2097152"}, {"path", path}};
  return StatusOf(error);
}

absl::Status RefusedField(const std::string& field, const std::string& problem) {
  Error error;
  error.code = absl::StatusCode::kInvalidArgument;
  error.reason_name = ReasonName(Reason::kInvalidField);
  error.message = field + " " + problem;
  error.metadata = {{"field", field}};
  return StatusOf(error);
}

}  // namespace strata::client
