#include "schemas/versioning/document_errors.h"

#include <string>

#include "schemas/base/error.h"
#include "schemas/versioning/write_path.h"

namespace strata::versioning {
namespace {

Error OfDocument(ErrorReason reason, std::string_view message, const DocumentName& name) {
  Error error(reason, message);
  error.With("collection", name.collection).With("id", name.id);
  return error;
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

absl::Status NotLive(const DocumentName& name, const StoredVersion* current) {
  if (current == nullptr) return DocumentNotFound(name);
  return DocumentDeleted(name, current->header.version);
}

}  // namespace strata::versioning
