// What may be wrong with what is stored, in the words of the contract.
#pragma once

#include <cstdint>
#include <string>

#include "schemas/store/record.h"
#include "schemas/store/write_batch.h"

namespace strata::versioning {

// The numbers equal strata.v1.FindingKind.
enum class FindingKind : uint8_t {
  kVersionMissing = 1,
  kRecordCorrupt = 2,
  kContentMismatch = 3,
  kChainBroken = 4,
  kOrphan = 5,
  kWrongFlag = 6,
  kEarlyCopy = 7,
  kWrongCopy = 8,
  kLedgerEntryMissing = 9,
  kLedgerEntryOrphan = 10,
  kLedgerMismatch = 11,
  kRequestMismatch = 12,
  kLedgerBroken = 13,
  kLedgerHeadMismatch = 14,
  kRequestMissing = 15,
  kCollectionMissing = 16,
};

struct Finding {
  FindingKind kind = FindingKind::kRecordCorrupt;
  int64_t version = 0;       // 0: the document as a whole
  std::string problem{};     // for people, without content
  bool recoverable = false;  // a crash may leave it; answers are right in spite of it
  // The writes that repair it, guarded by what was read, so that they come to nothing if somebody
  // else was faster; none where there is nothing to write, and where nobody will write it.
  store::WriteBatch repair{};
  bool repaired = false;
  std::string id{};  // of the document; empty: the record names none
  // Of the version's or the ledger entry's commit; 0: not known.
  store::CommitPosition position = 0;
};

}  // namespace strata::versioning
