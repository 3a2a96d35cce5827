#include "schemas/versioning/undecided.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/versioning/transaction_record.h"

namespace strata::versioning {

absl::StatusOr<Visible> FindVisible(const ReadContext& context, const store::DocumentKey& document,
                                    const VersionHeader& current) {
  if (current.mark != VersionMark::kApplied) return Visible{current.version, ""};
  ASSIGN_OR_RETURN(const std::optional<TransactionRecord> record,
                   ReadTransaction(context.reader, current.transaction_id));
  const bool names_it =
      record && std::any_of(record->participants.begin(), record->participants.end(),
                            [&](const Participant& participant) {
                              return participant.incarnation == document.incarnation &&
                                     participant.name.id == document.id &&
                                     participant.base + 1 == current.version;
                            });
  if (!names_it) return Visible{current.version, ""};
  if (record->undecided()) return Visible{current.version - 1, current.transaction_id};
  // Without snapshots, what was undecided when the head was read may have been cancelled since.
  const bool undone = record->status == TransactionStatus::kCancelled;
  return Visible{current.version - (undone ? 1 : 0), ""};
}

absl::StatusOr<std::string> FindUndecided(const ReadContext& context, const Strategy& strategy,
                                          const store::DocumentKey& document,
                                          std::optional<Head>& head) {
  int64_t cancelled = 0;  // the version that was found to be of a cancelled transaction
  while (head && head->version.header.mark == VersionMark::kApplied) {
    const int64_t current = head->version.header.version;
    ASSIGN_OR_RETURN(Visible visible, FindVisible(context, document, head->version.header));
    if (visible.version == current) break;
    if (!visible.pending_transaction_id.empty()) return std::move(visible.pending_transaction_id);
    if (cancelled == current) {
      return Error(ErrorReason::kRecordCorrupt, "version " + std::to_string(current) +
                                                    " is of transaction " +
                                                    head->version.header.transaction_id +
                                                    ", which was cancelled, and was never undone")
          .With("version", current)
          .ToStatus();
    }
    cancelled = current;
    ASSIGN_OR_RETURN(head, strategy.ReadHead(context, document));
  }
  return std::string();
}

absl::StatusOr<bool> ShowVisible(const ReadContext& context, const Strategy& strategy,
                                 const store::DocumentKey& document, Head& head) {
  if (head.version.header.mark != VersionMark::kApplied) return true;
  ASSIGN_OR_RETURN(Visible visible, FindVisible(context, document, head.version.header));
  if (visible.version == head.version.header.version) return true;
  if (visible.version == 0) return false;
  ASSIGN_OR_RETURN(StoredVersion shown,
                   strategy.ReadVersion(context, document, head, visible.version, Part::kContent));
  shown.pending_transaction_id = std::move(visible.pending_transaction_id);
  head.version = std::move(shown);
  return true;
}

}  // namespace strata::versioning
