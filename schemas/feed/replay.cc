#include "schemas/feed/replay.h"

#include <chrono>
#include <utility>

#include "schemas/base/status_macros.h"
#include "schemas/feed/reader.h"
#include "schemas/versioning/ledger.h"
#include "schemas/versioning/strategy.h"

namespace strata::feed {
namespace {

// So many versions at most are looked at in one go, wanted or not, and for so long: others wait for
// the thread.
constexpr int64_t kVersionsMax = 256;
constexpr std::chrono::microseconds kTimeMax = std::chrono::milliseconds(5);

// Where the version stands in the ledger.
absl::StatusOr<Place> PlaceOf(const ParkedDocument& parked,
                              const versioning::StoredVersion& version,
                              versioning::CommitEntries& entries) {
  RETURN_IF_ERROR(entries.Find(version.position));
  while (entries.Next()) {
    const store::LedgerEntryView& entry = entries.entry();
    if (entry.incarnation == parked.incarnation && entry.id == parked.id &&
        entry.version == version.header.version && versioning::IsVersion(entry)) {
      return Place{version.position, entries.index()};
    }
  }
  RETURN_IF_ERROR(entries.status());
  return Place{version.position, 0};
}

}  // namespace

absl::StatusOr<ReplayStep> FindReplay(store::Store& store, versioning::Collections& collections,
                                      const Clock& clock, const WatchQuery& query,
                                      const ParkedDocument& parked, const lease::Place& up_to,
                                      const StopCheck& stopped) {
  const auto until = clock.SteadyNow() + kTimeMax;
  ReplayStep step;
  step.next_version = parked.from_version;
  const auto reader = store.Snapshot();
  ASSIGN_OR_RETURN(const versioning::CollectionPtr collection,
                   collections.Find(*reader, parked.collection));
  if (!collection || collection->incarnation != parked.incarnation) return step;
  const versioning::ReadLimits limits{stopped};
  const versioning::ReadContext context{*reader, store.capabilities(), &limits};
  const store::DocumentKey key{parked.incarnation, parked.id};
  ASSIGN_OR_RETURN(const std::optional<versioning::Head> head,
                   collection->strategy->ReadHead(context, key));
  if (!head || head->version.header.version < parked.from_version) return step;
  const int64_t last =
      std::min(head->version.header.version, parked.from_version + kVersionsMax - 1);
  const auto versions = collection->strategy->ScanVersions(
      context, key, *head, {parked.from_version, last, false, 0}, versioning::Part::kHeader);
  versioning::CommitEntries entries(*reader);
  while (versions->Next()) {
    if (Stopped(stopped)) return StoppedError();
    const versioning::StoredVersion& version = versions->item();
    ASSIGN_OR_RETURN(const Place place, PlaceOf(parked, version, entries));
    if (lease::Place{place.position, static_cast<int32_t>(place.index)} > up_to) return step;
    step.next_version = version.header.version + 1;
    Entry entry;
    entry.type = EventType::kVersion;
    entry.collection = parked.collection;
    entry.incarnation = parked.incarnation;
    entry.id = parked.id;
    entry.header = version.header;
    // As the ledger has it.
    entry.header.create_time = 0;
    entry.header.request_fingerprint.clear();
    entry.header.salt.clear();
    entry.header.content_hash = {};
    entry.header.chain_hash = {};
    if (!query.selection.Wants(entry)) continue;
    EventMaker events(store, collections, query, stopped);
    events.Expect(entry);
    ASSIGN_OR_RETURN(step.event, events.Make(place, entry));
    if (!step.event && clock.SteadyNow() < until) continue;
    step.more = true;
    return step;
  }
  RETURN_IF_ERROR(versions->status());
  step.more = step.next_version <= head->version.header.version;
  return step;
}

}  // namespace strata::feed
