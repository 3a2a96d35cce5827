// What a transaction in two phases would do to its documents as they are now. Internal to this
// folder.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/base/stop.h"
#include "schemas/transaction/operation.h"
#include "schemas/versioning/documents.h"
#include "schemas/versioning/transaction_record.h"

namespace strata::transaction {

struct Unprepared {
  std::string collection;
  bool missing = false;
  bool may_make = false;  // where it is not there: a read makes none
};

struct Evaluation {
  // Set: a transaction that has to be settled before anything can be said.
  std::string undecided;
  // Those that are only read, then those that are written, in the order of the request.
  std::vector<versioning::Participant> participants;
  // What the operations would give, in their order.
  std::vector<versioning::WriteResult> results;
  // Collections that have to be made, or prepared for a write, before a slot in them can be taken.
  std::vector<Unprepared> unprepared;
};

struct EvaluationLimits {
  // Others wait for this thread: what takes long ends with TakesLong (read_limits.h), and is
  // evaluated again elsewhere.
  bool brief = false;
  StopCheck stopped = {};  // asked now and then; then CANCELLED
};

// Reads all documents as of one moment, where the engine has such, and decides on them as a unit
// does. What a unit is refused with, with the metadata `index` and `field`; also LAYOUT_LIMIT for
// documents that are too large together, or that have no room for a change and its undoing. No
// document is named twice. `change` is the whole transaction's: that of what is only read, and of
// each undoing, but for the reason.
absl::StatusOr<Evaluation> Evaluate(store::Store& store, versioning::Documents& documents,
                                    const Clock& clock, const std::vector<Operation>& operations,
                                    const std::vector<versioning::ReadCheck>& reads,
                                    const versioning::ChangeInfo& change,
                                    const EvaluationLimits& limits);

}  // namespace strata::transaction
