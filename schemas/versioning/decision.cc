#include "schemas/versioning/decision.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "schemas/base/error.h"
#include "schemas/base/field_checks.h"
#include "schemas/base/status_macros.h"
#include "schemas/store/guarded_commit.h"
#include "schemas/versioning/document_errors.h"
#include "schemas/versioning/record_codec.h"
#include "schemas/versioning/undecided.h"
#include "schemas/versioning/version_records.h"

namespace strata::versioning {
namespace {

using store::Keyspace;

bool IsGone(const WriteRequest& request) {
  return request.waiter != nullptr && request.waiter->gone();
}

// OK: it has no answer yet.
absl::Status AnswerOf(const Waiting& entry) {
  if (!entry.answered()) return absl::OkStatus();
  return entry.unit ? entry.unit->answer->status() : entry.write->answer->status();
}

absl::Status AdmitContent(const WriteRequest& request,
                          const std::optional<document::Content>& content) {
  if (!request.admit_content || !content) return absl::OkStatus();
  return request.admit_content(*content);
}

// The answer to a write that made `version` before.
absl::StatusOr<WriteResult> Replayed(const PendingWrite& write, StoredVersion version) {
  const WriteRequest& request = write.request;
  if (version.header.request_fingerprint != request.request_fingerprint) {
    return Error(ErrorReason::kRequestIdReused,
                 "request_id was used for another request, which wrote version " +
                     std::to_string(version.header.version) +
                     "; give every change an id of its own")
        .With("field", "request_id")
        .With("version", version.header.version)
        .ToStatus();
  }
  RETURN_IF_ERROR(AdmitContent(request, version.content));
  WriteResult result;
  result.name = request.name;
  result.version = std::move(version);
  result.attempts = write.attempts;
  result.changed = true;
  result.replayed = true;
  result.position = result.version.position;
  return result;
}

}  // namespace

absl::Status DeadlineExceeded(int attempts) {
  return Error(ErrorReason::kDeadlineExceeded,
               "deadline exceeded after " + std::to_string(attempts) + " attempts")
      .With("attempts", int64_t{attempts});
}

Decider::Decider(const store::Store& store, Collections& collections, const Clock& clock,
                 Entropy& entropy, const WriteOptions& options)
    : store_(store),
      capabilities_(store.capabilities()),
      collections_(collections),
      clock_(clock),
      age_clock_(clock),
      entropy_(entropy),
      options_(options) {}

void Decider::MakeBrief(Round& round) const {
  round.brief = true;
  round.limits.document_bytes_max = options_.brief_document_bytes_max;
  round.limits.rebuilt_bytes_max = kBriefRebuiltBytesMax;
}

void Decider::Decide(Round& round) {
  if (round.brief) MakeBrief(round);
  Read(round);
  if (round.takes_long || round.is_too_much || !round.undecided.empty()) return;
  if (round.brief) round.brief_until = clock_.SteadyNow() + kBriefTimeMax;
  size_t seen_bytes = 0;  // each write may go through the whole content
  for (Waiting& entry : round.group) {
    const bool first = &entry == &round.group.front();
    if (!first && IsOutOfTime(round)) return;
    if (std::max(round.planned_bytes, seen_bytes) >= options_.group_bytes_max) return;
    entry.ForEachWrite([&](const PendingWrite& write) {
      const StoredVersion* const current = round.documents[write.document].current();
      if (current != nullptr && current->content) seen_bytes += current->content->size();
    });
    if (!DecideEntry(round, entry)) return;
    // The next round finds what bears the name by then.
    if (WasReadTooLate(round, AnswerOf(entry))) return entry.Forget();
    if (!round.takes_long) continue;
    // One that takes long holds up nobody before it.
    round.takes_long = first;
    return entry.Forget();
  }
}

bool Decider::WasReadTooLate(const Round& round, const absl::Status& failure) {
  if (failure.code() != absl::StatusCode::kDataLoss) return false;
  return std::any_of(round.documents.begin(), round.documents.end(), [&](const auto& document) {
    return IsCollectionGone(document) || IsWritten(round, document);
  });
}

// Whether the document has another version by now than the one that the round read.
bool Decider::IsWritten(const Round& round, const RoundDocument& document) {
  if (capabilities_.snapshots || !document.head) return false;
  const auto now = document.collection->strategy->ReadHead(ContextOf(round), document.key);
  return now.ok() && *now && (*now)->version.header.version > document.head_version();
}

// Whether its collection was deleted since it was found, where the round sees the live store.
bool Decider::IsCollectionGone(const RoundDocument& document) {
  if (capabilities_.snapshots || !document.collection) return false;
  const absl::StatusOr<CollectionPtr> now = collections_.Find(store_, document.collection->name);
  return now.ok() && (!*now || (*now)->incarnation != document.collection->incarnation);
}

bool Decider::IsOutOfTime(const Round& round) const {
  return round.brief && clock_.SteadyNow() >= round.brief_until;
}

void Decider::Read(Round& round) {
  // Asked for in each round, whether it has something to compare with or not: the clock has to see
  // a time close to the one that the versions will carry.
  round.forgotten = age_clock_.Now() - kRequestIdLifetime;
  round.reader = store_.Snapshot();
  size_t bytes = 0;
  const auto read_until = clock_.SteadyNow() + kBriefTimeMax;
  // What documents from here on cannot be read for; those of later entries come later.
  absl::Status rest;
  for (size_t i = 0; i < round.documents.size(); ++i) {
    RoundDocument& document = round.documents[i];
    const DocumentName& name = round.queues[i]->name();
    if (name.collection.empty()) continue;
    if (!rest.ok()) {
      document.read = rest;
      continue;
    }
    if (round.brief && i > 0 && clock_.SteadyNow() >= read_until) {
      document.read = rest = TakesLong();
      continue;
    }
    document.read = ReadDocument(name, round, document);
    if (!round.undecided.empty()) return;
    const size_t size = document.head ? document.head->record.size() : 0;
    bytes += size;
    if (bytes > options_.unit_bytes_max && round.documents.size() > 1) {
      round.is_too_much = round.group.size() > 1;
      if (round.is_too_much) return;
      rest = UnitTooLarge(options_.unit_bytes_max);
    } else if (size > round.limits.document_bytes_max) {
      rest = TakesLong();
    }
    if (rest.ok()) continue;
    document.head.reset();
    document.read = rest;
  }
}

absl::Status Decider::ReadDocument(const DocumentName& name, Round& round,
                                   RoundDocument& document) {
  ASSIGN_OR_RETURN(document.collection, collections_.Find(*round.reader, name.collection));
  if (!document.collection) return absl::OkStatus();
  document.key = {document.collection->incarnation, name.id};
  const ReadContext context = ContextOf(round);
  ASSIGN_OR_RETURN(document.head, document.collection->strategy->ReadHead(context, document.key));
  if (!document.head || document.head->version.header.mark != VersionMark::kApplied) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(std::string undecided, FindUndecided(context, *document.collection->strategy,
                                                        document.key, document.head));
  if (undecided.empty()) return absl::OkStatus();
  round.undecided = std::move(undecided);
  round.undecided_document = static_cast<size_t>(&document - round.documents.data());
  return absl::OkStatus();
}

bool Decider::DecideEntry(Round& round, Waiting& entry) {
  const Waiter* const waiter = entry.waiter();
  const auto gone = [waiter] { return waiter != nullptr && waiter->gone(); };
  if (gone() || entry.deadline() <= clock_.SteadyNow()) {
    entry.Refuse(DeadlineExceeded(entry.attempts()));
    return true;
  }
  round.limits.stopped = gone;
  return entry.unit ? DecideUnit(round, *entry.unit) : DecideWrite(round, *entry.write);
}

// Decides one write on the state that the writes before it leave.
bool Decider::DecideWrite(Round& round, PendingWrite& write) {
  const WriteRequest& request = write.request;
  const RoundDocument& document = round.documents[write.document];
  if (!document.read.ok()) {
    round.takes_long = DoesTakeLong(document.read);
    write.answer = document.read;
    return true;
  }
  // Before everything else: whatever stands in this request's way may be its own first attempt.
  if (Replay(round, write)) return true;
  store::WriteBatch joined;
  const absl::StatusOr<bool> joins = Join(round, request.joined, joined);
  if (!joins.ok()) {
    round.takes_long = DoesTakeLong(joins.status());
    write.answer = joins.status();
    return true;
  }
  if (!*joins) return false;
  DecideChange(round, write, "");
  if (round.takes_long || joined.writes().empty() || !write.answer->ok()) return true;
  if (request.validate_only) return true;
  if (!write.makes_version) {
    round.documents[write.document].confirmed = true;
    round.deadline = std::min(round.deadline, request.deadline);
  }
  write.planned = true;
  AddJoined(round, &write, std::move(joined));
  return true;
}

bool Decider::DecideUnit(Round& round, PendingUnit& unit) {
  const UnitRequest& request = unit.request;
  const bool remembered = !request.request_fingerprint.empty();
  if (remembered) {
    // Another call of the same unit is about to be done.
    if (round.joined_keys.contains(
            {Keyspace::kTransactions, TransactionKey(request.transaction_id)})) {
      return false;
    }
    absl::StatusOr<std::optional<UnitResult>> made = ReplayUnit(round, unit);
    round.takes_long = DoesTakeLong(made.status());
    if (!made.ok()) {
      unit.answer = made.status();
      return true;
    }
    if (*made) {
      unit.answer = **std::move(made);
      return true;
    }
  }
  store::WriteBatch joined;
  const absl::StatusOr<bool> joins = Join(round, request.joined, joined);
  if (!joins.ok()) {
    round.takes_long = DoesTakeLong(joins.status());
    unit.answer = joins.status();
    return true;
  }
  if (!*joins) return false;
  unit.time = clock_.Now();
  const auto deadline = round.deadline;
  absl::StatusOr<UnitResult> result = DecideParts(round, unit);
  if (!result.ok()) {
    round.takes_long = round.takes_long || DoesTakeLong(result.status());
    TakeOut(round, unit);
    round.deadline = deadline;
  } else if (!request.validate_only) {
    PlanUnit(round, unit, std::move(joined));
  }
  unit.answer = std::move(result);
  return true;
}

// The reads, then each change in order, on what those before the unit leave.
absl::StatusOr<UnitResult> Decider::DecideParts(Round& round, PendingUnit& unit) {
  UnitResult result;
  size_t bytes = 0;
  for (size_t i = 0; i < unit.request.reads.size(); ++i) {
    if (absl::Status refusal = CheckRead(round, unit, i); !refusal.ok()) {
      return InElement(refusal, "reads", i, "version");
    }
  }
  for (size_t i = 0; i < unit.writes.size(); ++i) {
    PendingWrite& write = unit.writes[i];
    const RoundDocument& document = round.documents[write.document];
    if (DoesTakeLong(document.read) || IsOutOfTime(round)) return TakesLong();
    if (document.read.ok()) {
      DecideChange(round, write, unit.request.transaction_id);
      if (round.takes_long) return TakesLong();
    } else {
      write.answer = document.read;
    }
    if (!write.answer->ok()) return InElement(write.answer->status(), "writes", i);
    const std::optional<document::Content>& content = (*write.answer)->version.content;
    bytes += content ? content->size() : 0;
    if (bytes > options_.unit_bytes_max) {
      return InElement(UnitTooLarge(options_.unit_bytes_max), "writes", i);
    }
  }
  // Why it cannot be done says more than that it was tried too often.
  if (unit.attempts >= unit.request.max_attempts) {
    return store::RetriesExhausted("the documents of the unit", unit.attempts);
  }
  result.attempts = unit.attempts;
  return result;
}

absl::Status Decider::CheckRead(const Round& round, const PendingUnit& unit, size_t index) const {
  const ReadCheck& read = unit.request.reads[index];
  const RoundDocument& document = round.documents[unit.read_documents[index]];
  RETURN_IF_ERROR(document.read);
  const StoredVersion* const current = document.current();
  const int64_t actual = current != nullptr ? current->header.version : 0;
  if (actual == read.version) return absl::OkStatus();
  return VersionConflict(read.name, std::to_string(read.version), actual);
}

// Whether all that the unit has seen was so at one moment. Else a commit has to prove it: without
// snapshots nothing says so before, and what a commit of this round is about to make was not there
// when the other documents were read.
bool Decider::IsProven(const Round& round, const PendingUnit& unit) const {
  if (unit.queues.size() <= 1) return true;
  const auto is_stored = [&](size_t document) { return round.documents[document].planned.empty(); };
  return capabilities_.snapshots &&
         std::all_of(unit.read_documents.begin(), unit.read_documents.end(), is_stored) &&
         std::all_of(unit.writes.begin(), unit.writes.end(),
                     [&](const PendingWrite& write) { return is_stored(write.document); });
}

// The unit is to be committed, if there is anything to commit; then what it has seen must still
// hold.
void Decider::PlanUnit(Round& round, PendingUnit& unit, store::WriteBatch joined) {
  const UnitRequest& request = unit.request;
  const bool remembered = !request.request_fingerprint.empty();
  const bool changes = std::any_of(unit.writes.begin(), unit.writes.end(),
                                   [](const PendingWrite& write) { return write.makes_version; });
  if (!changes && !remembered && joined.writes().empty() && IsProven(round, unit)) return;
  unit.planned = true;
  round.deadline = std::min(round.deadline, request.deadline);
  for (const size_t document : unit.read_documents) round.documents[document].confirmed = true;
  for (const PendingWrite& write : unit.writes) {
    if (!write.makes_version) round.documents[write.document].confirmed = true;
  }
  AddJoined(round, &unit, std::move(joined));
  if (remembered) {
    round.joined_keys.emplace(Keyspace::kTransactions, TransactionKey(request.transaction_id));
  }
}

// Takes the versions of a refused unit out of the round again.
void Decider::TakeOut(Round& round, PendingUnit& unit) {
  for (PendingWrite& write : unit.writes) {
    if (!std::exchange(write.makes_version, false)) continue;
    write.planned = false;
    std::vector<StoredVersion>& planned = round.documents[write.document].planned;
    round.planned_bytes -= planned.back().content ? planned.back().content->size() : 0;
    planned.pop_back();
  }
}

// Plans the writes that join into a batch of their own. False: they touch what is planned to be
// written in this round already, which their plans have not seen.
absl::StatusOr<bool> Decider::Join(const Round& round, const std::vector<store::JoinedPlan>& plans,
                                   store::WriteBatch& batch) {
  absl::Status planned;
  for (const store::JoinedPlan& plan : plans) {
    planned = plan(*round.reader, batch);
    if (!planned.ok()) break;
  }
  // Check first: the refusal may depend on a record that this round replaces.
  for (const store::Write& write : batch.writes()) {
    if (round.joined_keys.contains({write.keyspace, write.key})) return false;
  }
  RETURN_IF_ERROR(planned);
  return true;
}

void Decider::AddJoined(Round& round, const void* entry, store::WriteBatch joined) {
  round.deadline = std::min(round.deadline, joined.deadline());
  for (const store::Write& write : joined.writes()) {
    if (write.kind != store::WriteKind::kCheck) {
      round.joined_keys.emplace(write.keyspace, write.key);
    }
  }
  round.joined.Append(std::move(joined));
  round.joined_sections.push_back({round.joined.writes().size(), Round::Section::kNone, entry});
}

// The answer to a unit that was done before, if it is remembered: what it did, with contents as
// they are still there.
absl::StatusOr<std::optional<UnitResult>> Decider::ReplayUnit(const Round& round,
                                                              const PendingUnit& unit) const {
  const UnitRequest& request = unit.request;
  ASSIGN_OR_RETURN(const std::optional<TransactionRecord> record,
                   ReadTransaction(*round.reader, request.transaction_id));
  if (!record || record->last_modified <= round.forgotten) return std::nullopt;
  const bool made_so =
      record->mode == TransactionMode::kOneCommit && record->status == TransactionStatus::kDone;
  if (!made_so || record->fingerprint != request.request_fingerprint ||
      record->participants.size() != unit.writes.size()) {
    return Error(ErrorReason::kRequestIdReused,
                 "request_id was used for another transaction; give each an id of its own")
        .With("field", "request_id");
  }
  UnitResult result;
  result.attempts = unit.attempts;
  result.replayed = true;
  result.joined_answer = record->joined_answer;
  result.position = record->position;
  result.changes.reserve(unit.writes.size());
  for (size_t i = 0; i < unit.writes.size(); ++i) {
    if (IsOutOfTime(round)) return TakesLong();
    ASSIGN_OR_RETURN(WriteResult change,
                     ReplayChange(round, unit.writes[i], record->participants[i]));
    if (change.changed) change.position = record->position;
    result.changes.push_back(std::move(change));
  }
  return result;
}

absl::StatusOr<WriteResult> Decider::ReplayChange(const Round& round, const PendingWrite& write,
                                                  const Participant& made) const {
  const RoundDocument& document = round.documents[write.document];
  WriteResult result;
  result.name = write.request.name;
  result.version.header.version = made.version;
  result.changed = made.changed;
  result.replayed = true;
  result.stale = made.stale;
  result.note = made.note;
  // It was done, also where the documents have become too large together to be answered with.
  if (ReasonOf(document.read) == ErrorReason::kLayoutLimit) return result;
  RETURN_IF_ERROR(document.read);
  const bool there = document.collection && document.collection->incarnation == made.incarnation &&
                     made.version >= 1 && made.version <= document.head_version();
  if (!there) return result;
  ASSIGN_OR_RETURN(result.version, ReadVersion(round, document, made.version));
  RETURN_IF_ERROR(AdmitContent(write.request, result.version.content));
  return result;
}

// Decides what becomes of one document, on the state that the changes before leave.
void Decider::DecideChange(Round& round, PendingWrite& write, std::string_view transaction_id) {
  const bool in_unit = !transaction_id.empty();
  const WriteRequest& request = write.request;
  const RoundDocument& document = round.documents[write.document];
  if (!document.collection && !options_.create_collections) {
    write.answer = CollectionNotFound(request.name.collection);
    return;
  }
  if (absl::Status refusal = CheckPrecondition(round, write); !refusal.ok()) {
    round.takes_long = DoesTakeLong(refusal);
    const bool of_filter = ReasonOf(refusal) == ErrorReason::kInvalidFilter;
    write.answer = in_unit || of_filter ? InField(refusal, "precondition") : std::move(refusal);
    return;
  }
  if (!in_unit && write.attempts >= request.max_attempts) {
    write.answer = store::RetriesExhausted(
        "document " + request.name.collection + "/" + request.name.id, write.attempts);
    return;
  }
  const CurrentState current = StateOf(round, document);
  absl::StatusOr<Mutation> mutation = write.mutate(current);
  if (DoesTakeLong(mutation.status())) {
    round.takes_long = true;
    return;
  }
  if (!mutation.ok()) {
    const bool no_collection =
        !document.collection && mutation.status().code() == absl::StatusCode::kNotFound;
    write.answer = no_collection ? CollectionNotFound(request.name.collection) : mutation.status();
    return;
  }
  if (absl::Status refusal = AdmitContent(request, mutation->content); !refusal.ok()) {
    write.answer = std::move(refusal);
    return;
  }
  const Origin origin{request.change, request.request_id, request.request_fingerprint,
                      transaction_id};
  PlanVersion(round, write, current, origin, *std::move(mutation));
}

absl::StatusOr<bool> Decider::DecideSlot(Round& round, const SlotRequest& slot) {
  RoundDocument& document = round.documents.emplace_back();
  absl::StatusOr<bool> is_next = DecideSlotOf(round, document, slot);
  if (WasReadTooLate(round, is_next.status())) return false;
  return is_next;
}

absl::StatusOr<bool> Decider::DecideSlotOf(Round& round, RoundDocument& document,
                                           const SlotRequest& slot) {
  if (slot.brief) MakeBrief(round);
  round.reader = store_.Snapshot();
  round.forgotten = age_clock_.Now() - kRequestIdLifetime;
  ASSIGN_OR_RETURN(document.collection, collections_.Find(*round.reader, slot.name.collection));
  if (!document.collection || document.collection->incarnation != slot.incarnation) return false;
  document.key = {slot.incarnation, slot.name.id};
  ASSIGN_OR_RETURN(document.head,
                   document.collection->strategy->ReadHead(ContextOf(round), document.key));
  if (document.head && document.head->record.size() > round.limits.document_bytes_max) {
    return TakesLong();
  }
  if (document.head_version() + 1 != slot.version) return false;
  ASSIGN_OR_RETURN(Mutation mutation, slot.mutate(StateOf(round, document)));
  const Origin origin{slot.change, "", "", slot.transaction_id, slot.mark};
  document.planned.push_back(
      NextVersion(document.current(), slot.name, origin, std::move(mutation)));
  return true;
}

absl::Status Decider::CheckPrecondition(const Round& round, const PendingWrite& write) const {
  const StoredVersion* const current = round.documents[write.document].current();
  const DocumentName& name = write.request.name;
  const Precondition& precondition = write.request.precondition;
  const int64_t actual = current != nullptr ? current->header.version : 0;
  const bool exists = current != nullptr && !current->deleted();
  if (precondition.version && *precondition.version != actual) {
    return VersionConflict(name, std::to_string(*precondition.version), actual);
  }
  if (precondition.exists && *precondition.exists != exists) {
    return VersionConflict(name, *precondition.exists ? "an existing one" : "a missing one",
                           actual);
  }
  if (precondition.filter) RETURN_IF_ERROR(CheckFilter(round, write));
  // Whether it exists may be as it was, and it lost against whoever moved the head since; those
  // before it in this round did not.
  const int64_t stored = round.documents[write.document].head_version();
  if (precondition.exists && write.lost_against >= 0 && write.lost_against != stored) {
    return VersionConflict(name, std::to_string(write.lost_against), stored);
  }
  return absl::OkStatus();
}

// As long as somebody waits for it, and not for long where others wait: conditions cost what they
// are, on a small document too.
absl::Status Decider::CheckFilter(const Round& round, const PendingWrite& write) const {
  const WriteRequest& request = write.request;
  const StoredVersion* const current = round.documents[write.document].current();
  if (current == nullptr || current->deleted()) return FilterNotMatched(request.name, current);
  using Time = std::chrono::steady_clock::time_point;
  const document::Filter& filter = *request.precondition.filter;
  if (round.brief && filter.WorkBytes(current->content->size()) > kBriefFilterBytesMax) {
    return TakesLong();
  }
  const Time until = round.brief_until;
  bool takes_long = false;
  const StopCheck stopped = [&] {
    const Time now = clock_.SteadyNow();
    takes_long = now >= until;
    return takes_long || IsGone(request) || request.deadline <= now;
  };
  const absl::StatusOr<bool> matches = filter.Matches(*current->content, stopped);
  if (ReasonOf(matches.status()) == ErrorReason::kInvalidFilter) return matches.status();
  if (!matches.ok()) return takes_long ? TakesLong() : DeadlineExceeded(write.attempts);
  return *matches ? absl::OkStatus() : FilterNotMatched(request.name, current);
}

// Answers a write that took effect before: as a version planned in this round, as the head, or as
// an older version.
bool Decider::Replay(Round& round, PendingWrite& write) const {
  const WriteRequest& request = write.request;
  if (request.request_id.empty()) return false;
  const RoundDocument& document = round.documents[write.document];
  for (const StoredVersion& planned : document.planned) {
    if (planned.header.request_id != request.request_id) continue;
    const bool repeated = planned.header.request_fingerprint == request.request_fingerprint;
    write.planned = repeated && !request.validate_only;
    write.answer = Replayed(write, planned);
    return true;
  }
  if (!document.head) return false;
  absl::StatusOr<std::optional<StoredVersion>> made = FindMade(round, document, request);
  round.takes_long = DoesTakeLong(made.status());
  if (!made.ok()) {
    write.answer = made.status();
    return true;
  }
  if (!*made) return false;
  write.answer = Replayed(write, **std::move(made));
  return true;
}

// The stored version that the request made, unless that is forgotten. REQUIRES: the document has a
// head.
absl::StatusOr<std::optional<StoredVersion>> Decider::FindMade(const Round& round,
                                                               const RoundDocument& document,
                                                               const WriteRequest& request) const {
  const VersionHeader& head = document.head->version.header;
  if (head.request_id == request.request_id && head.commit_time > round.forgotten) {
    return document.head->version;
  }
  ASSIGN_OR_RETURN(
      const std::optional<store::Record> record,
      round.reader->Get(Keyspace::kRequests, store::RequestKey(document.key, request.request_id)));
  if (!record) return std::nullopt;
  ASSIGN_OR_RETURN(const int64_t made, DecodeRequest(record->value));
  // Without snapshots it may have been made since the head was read (WasReadTooLate).
  if (made > head.version) return CorruptVersion(made, "is named by a request, and not there");
  const auto read = [&](Part part) { return ReadVersion(round, document, made, part); };
  // The header alone first: what became of a content a day ago stands in nobody's way.
  ASSIGN_OR_RETURN(const StoredVersion described, read(Part::kHeader));
  if (described.header.request_id != request.request_id) {
    return CorruptVersion(made, "is named by the record of a request that did not make it");
  }
  if (described.header.commit_time <= round.forgotten) return std::nullopt;
  ASSIGN_OR_RETURN(StoredVersion version, read(Part::kContent));
  return version;
}

ReadContext Decider::ContextOf(const Round& round) const {
  return {*round.reader, capabilities_, &round.limits};
}

absl::StatusOr<StoredVersion> Decider::ReadVersion(const Round& round,
                                                   const RoundDocument& document, int64_t version,
                                                   Part part) const {
  return document.collection->strategy->ReadVersion(ContextOf(round), document.key, *document.head,
                                                    version, part);
}

// What a mutator sees. REQUIRES: the round outlives it.
CurrentState Decider::StateOf(const Round& round, const RoundDocument& document) const {
  CurrentState current;
  current.version = document.current();
  current.brief = round.brief;
  current.read = [this, &round, &document](int64_t version) -> absl::StatusOr<StoredVersion> {
    if (Stopped(round.limits.stopped)) return StoppedError();
    const int64_t head = document.head_version();
    if (version > head) return document.planned[static_cast<size_t>(version - head - 1)];
    return ReadVersion(round, document, version);
  };
  return current;
}

// Answers with the version that the mutation makes and plans it, if it changes anything.
void Decider::PlanVersion(Round& round, PendingWrite& write, const CurrentState& current,
                          const Origin& origin, Mutation mutation) {
  const WriteRequest& request = write.request;
  // Hashing it, planning it and comparing it with what was there.
  if (mutation.content && mutation.content->size() > round.limits.document_bytes_max) {
    round.takes_long = true;
    return;
  }
  const bool same =
      mutation.stale || (current.live() && mutation.content &&
                         mutation.kind != VersionKind::kCreated && !request.keep_unchanged &&
                         document::SameMeaning(*current.version->content, *mutation.content));
  WriteResult result;
  result.name = request.name;
  result.changed = !same;
  result.stale = mutation.stale;
  result.note = mutation.note;
  if (same) {
    result.version = *current.version;
  } else {
    result.version = NextVersion(current.version, request.name, origin, std::move(mutation));
    if (!request.validate_only) {
      write.planned = write.makes_version = true;
      round.planned_bytes += result.version.content ? result.version.content->size() : 0;
      round.documents[write.document].planned.push_back(result.version);
      round.deadline = std::min(round.deadline, request.deadline);
    }
  }
  write.answer = std::move(result);
}

StoredVersion Decider::NextVersion(const StoredVersion* current, const DocumentName& name,
                                   const Origin& origin, Mutation mutation) {
  StoredVersion next;
  next.content = std::move(mutation.content);
  VersionHeader& header = next.header;
  header.kind = mutation.kind;
  header.version = current != nullptr ? current->header.version + 1 : 1;
  header.commit_time = clock_.Now();
  // The wall clock may have been set back; the order of versions is the truth.
  if (current != nullptr) {
    header.commit_time = std::max(header.commit_time, current->header.commit_time);
  }
  const bool born = current == nullptr || current->deleted();
  header.create_time = born && (mutation.kind != VersionKind::kDeleted || current == nullptr)
                           ? header.commit_time
                           : current->header.create_time;
  if (mutation.create_time) header.create_time = *mutation.create_time;
  header.change = origin.change;
  header.change.labels.merge(mutation.labels);
  header.request_id = origin.request_id;
  header.request_fingerprint = origin.request_fingerprint;
  header.fingerprint_chained = !origin.request_id.empty();
  header.transaction_id = origin.transaction_id;
  header.mark = origin.mark;
  header.salt = entropy_.Bytes(kSaltSize);
  header.content_hash = ContentHashOf(header.salt, next.content);
  header.chain_hash = ChainHash(
      current != nullptr ? current->header.chain_hash : ChainStart(name.collection, name.id),
      header);
  return next;
}

}  // namespace strata::versioning
