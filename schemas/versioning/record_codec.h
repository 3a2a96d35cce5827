// The BSON records that versioning stores. Members that are empty or follow from others are left
// out.
//
//   version  = { version: int64, kind: int32, time: int64 (microseconds), created: int64 (absent:
//   as time),
//                actor, for, reason: string, labels: { name: string … },
//                request: string, request_fingerprint: binary(8) (in the chain hash; `fingerprint`
//                as format 2 wrote it is not), transaction: string, mark: int32, proof: binary(80:
//                salt 16, content hash 32, chain hash 32), position: int64 (absent: the position of
//                the commit that wrote the record), … what the strategy adds …, content: document
//                (absent: deletion, or coded otherwise) }
//   request  = { version: int64 }    what the request was stands in that version
//
// A name that is kept for what is to come, with a feature of the format (format.h of the engine):
// `stub` (how and when content,
// salt and fingerprint were forgotten; with it `proof` is binary(64), without the salt, and
// `request_fingerprint` binary(32), the hash that the chain holds).
//
// Format 2 had a record for each entry of the ledger, which only its migration reads:
//
//   ledger   = { collection, incarnation: int64, id, version: int64, kind: int32, time: int64,
//                actor, for, reason, labels, request }
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "schemas/document/bson_view.h"
#include "schemas/store/ledger_block.h"
#include "schemas/store/record.h"
#include "schemas/versioning/version.h"

namespace strata::versioning {

// Builds one BSON document.
class BsonBuilder {
 public:
  // Makes room for `bytes`, so that no growing copies what is there; more may come.
  explicit BsonBuilder(size_t bytes = 0);
  BsonBuilder(const BsonBuilder&) = delete;
  BsonBuilder& operator=(const BsonBuilder&) = delete;

  BsonBuilder& Int32(std::string_view name, int32_t value);
  BsonBuilder& Int64(std::string_view name, int64_t value);
  BsonBuilder& Bool(std::string_view name, bool value);
  BsonBuilder& String(std::string_view name, std::string_view value);
  BsonBuilder& Binary(std::string_view name, std::string_view value);
  // `bytes`: a whole BSON document (array).
  BsonBuilder& Document(std::string_view name, std::string_view bytes);
  BsonBuilder& Array(std::string_view name, std::string_view bytes);

  // The document. REQUIRES: called once, last.
  std::string Take();

 private:
  std::string bytes_;
};

// Walks the members of one BSON document that a store returned. Looks at their frames; the text of
// a string is what was written. The bytes must outlive it.
class BsonReader {
 public:
  explicit BsonReader(std::string_view bytes);

  // Moves to the next member; false at the end, or where the bytes are no BSON (then corrupt()).
  bool Next() {
    if (corrupt_) return false;
    if (members_.Next(member_)) return true;
    corrupt_ = members_.failed();
    return false;
  }
  bool corrupt() const { return corrupt_; }

  std::string_view name() const { return member_.name; }
  // The member's value; the type's zero value if it is of another type (then corrupt()).
  int64_t Int64();  // of an int32 too
  bool Bool();
  std::string_view String();
  std::string_view Binary();
  std::string_view Document();  // of an array too

 private:
  bool Expect(bool holds) {
    corrupt_ |= !holds;
    return holds;
  }

  document::MemberReader members_;
  document::Member member_;
  bool corrupt_;
};

// What a `version` record has besides the version.
struct LayoutMembers {
  bool current = false;    // CURRENT_FLAG
  std::string_view delta;  // DELTAS: a view into the record's bytes; empty: none
  // DELTAS: deltas since the last keyframe, this one not counted. A head without is right above a
  // keyframe, an older version's delta without was stored by format 2 and does not say.
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
                  BsonBuilder& builder);
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

// Of format 2; without chain.
absl::StatusOr<store::LedgerEntry> DecodeLedgerRecord(std::string_view bytes);

}  // namespace strata::versioning
