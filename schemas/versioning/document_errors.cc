#include "schemas/versioning/document_errors.h"

#include <string>

#include "absl/time/time.h"
#include "schemas/base/error.h"
#include "schemas/versioning/names.h"
#include "schemas/versioning/version.h"

namespace strata::versioning {
namespace {

Error OfDocument(ErrorReason reason, std::string_view message, const DocumentName& name) {
  Error error(reason, message);
  error.With("collection", name.collection).With("id", name.id);
  return error;
}

// "2026-01-31T12:00:00.25Z", without trailing zeros after the point.
std::string TimeText(UnixMicros time) {
  return absl::FormatTime("%E4Y-%m-%dT%H:%M:%E*SZ", absl::FromUnixMicros(time),
                          absl::UTCTimeZone());
}

}  // namespace

absl::Status CollectionNotFound(std::string_view collection) {
  return Error(ErrorReason::kCollectionNotFound, "no such collection")
      .With("collection", collection);
}

absl::Status CollectionExists(std::string_view collection) {
  return Error(ErrorReason::kCollectionExists, "collection exists").With("collection", collection);
}

absl::Status DocumentNotFound(const DocumentName& name) {
  return OfDocument(ErrorReason::kDocumentNotFound, "no such document", name);
}

absl::Status DocumentDeleted(const DocumentName& name, int64_t version) {
  return OfDocument(ErrorReason::kDocumentDeleted,
                    "document was deleted by version " + std::to_string(version), name)
      .With("version", version);
}

absl::Status DocumentExists(const DocumentName& name, int64_t actual) {
  return OfDocument(ErrorReason::kDocumentExists,
                    "document exists at version " + std::to_string(actual), name)
      .With("actual", actual);
}

absl::Status VersionNotFound(const DocumentName& name, int64_t version, int64_t actual) {
  return OfDocument(ErrorReason::kVersionNotFound,
                    "document has no version " + std::to_string(version) + ", its newest is " +
                        std::to_string(actual),
                    name)
      .With("version", version)
      .With("actual", actual);
}

absl::Status NoVersionYet(const DocumentName& name, UnixMicros time, UnixMicros first_time,
                          int64_t actual) {
  return OfDocument(ErrorReason::kVersionNotFound,
                    "document was first written at " + TimeText(first_time) +
                        ", so it has no version at " + TimeText(time),
                    name)
      .With("time", TimeText(time))
      .With("first_time", TimeText(first_time))
      .With("actual", actual);
}

absl::Status NotLive(const DocumentName& name, const StoredVersion* current) {
  if (current == nullptr) return DocumentNotFound(name);
  return DocumentDeleted(name, current->header.version);
}

}  // namespace strata::versioning
