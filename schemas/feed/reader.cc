#include "schemas/feed/reader.h"

#include <algorithm>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/names.h"
#include "schemas/base/status_macros.h"
#include "schemas/versioning/document_errors.h"
#include "schemas/versioning/ledger.h"
#include "schemas/versioning/ledger_floor.h"

namespace strata::feed {
namespace {

using store::CommitPosition;

constexpr std::string_view kPositionField = "after_position";

// As one change of History and Audit.
constexpr size_t kChangesBytesMax = size_t{1} << 20;

// Of a copy in one turn, where what is looked at is held against a filter, which takes long.
constexpr size_t kFilteredBytesMax = size_t{256} << 10;

Place Later(const Place& one, const Place& other) {
  return std::pair(one.position, one.index) < std::pair(other.position, other.index) ? other : one;
}

}  // namespace

Reader::Reader(const Workshop& workshop, WatchQuery query, std::shared_ptr<Sink> sink)
    // To begin is brief, but for a time that has to be looked for.
    : brief(!std::holds_alternative<FromTime>(query.start)),
      workshop_(workshop),
      query_(std::move(query)),
      sink_(std::move(sink)) {}

void Reader::Ready() {
  {
    const std::lock_guard lock(mutex_);
    if (state_ == State::kRuns) ready_again_ = true;
    if (state_ != State::kSent) return;
    state_ = State::kRuns;
  }
  Continue();
}

void Reader::Close() {
  {
    const std::lock_guard lock(mutex_);
    state_ = State::kClosed;
  }
  workshop_.tail.Unpark(*this);
}

void Reader::Wake(CommitPosition passed) {
  std::unique_lock lock(mutex_);
  if (state_ != State::kParked) return;
  next_ = Later(next_, Place::Behind(passed));
  Schedule(std::move(lock));
}

void Reader::Schedule(std::unique_lock<std::mutex> lock) {
  state_ = State::kScheduled;
  lock.unlock();
  workshop_.schedule(shared_from_this());
}

// Goes on where nothing is left to be taken: parked, where there is nothing more to look at, and
// with a turn otherwise. REQUIRES: kRuns, and nobody else ends it.
void Reader::Continue() {
  std::unique_lock lock(mutex_);
  if (state_ == State::kClosed) return;
  if (!begun_ || copy_ || next_.index > 0) return Schedule(std::move(lock));
  state_ = State::kParked;  // before it is parked, as it may be woken at once
  const CommitPosition looked = next_.whole();
  const Bookmark bookmark{last_sent_ + query_.bookmark_interval, told_};
  lock.unlock();
  const bool parked = workshop_.tail.Park(shared_from_this(), looked, bookmark);
  lock.lock();
  if (!parked && state_ == State::kParked) return Schedule(std::move(lock));
  const bool closed = state_ == State::kClosed;
  lock.unlock();
  // Whoever closed it meanwhile may have found it not parked yet.
  if (parked && closed) workshop_.tail.Unpark(*this);
}

Reader::Effort Reader::Turn() {
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::kScheduled) return Effort::kNothing;
    state_ = State::kRuns;
    ready_again_ = false;
  }
  ++workshop_.counters.turns;
  effort_ = Effort::kNothing;
  const absl::StatusOr<Outcome> outcome = Take();
  const Effort effort = effort_;
  EndTurn(outcome);
  return effort;
}

void Reader::EndTurn(const absl::StatusOr<Outcome>& outcome) {
  if (!outcome.ok()) return Fail(outcome.status());
  if (*outcome != Outcome::kSentNothing) {
    const std::lock_guard lock(mutex_);
    if (state_ == State::kClosed) return;
    if (!ready_again_) {
      state_ = State::kSent;
      return;
    }
  }
  Continue();
}

void Reader::Fail(const absl::Status& status) {
  {
    const std::lock_guard lock(mutex_);
    if (state_ == State::kClosed) return;
    state_ = State::kClosed;
  }
  sink_->Finish(status);
}

absl::StatusOr<Reader::Outcome> Reader::Take() {
  RETURN_IF_ERROR(sink_->Admit());
  if (!sink_->TakeRoom()) return Outcome::kNoRoom;
  absl::StatusOr<Outcome> outcome = TakeInRoom();
  sink_->ReturnRoom();
  return outcome;
}

