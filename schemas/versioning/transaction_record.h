// The records that tell of transactions.
//
//   transactions record (key: "t" id) =
//     { status: int32, mode: int32, created, modified: int64 (microseconds),
//       actor, for, reason: string, labels: { name: string … }, fingerprint: binary,
//       participants: [ { collection: string, incarnation: int64, id: string, base: int64,
//                         version: int64, changed: bool, stale: bool, note: int32 } … ],
//       data: [ binary … ], cause: string, lost: bool, applied: int64, answer: binary }
//   transactions record (key: "o" id) = { }      a hint: that transaction is not finished
//
// Members that are empty or 0 are left out. A transaction of one commit has its record from that
// commit on, in the status done, if it is remembered.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/base/names.h"
#include "schemas/store/key_codec.h"
#include "schemas/store/store.h"
#include "schemas/versioning/version.h"

namespace strata::versioning {

// The numbers of both are part of every stored format and are those of the wire.
enum class TransactionMode : uint8_t { kOneCommit = 1, kTwoPhase = 2 };
enum class TransactionStatus : uint8_t {
  kNew = 1,
  kPending = 2,
  kApplied = 3,
  kDone = 4,
  kCancelling = 5,
  kCancelled = 6,
};

// One document of a transaction. In one commit: one for each change, in their order. In two phases:
// in the order of (collection, id).
struct Participant {
  DocumentName name;
  int64_t incarnation = 0;
  int64_t base = 0;     // in two phases: the version that was read; its slot is the one after it
  int64_t version = 0;  // that the transaction answers with; 0: none yet
  bool changed = false;
  bool stale = false;  // Mutation::stale
  int32_t note = 0;    // Mutation::note

  friend bool operator==(const Participant&, const Participant&) = default;
};

struct TransactionRecord {
  TransactionStatus status = TransactionStatus::kNew;
  TransactionMode mode = TransactionMode::kOneCommit;
  UnixMicros create_time = 0;
  UnixMicros last_modified = 0;
  ChangeInfo change;
  std::string fingerprint;  // of the request's arguments
  std::vector<Participant> participants;
  std::vector<std::string>
      data;           // in two phases, until it is done or cancelled: what is to be done
  std::string cause;  // why it was cancelled
  bool lost = false;  // … namely because another was faster: whoever asked may begin again
  // Of the commit that applied it, once it is done; 0 in one commit, which is that commit itself.
  store::CommitPosition applied_position = 0;
  std::string joined_answer;           // of a unit's request
  store::Stamp stamp = 0;              // as read; not part of the value
  store::CommitPosition position = 0;  // as read: of the commit that wrote the record

  // Whether it may still become anything else.
  bool finished() const {
    return status == TransactionStatus::kDone || status == TransactionStatus::kCancelled;
  }
  // Whether its versions are undecided.
  bool undecided() const {
    return status == TransactionStatus::kPending || status == TransactionStatus::kCancelling;
  }

  // The position at which its versions came to count. REQUIRES: it is applied or done.
  store::CommitPosition effect_position() const {
    return applied_position != 0 ? applied_position : position;
  }

  std::string Encode() const;
  // RECORD_CORRUPT.
  static absl::StatusOr<TransactionRecord> Decode(const store::Record& record);
  // The same without `data`, of which there may be much.
  static absl::StatusOr<TransactionRecord> DecodeWithoutData(std::string_view value);
};

// How long a finished transaction is remembered, and one that never became pending.
inline constexpr UnixMicros kTransactionLifetime = UnixMicros{24} * 3600 * 1'000'000;

// An id for a unit of one commit that is not remembered. No request can have such a one, so a
// version that bears any other id has a record of its transaction.
std::string MakeForgottenId(Entropy& entropy);
bool IsForgottenId(std::string_view id);

std::string TransactionKey(std::string_view id);
std::string TransactionHintKey(std::string_view id);
// Of every record and of every hint, in the order of ids.
store::Range TransactionRange();
store::Range TransactionHintRange();
// The id that such a key names.
std::string_view TransactionIdOf(std::string_view key);

// Nothing if there is none; one that has expired may still be found.
// RECORD_CORRUPT, STORE_UNAVAILABLE.
absl::StatusOr<std::optional<TransactionRecord>> ReadTransaction(const store::Reader& reader,
                                                                 std::string_view id);

}  // namespace strata::versioning
