// The errors that name a document, a version or a collection: one wording for all callers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "schemas/base/clock.h"
#include "schemas/base/names.h"
#include "schemas/store/record.h"

namespace strata::versioning {

struct StoredVersion;

absl::Status CollectionNotFound(std::string_view collection);
absl::Status CollectionExists(std::string_view collection);
absl::Status DocumentNotFound(const DocumentName& name);
absl::Status DocumentDeleted(const DocumentName& name, int64_t version);
absl::Status DocumentExists(const DocumentName& name, int64_t actual);
absl::Status VersionNotFound(const DocumentName& name, int64_t version, int64_t actual);
// The current version is `actual`, and not what was expected.
absl::Status VersionConflict(const DocumentName& name, std::string_view expected, int64_t actual);
// Of a precondition's filter, on a current version that may be null or a deletion.
absl::Status FilterNotMatched(const DocumentName& name, const StoredVersion* current);
// Of a precondition's number, for what is at its path in version `actual`.
absl::Status NumberExpected(const DocumentName& name, std::string_view path,
                            std::string_view problem, int64_t actual);
// INVALID_FIELD, of writes that ask for no number.
absl::Status NewerRefused();
// LAYOUT_LIMIT, for what the documents of one unit take, or would take, together.
absl::Status UnitTooLarge(size_t limit);
// VERSION_NOT_FOUND, for a time before the document's first version.
absl::Status NoVersionYet(const DocumentName& name, UnixMicros time, UnixMicros first_time,
                          int64_t actual);

// The same for the position of a commit.
absl::Status NoVersionYetAt(const DocumentName& name, store::CommitPosition position,
                            store::CommitPosition first_position, int64_t actual);
// POSITION_UNKNOWN and POSITION_TRIMMED, for a position that came in the request's `field`: it lies
// after the last commit; before the oldest position to resume after.
absl::Status PositionUnknown(std::string_view field, store::CommitPosition position,
                             store::CommitPosition last);
absl::Status PositionTrimmed(std::string_view field, store::CommitPosition position,
                             store::CommitPosition oldest);

// Whether it is RECORD_CORRUPT.
bool IsCorrupt(const absl::Status& status);

// DOCUMENT_NOT_FOUND or DOCUMENT_DELETED, for a current version that is null or a deletion.
absl::Status NotLive(const DocumentName& name, const StoredVersion* current);

}  // namespace strata::versioning
