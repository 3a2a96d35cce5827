#include "schemas/versioning/document_errors.h"

#include <string>

#include "absl/time/time.h"
#include "schemas/base/error.h"
#include "schemas/base/field_checks.h"
#include "schemas/base/names.h"
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

absl::Status NoVersionYetAt(const DocumentName& name, store::CommitPosition position,
                            store::CommitPosition first_position, int64_t actual) {
  return OfDocument(ErrorReason::kVersionNotFound,
                    "document was first written at position " + std::to_string(first_position) +
                        ", so it has no version at position " + std::to_string(position),
                    name)
      .With("position", position)
      .With("first_position", first_position)
      .With("actual", actual);
}

absl::Status PositionUnknown(std::string_view field, store::CommitPosition position,
                             store::CommitPosition last) {
  return Error(ErrorReason::kPositionUnknown, "position " + std::to_string(position) +
                                                  " is after the last commit, " +
                                                  std::to_string(last))
      .With("field", field)
      .With("position", position)
      .With("last", last);
}

absl::Status PositionTrimmed(std::string_view field, store::CommitPosition position,
                             store::CommitPosition oldest) {
  return Error(ErrorReason::kPositionTrimmed, "position " + std::to_string(position) +
                                                  " is before " + std::to_string(oldest) +
                                                  ", where the kept ledger begins")
      .With("field", field)
      .With("position", position)
      .With("oldest", oldest);
}

bool IsCorrupt(const absl::Status& status) {
  return ReasonOf(status) == ErrorReason::kRecordCorrupt;
}

absl::Status NotLive(const DocumentName& name, const StoredVersion* current) {
  if (current == nullptr) return DocumentNotFound(name);
  return DocumentDeleted(name, current->header.version);
}

absl::Status VersionConflict(const DocumentName& name, std::string_view expected, int64_t actual) {
  return Error(ErrorReason::kVersionConflict,
               "version is " + std::to_string(actual) + ", not " + std::string(expected))
      .With("collection", name.collection)
      .With("id", name.id)
      .With("expected", expected)
      .With("actual", actual);
}

absl::Status FilterNotMatched(const DocumentName& name, const StoredVersion* current) {
  std::string message = "there is no document for the filter to match";
  if (current != nullptr) {
    message = "version " + std::to_string(current->header.version) +
              (current->deleted() ? " is a deletion, which no filter matches"
                                  : " does not match the precondition's filter");
  }
  return Error(ErrorReason::kFilterNotMatched, message)
      .With("collection", name.collection)
      .With("id", name.id)
      .With("actual", current != nullptr ? current->header.version : 0);
}

absl::Status NumberExpected(const DocumentName& name, std::string_view path,
                            std::string_view problem, int64_t actual) {
  return OfDocument(ErrorReason::kNumberExpected,
                    std::string(path) + " " + std::string(problem) + " in version " +
                        std::to_string(actual),
                    name)
      .With("path", path)
      .With("actual", actual);
}

absl::Status NewerRefused() {
  return FieldError("precondition.newer", "is allowed only in Update and Delete");
}

absl::Status UnitTooLarge(size_t limit) {
  return Error(ErrorReason::kLayoutLimit, "the documents have more than " + std::to_string(limit) +
                                              " bytes together; change fewer of them at once")
      .With("limit", static_cast<int64_t>(limit));
}

}  // namespace strata::versioning
