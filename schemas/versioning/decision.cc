#include "schemas/versioning/decision.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/versioning/document_errors.h"
#include "schemas/versioning/record_codec.h"
#include "schemas/versioning/version_records.h"

namespace strata::versioning {
namespace {

using store::Keyspace;

absl::Status VersionConflict(const DocumentName& name, std::string_view expected, int64_t actual) {
  return Error(ErrorReason::kVersionConflict,
               "version is " + std::to_string(actual) + ", not " + std::string(expected))
      .With("collection", name.collection)
      .With("id", name.id)
      .With("expected", expected)
      .With("actual", actual);
}

absl::Status FilterNotMatched(const DocumentName& name, const StoredVersion* current) {
  std::string message = "there is no document for the filter to match";
  if (current != nullptr) {
    message = "version " + std::to_string(current->header.version) +
              (current->deleted() ? " is a deletion, which no filter matches"
                                  : " does not match the precondition's filter");
  }
  return Error(ErrorReason::kFilterNotMatched, message)
      .With("collection", name.collection)
      .With("id", name.id)
      .With("actual", current != nullptr ? current->header.version : 0);
}

absl::Status RetriesExhausted(int attempts) {
  return Error(ErrorReason::kRetriesExhausted,
               "lost the race " + std::to_string(attempts) + " times")
      .With("attempts", int64_t{attempts});
}

bool IsGone(const WriteRequest& request) {
  return request.waiter != nullptr && request.waiter->gone();
}

absl::Status AdmitContent(const WriteRequest& request,
                          const std::optional<document::Content>& content) {
  if (!request.admit_content || !content) return absl::OkStatus();
  return request.admit_content(content->size());
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

void Decider::Decide(Round& round) {
  const absl::Status read = ReadDocument(round);
  round.takes_long = DoesTakeLong(read) ||
                     (round.head && round.head->record.size() > round.limits.document_bytes_max);
  if (round.takes_long) return;
  if (!read.ok()) {
    for (auto& write : round.group) write->answer = read;
    return;
  }
  size_t seen_bytes = 0;  // each write may go through the whole content
  for (auto& write : round.group) {
    if (std::max(round.planned_bytes, seen_bytes) >= options_.group_bytes_max) return;
    const StoredVersion* const current = round.current();
    if (current != nullptr && current->content) seen_bytes += current->content->size();
    DecideOne(round, *write);
    if (round.takes_long) return;
  }
}

absl::Status Decider::ReadDocument(Round& round) {
  const DocumentName& name = round.group.front()->request.name;
  // Asked for in each round, whether it has something to compare with or not: the clock has to see
  // a time close to the one that the versions will carry.
  round.forgotten = age_clock_.Now() - kRequestIdLifetime;
  round.reader = store_.Snapshot();
  ASSIGN_OR_RETURN(round.collection, collections_.Find(*round.reader, name.collection));
  if (!round.collection) {
    if (!options_.create_collections) return CollectionNotFound(name.collection);
    return absl::OkStatus();
  }
  round.document = {round.collection->incarnation, name.id};
  ASSIGN_OR_RETURN(round.head,
                   round.collection->strategy->ReadHead(ContextOf(round), round.document));
  return absl::OkStatus();
}

// Decides one write on the state that the writes before it leave.
void Decider::DecideOne(Round& round, PendingWrite& write) {
  const WriteRequest& request = write.request;
  if (IsGone(request) || request.deadline <= clock_.SteadyNow()) {
    write.answer = DeadlineExceeded(write.attempts);
    return;
  }
  round.limits.stopped = [&request] { return IsGone(request); };
  // Before everything else: whatever stands in this request's way may be its own first attempt.
  if (Replay(round, write)) return;
  if (absl::Status refusal = CheckPrecondition(round, write); !refusal.ok()) {
    round.takes_long = DoesTakeLong(refusal);
    write.answer = std::move(refusal);
    return;
  }
  if (write.attempts >= request.max_attempts) {
    write.answer = RetriesExhausted(write.attempts);
    return;
  }
  const CurrentState current = StateOf(round);
  absl::StatusOr<Mutation> mutation = write.mutate(current);
  if (DoesTakeLong(mutation.status())) {
    round.takes_long = true;
    return;
  }
  if (!mutation.ok()) {
    const bool no_collection =
        !round.collection && mutation.status().code() == absl::StatusCode::kNotFound;
    write.answer = no_collection ? CollectionNotFound(request.name.collection) : mutation.status();
    return;
  }
  if (absl::Status refusal = AdmitContent(request, mutation->content); !refusal.ok()) {
    write.answer = std::move(refusal);
    return;
  }
  PlanVersion(round, write, current, *std::move(mutation));
}

absl::Status Decider::CheckPrecondition(const Round& round, const PendingWrite& write) const {
  const StoredVersion* const current = round.current();
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
  // It lost against whoever moved the head since.
  if (precondition.forbids_retry() && write.lost_against >= 0 && write.lost_against != actual) {
    return VersionConflict(name, std::to_string(write.lost_against), actual);
  }
  return absl::OkStatus();
}

// As long as somebody waits for it, and not for long where others wait: conditions cost what they
// are, on a small document too.
absl::Status Decider::CheckFilter(const Round& round, const PendingWrite& write) const {
  const WriteRequest& request = write.request;
  const StoredVersion* const current = round.current();
  if (current == nullptr || current->deleted()) return FilterNotMatched(request.name, current);
  using Time = std::chrono::steady_clock::time_point;
  const Time until = round.brief ? clock_.SteadyNow() + kBriefFilterTimeMax : Time::max();
  bool takes_long = false;
  const StopCheck stopped = [&] {
    const Time now = clock_.SteadyNow();
    takes_long = now >= until;
    return takes_long || IsGone(request) || request.deadline <= now;
  };
  const std::optional<bool> matches =
      request.precondition.filter->Matches(*current->content, stopped);
  if (!matches) return takes_long ? TakesLong() : DeadlineExceeded(write.attempts);
  return *matches ? absl::OkStatus() : FilterNotMatched(request.name, current);
}

// Answers a write that took effect before: as a version planned in this round, as the head, or as
// an older version.
bool Decider::Replay(Round& round, PendingWrite& write) const {
  const WriteRequest& request = write.request;
  if (request.request_id.empty()) return false;
  for (size_t i = 0; i < round.planned.size(); ++i) {
    const VersionHeader& header = round.planned[i].header;
    if (header.request_id != request.request_id) continue;
    const bool repeated = header.request_fingerprint == request.request_fingerprint;
    if (repeated && !request.validate_only) write.planned = i;
    write.answer = Replayed(write, round.planned[i]);
    return true;
  }
  if (!round.head) return false;
  absl::StatusOr<std::optional<StoredVersion>> made = FindMade(round, request);
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
                                                               const WriteRequest& request) const {
  const VersionHeader& head = round.head->version.header;
  if (head.request_id == request.request_id && head.commit_time > round.forgotten) {
    return round.head->version;
  }
  ASSIGN_OR_RETURN(const std::optional<store::Record> record,
                   round.reader->Get(Keyspace::kRequests,
                                     store::RequestKey(round.document, request.request_id)));
  if (!record) return std::nullopt;
  ASSIGN_OR_RETURN(const int64_t made, DecodeRequest(record->value));
  const auto read = [&](Part part) {
    return round.collection->strategy->ReadVersion(ContextOf(round), round.document, *round.head,
                                                   made, part);
  };
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

// What a mutator sees. REQUIRES: the round outlives it.
CurrentState Decider::StateOf(const Round& round) const {
  CurrentState current;
  current.version = round.current();
  current.brief = round.brief;
  current.read = [this, &round](int64_t version) -> absl::StatusOr<StoredVersion> {
    const int64_t head = round.head_version();
    if (version > head) return round.planned[static_cast<size_t>(version - head - 1)];
    return round.collection->strategy->ReadVersion(ContextOf(round), round.document, *round.head,
                                                   version, Part::kContent);
  };
  return current;
}

// Answers with the version that the mutation makes and plans it, if it changes anything.
void Decider::PlanVersion(Round& round, PendingWrite& write, const CurrentState& current,
                          Mutation mutation) {
  const WriteRequest& request = write.request;
  // Hashing it, planning it and comparing it with what was there.
  if (mutation.content && mutation.content->size() > round.limits.document_bytes_max) {
    round.takes_long = true;
    return;
  }
  const bool same = current.live() && mutation.content && mutation.kind != VersionKind::kCreated &&
                    !request.keep_unchanged &&
                    document::SameMeaning(*current.version->content, *mutation.content);
  WriteResult result;
  result.name = request.name;
  result.changed = !same;
  if (same) {
    result.version = *current.version;
  } else {
    result.version = NextVersion(current.version, request, std::move(mutation));
    if (!request.validate_only) {
      write.planned = round.planned.size();
      round.planned_bytes += result.version.content ? result.version.content->size() : 0;
      round.planned.push_back(result.version);
      round.deadline = std::min(round.deadline, request.deadline);
    }
  }
  write.answer = std::move(result);
}

StoredVersion Decider::NextVersion(const StoredVersion* current, const WriteRequest& request,
                                   Mutation mutation) {
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
  header.create_time = born && mutation.kind != VersionKind::kDeleted ? header.commit_time
                                                                      : current->header.create_time;
  header.change = request.change;
  header.request_id = request.request_id;
  header.request_fingerprint = request.request_fingerprint;
  header.fingerprint_chained = !request.request_id.empty();
  header.salt = entropy_.Bytes(kSaltSize);
  header.content_hash = ContentHashOf(header.salt, next.content);
  header.chain_hash =
      ChainHash(current != nullptr ? current->header.chain_hash
                                   : ChainStart(request.name.collection, request.name.id),
                header);
  return next;
}

}  // namespace strata::versioning