absl::StatusOr<Reader::Outcome> Reader::TakeInRoom() {
  if (!begun_) {
    effort_ = Effort::kBegan;
    RETURN_IF_ERROR(Begin());
    begun_ = true;
    SendMessage();
    return Outcome::kSentMessage;
  }
  if (copy_) return CopyOn();
  Window window;
  RETURN_IF_ERROR(Look(window));
  if (!window.candidates.empty()) effort_ = Effort::kLooked;
  ASSIGN_OR_RETURN(const Filled filled, Fill(window));
  // One who takes nothing is to say when it does, or it would be offered the same for ever.
  if (filled.events == 0 && !filled.refused && !BookmarkIsDue()) return Outcome::kSentNothing;
  workshop_.counters.events_sent += filled.events;
  SendMessage();
  return Outcome::kSentMessage;
}

bool Reader::BookmarkIsDue() const {
  return next_.whole() > told_ &&
         workshop_.clock.SteadyNow() >= last_sent_ + query_.bookmark_interval;
}

void Reader::SendMessage() {
  Progress progress;
  progress.last_position = workshop_.store.LastPosition();
  progress.copy = copy_;
  if (!copy_ || copy_->complete) {
    progress.resume_position = next_.whole();
    told_ = progress.resume_position;
    copy_.reset();
  }
  last_sent_ = workshop_.clock.SteadyNow();
  sink_->Send(progress);
}

absl::Status Reader::Begin() {
  CommitPosition behind = workshop_.store.LastPosition();
  if (const auto* position = std::get_if<FromPosition>(&query_.start)) {
    behind = position->after;
    RETURN_IF_ERROR(CheckPosition(workshop_.store, kPositionField, behind));
  } else if (const auto* place = std::get_if<FromPlace>(&query_.start)) {
    next_ = Place::Behind(place->behind.position);
    if (place->behind.index) {
      next_ = {place->behind.position, static_cast<uint32_t>(*place->behind.index) + 1};
    }
    return CheckPosition(workshop_.store, kPositionField, next_.whole());
  } else if (const auto* time = std::get_if<FromTime>(&query_.start)) {
    ASSIGN_OR_RETURN(
        behind, PositionBefore(workshop_.store, time->time, [this] { return sink_->closed(); }));
  } else if (const auto* copy = std::get_if<FromCopy>(&query_.start)) {
    const auto& [collection, id] = copy->after;
    if (!collection.empty() || !id.empty()) {
      RETURN_IF_ERROR(ValidateName("snapshot.after_collection", collection));
    }
    if (!id.empty()) RETURN_IF_ERROR(ValidateName("snapshot.after_id", id));
    if (copy->at > 0 || copy->complete) behind = copy->at;
    RETURN_IF_ERROR(CheckPosition(workshop_.store, "snapshot.at_position", behind));
    copy_ = *copy;
    copy_->at = behind;
    // Before the first commit there is nothing to copy. To go on with it would be to ask for
    // position 0, which stands for now.
    if (behind == 0) copy_->complete = true;
  }
  next_ = Place::Behind(behind);
  return absl::OkStatus();
}

// What was trimmed meanwhile would look as if it had never been: so the ledger is read first, and
// then it is asked where it begins.
absl::Status Reader::Look(Window& window) {
  window.events_max = std::clamp<size_t>(sink_->room(), 1, kTurnEventsMax);
  const Tail::Taken taken = workshop_.tail.Take(next_.whole(), kTurnEntriesMax);
  if (taken.held) {
    LookAt(taken, window);
    return absl::OkStatus();
  }
  ++workshop_.counters.catch_up_reads;
  RETURN_IF_ERROR(ReadLedger(taken.end, window));
  return CheckPosition(workshop_.store, kPositionField, next_.whole());
}

