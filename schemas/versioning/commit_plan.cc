#include "schemas/versioning/commit_plan.h"

#include <algorithm>

#include "schemas/base/status_macros.h"
#include "schemas/store/key_codec.h"
#include "schemas/versioning/ledger.h"
#include "schemas/versioning/record_codec.h"

namespace strata::versioning {
namespace {

using store::Keyspace;

// Remembers the request that made a version, as long as it is to be remembered.
void RememberRequest(const Round& round, const VersionHeader& header, store::WriteBatch& batch) {
  // A forgotten id may be used anew in this very batch, and a key is written once in it.
  if (header.request_id.empty() || header.commit_time <= round.forgotten) return;
  batch
      .Ensure(Keyspace::kRequests, store::RequestKey(round.document, header.request_id),
              EncodeRequest(header.version))
      .expire_time = header.commit_time + kRequestIdLifetime;
}

}  // namespace

absl::StatusOr<store::WriteBatch> PlanCommit(Round& round, store::Capabilities capabilities) {
  const Collection& collection = *round.collection;
  const Strategy& strategy = *collection.strategy;
  store::WriteBatch batch;
  batch.set_deadline(round.deadline);
  const bool removal = std::all_of(round.group.begin(), round.group.end(), [](const auto& write) {
    return !write->planned || write->request.removal;
  });
  if (removal) batch.MarkAsRemoval();
  if (capabilities.atomic_batches) {
    batch.Check(Keyspace::kCollections, collection.name, collection.stamp);
  }
  // A version's request gets its record once the version is superseded; until then the head tells.
  if (round.head) {
    RETURN_IF_ERROR(
        strategy.PrepareToPlan({*round.reader, capabilities}, round.document, *round.head));
    RememberRequest(round, round.head->version.header, batch);
  }
  for (size_t i = 0; i + 1 < round.planned.size(); ++i) {
    RememberRequest(round, round.planned[i].header, batch);
  }
  RETURN_IF_ERROR(
      strategy.Plan(round.document, round.head ? &*round.head : nullptr, round.planned, batch));
  if (capabilities.commit_positions) {
    for (const StoredVersion& version : round.planned) {
      batch.AppendToLedger(MakeLedgerEntry(collection.name, collection.incarnation,
                                           round.document.id, version.header));
    }
  }
  return batch;
}

}  // namespace strata::versioning
