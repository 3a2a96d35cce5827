// The BSON records that versioning stores. Members that are empty or follow from others are left
// out.
//
//   version  = { version: int64, kind: int32, time: int64 (microseconds), created: int64 (absent:
//   as time),
//                actor, for, reason: string, labels: { name: string … },
//                request: string, request_fingerprint: binary(8) (in the chain hash; `fingerprint`
//                as early builds wrote it is not), transaction: string, mark: int32, proof:
//                binary(80: salt 16, content hash 32, chain hash 32), position: int64 (absent: the
//                position of the commit that wrote the record), … what the strategy adds …,
//                content: document (absent: deletion, or coded otherwise) }
//   request  = { version: int64 }    what the request was stands in that version
//
// A name that is kept for what is to come, with a feature of the format (format.h of the engine):
// `stub` (how and when content,
// salt and fingerprint were forgotten; with it `proof` is binary(64), without the salt, and
// `request_fingerprint` binary(32), the hash that the chain holds).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "schemas/document/bson_builder.h"
#include "schemas/store/record.h"
#include "schemas/versioning/version.h"

namespace strata::versioning {

// What a `version` record has besides the version.
struct LayoutMembers {
  bool current = false;    // CURRENT_FLAG
  std::string_view delta;  // DELTAS: a view into the record's bytes; empty: none
  // DELTAS: deltas since the last keyframe, this one not counted. A head without is right above a
  // keyframe, an older version's delta without is of an early build and does not say.
  std::optional<int64_t> chain_length;
  int64_t chain_bytes = 0;  // … and their size; of the head only
};

// The members of one `version` record.
struct VersionRecord : LayoutMembers {
  StoredVersion version;
};

enum class Part : uint8_t { kHeader, kContent };

// About what AppendHeader adds.
inline constexpr size_t kHeaderBytes = 384;

// Begins a version record: everything up to what the strategy adds.
void AppendHeader(const VersionHeader& header, store::CommitPosition position,
                  document::BsonBuilder& builder);
// A whole version record, with nothing of a strategy.
std::string EncodeVersion(const StoredVersion& version);

// RECORD_CORRUPT for bytes that are no version record. `record_position` stands in for an absent
// `position`.
absl::StatusOr<VersionRecord> DecodeVersion(std::string_view bytes,
                                            store::CommitPosition record_position, Part part);
// The same of a whole record, whose bytes the content shares.
absl::StatusOr<VersionRecord> DecodeVersion(const store::Record& record, Part part);
// The same for who needs the version alone, into one that is new.
absl::Status DecodeVersion(const store::Record& record, Part part, StoredVersion& version);

// Where a member stands in a record's bytes; size 0: it is not there.
struct Extent {
  size_t offset = 0;
  size_t size = 0;

  std::string_view Of(std::string_view bytes) const { return bytes.substr(offset, size); }
};

// The members of a `version` record that its content is made of.
struct RecordBody {
  Extent content;
  Extent delta;
  std::optional<int64_t> chain_length;
  int64_t chain_bytes = 0;
};

// DecodeVersion for who needs only these. RECORD_CORRUPT for bytes that are no BSON.
absl::StatusOr<RecordBody> DecodeBody(std::string_view bytes);

// Of the version that the request made.
std::string EncodeRequest(int64_t version);
absl::StatusOr<int64_t> DecodeRequest(std::string_view bytes);

}  // namespace strata::versioning