void Reader::LookAt(const Tail::Taken& taken, Window& window) const {
  size_t entries = 0;
  window.next = next_;
  for (const CommitPtr& commit : taken.commits) {
    window.commits.push_back(commit);  // for the candidates: the ring may let go of it meanwhile
    uint32_t index = commit->position == next_.position ? next_.index : 0;
    for (; index < commit->entries.size(); ++index) {
      const Place place{commit->position, index};
      if (window.candidates.size() == window.events_max) {
        window.next = place;
        return;
      }
      const Entry& entry = commit->entries[index];
      if (query_.selection.Wants(entry)) window.candidates.push_back({place, &entry});
    }
    entries += commit->entries.size();
    window.next = Place::Behind(commit->position);
  }
  if (entries < kTurnEntriesMax) window.next = Later(window.next, Place::Behind(taken.end));
}

absl::Status Reader::ReadLedger(CommitPosition end, Window& window) const {
  versioning::LedgerCursor cursor(workshop_.store, next_.position, next_.index);
  size_t entries = 0;
  while (cursor.Next() && cursor.position() <= end) {
    if (sink_->closed()) return StoppedError();
    const Place place{cursor.position(), cursor.index()};
    if (window.candidates.size() == window.events_max || entries++ == kTurnEntriesMax) {
      window.next = place;
      return absl::OkStatus();
    }
    Entry entry = Entry::Of(cursor.entry());
    if (!query_.selection.Wants(entry)) continue;
    window.entries.push_back(std::move(entry));
    window.candidates.push_back({place, &window.entries.back()});
  }
  RETURN_IF_ERROR(cursor.status());
  window.next = Later(next_, Place::Behind(end));
  return absl::OkStatus();
}

// Moves the place behind what was looked at: to the first event that did not fit, or behind all.
absl::StatusOr<Reader::Filled> Reader::Fill(const Window& window) {
  EventMaker events(workshop_.store, workshop_.documents.collections(), query_,
                    [this] { return sink_->closed(); });
  for (const Candidate& candidate : window.candidates) events.Expect(*candidate.entry);
  const Time until = workshop_.clock.SteadyNow() + kTurnTimeMax;
  bool first = true;
  Filled filled;
  for (const Candidate& candidate : window.candidates) {
    if (sink_->closed()) return StoppedError();
    const auto stop = [&] {
      next_ = candidate.place;
      return filled;
    };
    const bool over = events.bytes() >= kTurnBytesMax || workshop_.clock.SteadyNow() >= until;
    if (!std::exchange(first, false) && over) return stop();
    absl::StatusOr<std::optional<Event>> event = events.Make(candidate.place, *candidate.entry);
    if (!event.ok() && filled.events == 0) return event.status();
    // What came before is sent; the next turn begins with this one, and fails of it.
    if (!event.ok()) return stop();
    if (!*event) continue;
    if (!sink_->Add(**std::move(event))) {
      filled.refused = true;
      return stop();
    }
    ++filled.events;
  }
  next_ = window.next;
  return filled;
}

EventMaker::EventMaker(store::Store& store, versioning::Collections& collections,
                       const WatchQuery& query, StopCheck stopped)
    : query_(query),
      stopped_(std::move(stopped)),
      needs_before_(query.include_before || query.include_changes || query.filter.has_value()),
      needs_contents_(query.include_content || needs_before_),
      contents_(store, collections, stopped_, needs_before_) {}

void EventMaker::Expect(const Entry& entry) {
  if (needs_contents_ && entry.type == EventType::kVersion) contents_.Expect(entry);
}

absl::StatusOr<std::optional<Event>> EventMaker::Make(const Place& place, const Entry& entry) {
  Event event;
  event.position = place.position;
  event.index = place.index;
  event.type = entry.type;
  event.collection = entry.collection;
  event.incarnation = entry.incarnation;
  event.id = entry.id;
  event.version.header = entry.header;
  if (entry.type == EventType::kVersion && needs_contents_) {
    ASSIGN_OR_RETURN(const bool wanted, FillContents(entry, event));
    if (!wanted) return std::nullopt;
  }
  event.version.position = place.position;
  return event;
}

