#include "schemas/lease/lease_requests.h"

#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "schemas/base/error.h"
#include "schemas/base/names.h"
#include "schemas/base/status_macros.h"

namespace strata::lease {
namespace {

using std::chrono::microseconds;

absl::Status Invalid(std::string_view field, const std::string& problem) {
  return Error(ErrorReason::kInvalidField, std::string(field) + " " + problem).With("field", field);
}

absl::Status CheckDuration(std::string_view field, microseconds value, microseconds least,
                           microseconds most) {
  if (value >= least && value <= most) return absl::OkStatus();
  const auto text = [](microseconds time) { return absl::FormatDuration(absl::FromChrono(time)); };
  const microseconds limit = value < least ? least : most;
  return Error(ErrorReason::kInvalidField, std::string(field) + " is " + text(value) +
                                               ", but has to be " + text(least) + " to " +
                                               text(most))
      .With("field", field)
      .With("limit", text(limit));
}

absl::Status CheckLength(const std::string& subject, std::string_view text, size_t most) {
  if (text.size() <= most) return absl::OkStatus();
  return Error(ErrorReason::kInvalidField, subject + " has " + std::to_string(text.size()) +
                                               " bytes, at most " + std::to_string(most) +
                                               " are allowed")
      .With("field", "metadata")
      .With("limit", static_cast<int64_t>(most));
}

absl::Status CheckMetadata(const Metadata& metadata) {
  if (metadata.size() > kMetadataMax) {
    return Error(ErrorReason::kInvalidField, "metadata has " + std::to_string(metadata.size()) +
                                                 " entries, at most " +
                                                 std::to_string(kMetadataMax) + " are allowed")
        .With("field", "metadata")
        .With("limit", static_cast<int64_t>(kMetadataMax));
  }
  for (const auto& [name, value] : metadata) {
    if (name.empty()) return Invalid("metadata", "has an entry without a name");
    RETURN_IF_ERROR(CheckLength("a name in metadata", name, kMetadataNameBytesMax));
    RETURN_IF_ERROR(CheckLength("a value in metadata", value, kMetadataValueBytesMax));
    // A member's name in a record ends at a zero byte.
    if (name.find('\0') != std::string::npos || value.find('\0') != std::string::npos) {
      return Invalid("metadata", "holds a zero byte");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckToken(store::Stamp token) {
  if (token >= 1) return absl::OkStatus();
  return Invalid("token", "is required: the token of the lease's Acquire, from 1");
}

}  // namespace

absl::Status CheckAcquire(const AcquireRequest& request) {
  RETURN_IF_ERROR(ValidateName("name", request.name));
  RETURN_IF_ERROR(ValidateName("holder", request.holder));
  RETURN_IF_ERROR(CheckDuration("ttl", request.ttl, kTtlMin, kTtlMax));
  RETURN_IF_ERROR(CheckDuration("wait", request.wait, microseconds(0), kWaitMax));
  return CheckMetadata(request.metadata);
}

absl::Status CheckRenew(const RenewRequest& request) {
  RETURN_IF_ERROR(ValidateName("name", request.name));
  RETURN_IF_ERROR(CheckToken(request.token));
  if (request.ttl) RETURN_IF_ERROR(CheckDuration("ttl", *request.ttl, kTtlMin, kTtlMax));
  if (request.position && *request.position < 1) {
    return Invalid("position",
                   "is " + std::to_string(*request.position) + ", but commits are numbered from 1");
  }
  return absl::OkStatus();
}

absl::Status CheckRelease(const ReleaseRequest& request) {
  RETURN_IF_ERROR(ValidateName("name", request.name));
  return CheckToken(request.token);
}

}  // namespace strata::lease
