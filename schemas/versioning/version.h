// What a version of a document is, whatever the strategy that stores it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "schemas/base/clock.h"
#include "schemas/document/content.h"
#include "schemas/document/hash.h"
#include "schemas/store/record.h"

namespace strata::versioning {

// The numbers are part of every stored format and of the chain hash.
enum class VersionKind : uint8_t { kCreated = 1, kUpdated = 2, kDeleted = 3, kRestored = 4 };

// What a transaction in two phases did to a document with a version: its change; the undoing of
// that after it was cancelled; or nothing, so that nobody can fill the slot any more. The numbers
// are part of every stored format and of the chain hash.
enum class VersionMark : uint8_t { kNone = 0, kApplied = 1, kUndone = 2, kClosed = 3 };

// Who changes a document and why.
struct ChangeInfo {
  std::string actor;
  std::string on_behalf_of;
  std::string reason;
  std::map<std::string, std::string> labels;

  friend bool operator==(const ChangeInfo&, const ChangeInfo&) = default;
};

// UTF-8 without zero bytes: actor, on_behalf_of and the values of labels of up to kNameBytesMax
// bytes, the reason of kReasonBytesMax, the names of labels of 1 to kLabelNameBytesMax, none with
// the prefix of those that the server makes (newer.h); kLabelsMax labels.
absl::Status ValidateChange(const ChangeInfo& change);

// All of a version but its content. Never changes once its version is acknowledged.
struct VersionHeader {
  int64_t version = 0;  // from 1, dense
  VersionKind kind = VersionKind::kCreated;
  UnixMicros commit_time = 0;  // never earlier than the version's before
  UnixMicros create_time = 0;  // commit time of the newest creation at or before this version
  ChangeInfo change;
  std::string request_id;           // empty: none
  std::string request_fingerprint;  // of the request's arguments; empty without a request id
  // The fingerprint is proven by the chain hash. Not so in versions that early builds wrote.
  bool fingerprint_chained = false;
  std::string transaction_id;             // of the unit that the version is part of; empty: none
  VersionMark mark = VersionMark::kNone;  // any other: of the transaction in two phases
  std::string salt;                       // of the content hash; kSaltSize bytes
  document::Hash content_hash{};
  document::Hash chain_hash{};

  friend bool operator==(const VersionHeader&, const VersionHeader&) = default;
};

inline constexpr size_t kSaltSize = 16;

struct StoredVersion {
  VersionHeader header;
  // Absent for a deletion, or where only the header was read.
  std::optional<document::Content> content;
  // Of the commit that made the version; 0 while it is planned, and on engines without positions.
  store::CommitPosition position = 0;
  // Of a version that a reader sees as the current one, and part of no record: who has written the
  // next one and is not decided yet (undecided.h). Empty: nobody.
  std::string pending_transaction_id{};

  bool deleted() const { return header.kind == VersionKind::kDeleted; }
};

// The content hash of a version; of a deletion it covers the salt alone.
document::Hash ContentHashOf(std::string_view salt,
                             const std::optional<document::Content>& content);

// chain(0): SHA-256 of collection and id.
document::Hash ChainStart(std::string_view collection, std::string_view id);

// chain(v): SHA-256 of chain(v-1), version, kind, time, actor, on_behalf_of, reason, request id,
// labels sorted by name (each name and value), content hash: parts as PartHasher frames them; and
// where there is any of the following, one part more:
//
//   more = [0x01 SHA-256 of the salt and the request's fingerprint, 32 bytes] [0x03 mark, 1 byte]
//          [0x02 transaction id]
//
// Without it the number of parts is odd and with it even, so no labels can pass for it, and the
// hashes of versions that have neither stay what they were. The fingerprint is in it by a hash of
// its own, so that both it and the salt can be forgotten and the chain still be proven.
//
// No strategy, position or layout is in it, so a document may be stored anew in another layout and
// still prove its history.
document::Hash ChainHash(const document::Hash& previous, const VersionHeader& header);

}  // namespace strata::versioning
