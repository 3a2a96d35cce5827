// Errors with a reason: what went wrong in a word that programs can rely on.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace strata {

// What went wrong, as error_reason.proto lists it. The reason fixes the canonical code (but see
// Error::As).
enum class ErrorReason {
#define REASON(enumerator, name, code, retry_delay_ms) enumerator,
#include "strata/error_reasons.def"
#undef REASON
};

// The reason's name on the wire, such as "VERSION_CONFLICT".
std::string_view ReasonName(ErrorReason reason);

absl::StatusCode ReasonCode(ErrorReason reason);

// When the same call may succeed, as far as the reason alone says it. Unset: it does not.
std::optional<std::chrono::microseconds> ReasonRetryDelay(ErrorReason reason);

// All reasons, in the order of the proto.
const std::vector<ErrorReason>& AllErrorReasons();

// Facts that programs may read from an error, such as {"actual", "7"}: no document content, no
// driver text.
using ErrorMetadata = std::vector<std::pair<std::string, std::string>>;

// Builds an absl::Status that carries a reason and metadata:
//
//   return Error(ErrorReason::kVersionConflict, "...").With("expected", 3).With("actual", 4);
//
// The metadata key "field" names the request's field that is at fault, as a proto path
// ("patch.operations[2].path").
class Error {
 public:
  Error(ErrorReason reason, std::string_view message);
  // What `status` says, to add to it. REQUIRES: an Error made it.
  static Error Of(const absl::Status& status);

  Error& Without(std::string_view key) &;
  Error& With(std::string_view key, std::string_view value) &;
  Error& With(std::string_view key, int64_t value) &;
  template <typename Value>
  Error&& With(std::string_view key, Value value) && {
    With(key, value);
    return std::move(*this);
  }

  // Another code than the reason's, for a call to which the same fact means something else.
  Error&& As(absl::StatusCode code) && {
    code_ = code;
    return std::move(*this);
  }

  // When it makes sense to try again, where that is known better than the reason tells.
  Error&& RetryAfter(std::chrono::microseconds time) && {
    retry_after_ = time;
    return std::move(*this);
  }

  absl::Status ToStatus() const;
  operator absl::Status() const { return ToStatus(); }  // NOLINT(google-explicit-constructor)
  template <typename T>
  operator absl::StatusOr<T>() const {  // NOLINT(google-explicit-constructor)
    return ToStatus();
  }

 private:
  ErrorReason reason_;
  absl::StatusCode code_;
  std::string message_;
  ErrorMetadata metadata_;
  std::optional<std::chrono::microseconds> retry_after_;
};

// The reason and metadata of a status made by Error; nothing and empty for any other status.
std::optional<ErrorReason> ReasonOf(const absl::Status& status);
ErrorMetadata MetadataOf(const absl::Status& status);

// The value of one metadata key, if the status has it.
std::optional<std::string> MetadataOf(const absl::Status& status, std::string_view key);

// The same error, whose field is `field`, or inside it if the error names one already. A status
// that no Error made is left as it is.
absl::Status InField(const absl::Status& status, std::string_view field);

// DRAINING: the server ends, and begins nothing new.
absl::Status Draining();

// As Error::RetryAfter said.
std::optional<std::chrono::microseconds> RetryAfterOf(const absl::Status& status);

}  // namespace strata
