#include "schemas/versioning/commit_plan.h"

#include <algorithm>
#include <map>
#include <string>

#include "schemas/base/status_macros.h"
#include "schemas/store/key_codec.h"
#include "schemas/versioning/collection_record.h"
#include "schemas/versioning/ledger.h"
#include "schemas/versioning/record_codec.h"
#include "schemas/versioning/transaction_record.h"
#include "schemas/versioning/version_records.h"

namespace strata::versioning {
namespace {

using store::Keyspace;
using store::WriteBatch;

// Remembers the request that made a version, as long as it is to be remembered.
void RememberRequest(const Round& round, const RoundDocument& document, const VersionHeader& header,
                     store::Capabilities capabilities, WriteBatch& batch) {
  // A forgotten id may be used anew in this very batch, and a key is written once in it.
  if (header.request_id.empty() || header.commit_time <= round.forgotten) return;
  SetAside(Keyspace::kRequests, store::RequestKey(document.key, header.request_id),
           EncodeRequest(header.version), capabilities, batch)
      .expire_time = header.commit_time + kRequestIdLifetime;
}

bool TakesPart(const RoundDocument& document) {
  return !document.planned.empty() || document.confirmed;
}

// Marks the collection as used, and makes it if there is none yet.
void UseCollection(const Collection& collection, WriteBatch& batch) {
  CollectionRecord record;
  record.name = collection.name;
  record.incarnation = collection.incarnation;
  record.strategy = collection.strategy_entry;
  record.options = collection.options;
  record.create_time = collection.create_time;
  record.used = true;
  if (collection.stamp == 0) {
    batch.Insert(Keyspace::kCollections, collection.name, record.Encode());
  } else {
    batch.Replace(Keyspace::kCollections, collection.name, record.Encode(), collection.stamp);
  }
}

// That the document's collection is the one that was read. Units make those that they need, and
// mark them as used, by their own commit: one that is refused leaves none.
absl::Status PlanCollection(const Round& round, size_t i, WriteBatch& batch) {
  const RoundDocument& document = round.documents[i];
  if (document.collection && !document.collection->used && !document.planned.empty()) {
    UseCollection(*document.collection, batch);
    return absl::OkStatus();
  }
  if (document.collection) {
    batch.Check(Keyspace::kCollections, document.collection->name, document.collection->stamp);
    return absl::OkStatus();
  }
  const std::string& name = round.queues[i]->name().collection;
  ASSIGN_OR_RETURN(const std::optional<CollectionRecord> tombstone,
                   ReadCollectionRecord(*round.reader, name));
  if (tombstone && tombstone->deleted) {
    batch.Check(Keyspace::kCollections, name, tombstone->stamp);
  } else {
    batch.CheckAbsent(Keyspace::kCollections, name);
  }
  return absl::OkStatus();
}

// Those of all that takes part.
absl::Status PlanCollections(const Round& round, WriteBatch& batch) {
  if (round.documents.size() == 1) {
    return TakesPart(round.documents[0]) ? PlanCollection(round, 0, batch) : absl::OkStatus();
  }
  // Of several documents in one collection, one that is written, if any is.
  std::map<std::string_view, size_t> places;
  for (size_t i = 0; i < round.documents.size(); ++i) {
    if (!TakesPart(round.documents[i])) continue;
    const auto [place, first] = places.try_emplace(round.queues[i]->name().collection, i);
    if (!first && round.documents[place->second].planned.empty()) place->second = i;
  }
  for (const auto& [name, i] : places) RETURN_IF_ERROR(PlanCollection(round, i, batch));
  return absl::OkStatus();
}

absl::Status PlanDocument(const Round& round, RoundDocument& document,
                          store::Capabilities capabilities, WriteBatch& batch) {
  const std::vector<StoredVersion>& planned = document.planned;
  if (planned.empty()) {
    if (!document.confirmed || !document.collection) return absl::OkStatus();
    document.collection->strategy->Confirm(document.key, document.head ? &*document.head : nullptr,
                                           batch);
    return absl::OkStatus();
  }
  const Strategy& strategy = *document.collection->strategy;
  // A version's request gets its record once the version is superseded; until then the head tells.
  if (document.head) {
    RETURN_IF_ERROR(
        strategy.PrepareToPlan({*round.reader, capabilities}, document.key, *document.head));
    RememberRequest(round, document, document.head->version.header, capabilities, batch);
  }
  for (size_t i = 0; i + 1 < planned.size(); ++i) {
    RememberRequest(round, document, planned[i].header, capabilities, batch);
  }
  return strategy.Plan(document.key, document.head ? &*document.head : nullptr, planned,
                       capabilities, batch);
}

// What a unit did, for whoever asks for it again.
void RememberUnit(const Round& round, const PendingUnit& unit, WriteBatch& batch) {
  TransactionRecord record;
  record.status = TransactionStatus::kDone;
  record.mode = TransactionMode::kOneCommit;
  record.create_time = record.last_modified = unit.time;
  record.change = unit.request.change;
  record.fingerprint = unit.request.request_fingerprint;
  record.joined_answer = unit.request.joined_answer;
  record.participants.reserve(unit.writes.size());
  for (const PendingWrite& write : unit.writes) {
    const CollectionPtr& collection = round.documents[write.document].collection;
    const WriteResult& result = **write.answer;
    record.participants.push_back({.name = write.request.name,
                                   .incarnation = collection ? collection->incarnation : 0,
                                   .version = result.version.header.version,
                                   .changed = result.changed,
                                   .stale = result.stale,
                                   .note = result.note});
  }
  batch
      .Insert(Keyspace::kTransactions, TransactionKey(unit.request.transaction_id), record.Encode())
      .expire_time = unit.time + kTransactionLifetime;
}

void AppendEntry(const RoundDocument& document, const VersionHeader& header, WriteBatch& batch) {
  batch.AppendToLedger(MakeLedgerEntry(document.collection->name, document.collection->incarnation,
                                       document.key.id, header));
}

// The entries of all versions, in the order in which they were decided.
void AppendToLedger(const Round& round, WriteBatch& batch) {
  if (round.documents.size() == 1) {
    const RoundDocument& document = round.documents.front();
    for (const StoredVersion& version : document.planned) {
      AppendEntry(document, version.header, batch);
    }
    return;
  }
  const auto append = [&](const PendingWrite& write) {
    if (!write.makes_version) return;
    AppendEntry(round.documents[write.document], (*write.answer)->version.header, batch);
  };
  for (const Waiting& entry : round.group) {
    if (entry.write) append(*entry.write);
    if (!entry.unit) continue;
    for (const PendingWrite& write : entry.unit->writes) append(write);
  }
}

}  // namespace

absl::StatusOr<WriteBatch> PlanCommit(Round& round, store::Capabilities capabilities) {
  WriteBatch batch;
  batch.set_deadline(round.deadline);
  const bool removal =
      !round.group.empty() &&
      std::all_of(round.group.begin(), round.group.end(),
                  [](const Waiting& entry) { return !entry.planned() || entry.removal(); });
  if (removal) batch.MarkAsRemoval();
  round.sections.clear();
  if (capabilities.atomic_batches) RETURN_IF_ERROR(PlanCollections(round, batch));
  round.sections.push_back({batch.writes().size()});
  for (size_t i = 0; i < round.documents.size(); ++i) {
    if (absl::Status planned = PlanDocument(round, round.documents[i], capabilities, batch);
        !planned.ok()) {
      round.unfit_document = i;
      return planned;
    }
    round.sections.push_back({batch.writes().size(), i});
  }
  for (const Round::Section& joined : round.joined_sections) {
    round.sections.push_back({batch.writes().size() + joined.end, joined.document, joined.entry});
  }
  batch.Append(std::move(round.joined));
  for (const Waiting& entry : round.group) {
    if (entry.unit && entry.unit->planned && !entry.unit->request.request_fingerprint.empty()) {
      RememberUnit(round, *entry.unit, batch);
      round.sections.push_back({batch.writes().size(), Round::Section::kNone, entry.identity()});
    }
  }
  if (capabilities.commit_positions) AppendToLedger(round, batch);
  return batch;
}

}  // namespace strata::versioning
