#include "schemas/base/error.h"

#include "absl/strings/cord.h"
#include "schemas/base/strings.h"

namespace strata {
namespace {

constexpr char kPayloadUrl[] = "strata/error";
constexpr char kRetryAfterUrl[] = "strata/retry_after";  // microseconds, as a decimal number

struct ReasonRow {
  std::string_view name;
  absl::StatusCode code;
  std::chrono::milliseconds retry_delay;
};

constexpr ReasonRow kReasons[] = {
#define REASON(enumerator, name, code, retry_delay_ms) \
  {name, absl::StatusCode::code, std::chrono::milliseconds(retry_delay_ms)},
#include "strata/error_reasons.def"
#undef REASON
};

// What a status carries besides its message: the reason's number, then keys and values.
//
//   payload = number ":" { length ":" bytes }
void AppendPart(std::string& out, std::string_view part) {
  out += std::to_string(part.size());
  out += ':';
  out += part;
}

std::optional<size_t> TakeNumber(std::string_view& in) {
  size_t number = 0;
  size_t i = 0;
  for (; i < in.size() && in[i] != ':'; ++i)
    number = number * 10 + static_cast<size_t>(in[i] - '0');
  if (i == in.size()) return std::nullopt;
  in.remove_prefix(i + 1);
  return number;
}

std::optional<std::string> TakePart(std::string_view& in) {
  const std::optional<size_t> size = TakeNumber(in);
  if (!size || *size > in.size()) return std::nullopt;
  std::string part(in.substr(0, *size));
  in.remove_prefix(*size);
  return part;
}

}  // namespace

std::string_view ReasonName(ErrorReason reason) {
  return kReasons[static_cast<size_t>(reason)].name;
}

absl::StatusCode ReasonCode(ErrorReason reason) {
  return kReasons[static_cast<size_t>(reason)].code;
}

std::optional<std::chrono::microseconds> ReasonRetryDelay(ErrorReason reason) {
  const std::chrono::milliseconds delay = kReasons[static_cast<size_t>(reason)].retry_delay;
  if (delay.count() == 0) return std::nullopt;
  return delay;
}

const std::vector<ErrorReason>& AllErrorReasons() {
  static const auto* const all = new std::vector<ErrorReason>{
#define REASON(enumerator, name, code, retry_delay_ms) ErrorReason::enumerator,
#include "strata/error_reasons.def"
#undef REASON
  };
  return *all;
}

Error::Error(ErrorReason reason, std::string_view message)
    : reason_(reason), code_(ReasonCode(reason)), message_(message) {}

Error Error::Of(const absl::Status& status) {
  Error error(*ReasonOf(status), ToStd(status.message()));
  error.code_ = status.code();
  error.metadata_ = MetadataOf(status);
  error.retry_after_ = RetryAfterOf(status);
  return error;
}

Error& Error::Without(std::string_view key) & {
  std::erase_if(metadata_, [&](const auto& fact) { return fact.first == key; });
  return *this;
}

Error& Error::With(std::string_view key, std::string_view value) & {
  metadata_.emplace_back(key, value);
  return *this;
}

Error& Error::With(std::string_view key, int64_t value) & {
  return With(key, std::to_string(value));
}

absl::Status Error::ToStatus() const {
  absl::Status status(code_, ToAbsl(message_));
  std::string payload = std::to_string(static_cast<size_t>(reason_)) + ':';
  for (const auto& [key, value] : metadata_) {
    AppendPart(payload, key);
    AppendPart(payload, value);
  }
  status.SetPayload(kPayloadUrl, absl::Cord(payload));
  if (retry_after_) {
    status.SetPayload(kRetryAfterUrl, absl::Cord(std::to_string(retry_after_->count())));
  }
  return status;
}

std::optional<ErrorReason> ReasonOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayloadUrl);
  if (!payload) return std::nullopt;
  const std::string bytes(*payload);
  std::string_view in = bytes;
  const std::optional<size_t> number = TakeNumber(in);
  if (!number || *number >= std::size(kReasons)) return std::nullopt;
  return static_cast<ErrorReason>(*number);
}

ErrorMetadata MetadataOf(const absl::Status& status) {
  ErrorMetadata metadata;
  const auto payload = status.GetPayload(kPayloadUrl);
  if (!payload) return metadata;
  const std::string bytes(*payload);
  std::string_view in = bytes;
  if (!TakeNumber(in)) return metadata;
  while (!in.empty()) {
    std::optional<std::string> key = TakePart(in);
    std::optional<std::string> value = TakePart(in);
    if (!key || !value) break;
    metadata.emplace_back(*std::move(key), *std::move(value));
  }
  return metadata;
}

std::optional<std::string> MetadataOf(const absl::Status& status, std::string_view key) {
  for (auto& [name, value] : MetadataOf(status)) {
    if (name == key) return std::move(value);
  }
  return std::nullopt;
}

absl::Status InField(const absl::Status& status, std::string_view field) {
  if (!ReasonOf(status)) return status;
  const std::optional<std::string> inner = MetadataOf(status, "field");
  std::string whole(field);
  if (inner) whole.append(".").append(*inner);
  Error error = Error::Of(status);
  error.Without("field").With("field", whole);
  return error;
}

absl::Status Draining() { return Error(ErrorReason::kDraining, "server is draining"); }

std::optional<std::chrono::microseconds> RetryAfterOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryAfterUrl);
  if (!payload) return std::nullopt;
  return std::chrono::microseconds(std::stoll(std::string(*payload)));
}

}  // namespace strata
