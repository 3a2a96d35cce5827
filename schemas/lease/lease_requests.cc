#include "schemas/lease/lease_requests.h"

#include <string>
#include <string_view>

#include "schemas/base/field_checks.h"
#include "schemas/base/names.h"
#include "schemas/base/status_macros.h"

namespace strata::lease {
namespace {

using std::chrono::microseconds;

absl::Status CheckMetadata(const Metadata& metadata) {
  const std::string_view field = "metadata";
  RETURN_IF_ERROR(CheckCount(field, metadata.size(), kMetadataMax, "entries"));
  for (const auto& [name, value] : metadata) {
    if (name.empty()) return FieldError(field, "has an entry without a name");
    RETURN_IF_ERROR(CheckBytes(field, name.size(), kMetadataNameBytesMax, "a name in metadata"));
    RETURN_IF_ERROR(CheckBytes(field, value.size(), kMetadataValueBytesMax, "a value in metadata"));
    // A member's name in a record ends at a zero byte.
    if (name.find('\0') != std::string::npos || value.find('\0') != std::string::npos) {
      return FieldError(field, "holds a zero byte");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckToken(store::Stamp token) {
  if (token >= 1) return absl::OkStatus();
  return FieldError("token", "is required: the token of the lease's Acquire, from 1");
}

}  // namespace

absl::Status CheckAcquire(const AcquireRequest& request) {
  RETURN_IF_ERROR(ValidateName("name", request.name));
  RETURN_IF_ERROR(ValidateName("holder", request.holder));
  RETURN_IF_ERROR(CheckRange("ttl", request.ttl, kTtlMin, kTtlMax));
  RETURN_IF_ERROR(CheckRange("wait", request.wait, microseconds(0), kWaitMax));
  return CheckMetadata(request.metadata);
}

absl::Status CheckRenew(const RenewRequest& request) {
  RETURN_IF_ERROR(ValidateName("name", request.name));
  RETURN_IF_ERROR(CheckToken(request.token));
  if (request.ttl) RETURN_IF_ERROR(CheckRange("ttl", *request.ttl, kTtlMin, kTtlMax));
  if (request.position && *request.position < 1) {
    return FieldError("position", "is " + std::to_string(*request.position) +
                                      ", but commits are numbered from 1");
  }
  return absl::OkStatus();
}

absl::Status CheckRelease(const ReleaseRequest& request) {
  RETURN_IF_ERROR(ValidateName("name", request.name));
  return CheckToken(request.token);
}

}  // namespace strata::lease