// False: the filter does not match.
absl::StatusOr<bool> EventMaker::FillContents(const Entry& entry, Event& event) {
  ASSIGN_OR_RETURN(std::optional<Contents::Pair> pair, contents_.Read(entry));
  event.content_missing = !pair;
  if (!pair) return true;
  if (pair->version.content) bytes_ += pair->version.content->size();
  if (pair->before) bytes_ += pair->before->size();
  if (query_.filter) {
    ASSIGN_OR_RETURN(const bool matches, Matches(pair->version.content));
    if (!matches) {
      ASSIGN_OR_RETURN(event.left_filter, Matches(pair->before));
      if (!event.left_filter) return false;
    }
  }
  if (query_.include_changes) {
    static const auto* const empty = new document::Content();
    event.changes =
        document::Diff(pair->before ? *pair->before : *empty,
                       pair->version.content ? *pair->version.content : *empty, kChangesBytesMax);
  }
  if (query_.include_before) event.before = std::move(pair->before);
  if (query_.include_content) event.version = std::move(pair->version);
  return true;
}

absl::StatusOr<bool> EventMaker::Matches(const std::optional<document::Content>& content) const {
  if (query_.filter->empty()) return true;
  if (!content) return false;
  absl::StatusOr<bool> matches = query_.filter->Matches(*content, stopped_);
  // Whoever waits for such documents gets one too many, rather than none any more.
  if (ReasonOf(matches.status()) == ErrorReason::kInvalidFilter) return true;
  return matches;
}

absl::StatusOr<Reader::Outcome> Reader::CopyOn() {
  if (!copy_->complete) {
    effort_ = Effort::kLooked;
    versioning::CopyQuery query;
    query.at_position = copy_->at;
    query.collections = query_.selection.collections;
    query.id_prefix = query_.selection.id_prefix;
    query.filter = query_.filter;
    query.after = copy_->after;
    query.examined_bytes_max = query_.filter ? kFilteredBytesMax : kTurnBytesMax;
    query.stopped = [this] { return sink_->closed(); };
    versioning::CopyCursor documents = workshop_.documents.Copy(std::move(query));
    size_t taken = 0;
    bool full = false;
    while (!full && documents.Next()) {
      full = taken == kTurnEventsMax || !sink_->AddDocument(documents);
      if (full) break;
      copy_->after = {documents.collection(), documents.id()};
      ++taken;
    }
    RETURN_IF_ERROR(documents.status());
    if (!full) {
      const std::optional<versioning::CopyPlace> after = documents.resume_after();
      copy_->complete = !after;
      if (after) copy_->after = *after;
    }
  }
  // Sent for each part, also one in which nothing was found, so that a broken copy goes on behind
  // it.
  SendMessage();
  return Outcome::kSentMessage;
}

absl::Status CheckPosition(const store::Store& store, std::string_view field,
                           CommitPosition position) {
  const CommitPosition last = store.LastPosition();
  if (position > last) return versioning::PositionUnknown(field, position, last);
  // In front of everything there was never anything.
  const CommitPosition start = store.StartPosition();
  if (position != 0 && position < start) {
    return versioning::PositionTrimmed(field, position, start);
  }
  ASSIGN_OR_RETURN(const versioning::LedgerFloor floor, versioning::ReadLedgerFloor(store));
  return versioning::CheckKept(floor, field, position);
}

absl::StatusOr<CommitPosition> PositionBefore(const store::Store& store, UnixMicros time,
                                              const StopCheck& stopped) {
  const CommitPosition last = store.LastPosition();
  ASSIGN_OR_RETURN(const CommitPosition first, versioning::FirstPositionSince(store, time));
  CommitPosition before = last;
  versioning::LedgerCursor entries(store, first, 0);
  while (entries.Next()) {
    if (Stopped(stopped)) return StoppedError();
    if (entries.entry().time < time) continue;
    before = entries.position() - 1;
    break;
  }
  RETURN_IF_ERROR(entries.status());
  ASSIGN_OR_RETURN(const versioning::LedgerFloor floor, versioning::ReadLedgerFloor(store));
  RETURN_IF_ERROR(versioning::CheckTimeKept(floor, "start_time", time));
  return before;
}

absl::StatusOr<CommitPosition> OldestPosition(const store::Reader& reader) {
  const versioning::LedgerBlocks blocks(reader, 0);
  RETURN_IF_ERROR(blocks.status());
  const CommitPosition first = blocks.Valid() ? blocks.key() : 0;
  ASSIGN_OR_RETURN(const versioning::LedgerFloor floor, versioning::ReadLedgerFloor(reader));
  return std::max(first, floor.position);
}

}  // namespace strata::feed
