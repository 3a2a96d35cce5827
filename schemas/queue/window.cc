#include "schemas/queue/window.h"

#include <algorithm>
#include <iterator>

#include "schemas/base/status_macros.h"

namespace strata::queue {

absl::Status Window::Fill(const store::Reader& reader, UnixMicros now) {
  for (int32_t priority = kPriorityMax; priority >= 0; --priority) {
    const Rank& rank = ranks_[static_cast<size_t>(priority)];
    if (rank.next_due > now || rank.fresh.size() >= kHintsMax / 4) continue;
    RETURN_IF_ERROR(Fill(reader, now, priority));
  }
  return absl::OkStatus();
}

absl::Status Window::Fill(const store::Reader& reader, UnixMicros now, int32_t priority) {
  Rank& rank = ranks_[static_cast<size_t>(priority)];
  // Behind what was fetched last: what was handed out there is deleted, and slow to pass over.
  const std::string after =
      rank.known_to ? HintKey(incarnation_, HintOf(priority, *rank.known_to)) : "";
  const auto cursor =
      reader.Scan(store::Keyspace::kQueueIndex, DueRange(incarnation_, priority, after));
  UnixMicros next_due = kNever;
  size_t fetched = 0;
  for (; cursor->Valid(); cursor->Next()) {
    const std::optional<Hint> hint = ParseHintKey(cursor->key());
    if (!hint) continue;
    if (hint->number > now || rank.fresh.size() >= kHintsMax || ++fetched > kFetchedMax) {
      next_due = hint->number;
      break;
    }
    Insert(rank, PlaceOf(*hint), HintValue::Decode(cursor->value()).state == HintState::kReserved);
    rank.known_to = PlaceOf(*hint);
  }
  RETURN_IF_ERROR(cursor->status());
  rank.next_due = next_due;
  return absl::OkStatus();
}

void Window::LookAnew() {
  left_suspects_ = false;
  for (Rank& rank : ranks_) {
    rank.known_to.reset();
    rank.next_due = std::numeric_limits<UnixMicros>::min();
  }
}

void Window::Clear() {
  for (Rank& rank : ranks_) rank = Rank();
}

void Window::Insert(Rank& rank, const Place& place, bool suspect) {
  if (!suspect) {
    rank.fresh.emplace(place, true);
  } else if (rank.suspects.size() < kSuspectsMax) {
    rank.suspects.emplace(place, true);
  } else {
    left_suspects_ = true;
  }
}

std::optional<Window::Entry> Window::First(bool suspects) const { return Any(suspects, 0); }

std::optional<Window::Entry> Window::Any(bool suspects, uint64_t random) const {
  constexpr size_t kAmong = 64;
  for (int32_t priority = kPriorityMax; priority >= 0; --priority) {
    const Rank& rank = ranks_[static_cast<size_t>(priority)];
    const bool suspect =
        suspects && !rank.suspects.empty() &&
        (rank.fresh.empty() || rank.suspects.begin()->first < rank.fresh.begin()->first);
    const std::map<Place, bool>& places = suspect ? rank.suspects : rank.fresh;
    if (places.empty()) {
      const auto place = std::find_if(rank.overdue.begin(), rank.overdue.end(),
                                      [&](const auto& entry) { return suspects || !entry.second; });
      if (place == rank.overdue.end()) continue;
      return Entry{HintOf(priority, place->first), place->second, true};
    }
    auto place = places.begin();
    if (random != 0) {
      std::advance(place, static_cast<std::ptrdiff_t>(random % std::min(kAmong, places.size())));
    }
    return Entry{HintOf(priority, place->first), suspect};
  }
  return std::nullopt;
}

void Window::Take(const Hint& hint) { Remove(hint); }

bool Window::Knows(const Hint& hint) const {
  const auto behind = [&](const Rank& rank) {
    return (rank.known_to && PlaceOf(hint) <= *rank.known_to) || hint.number < rank.next_due;
  };
  for (int32_t priority = kPriorityMax; priority > hint.priority; --priority) {
    if (ranks_[static_cast<size_t>(priority)].next_due <= hint.number) return false;
  }
  return behind(ranks_[static_cast<size_t>(hint.priority)]);
}

void Window::Add(const Hint& hint, bool suspect, UnixMicros now) {
  Rank& rank = RankOf(hint);
  const Place place = PlaceOf(hint);
  const bool fetched = rank.known_to && place <= *rank.known_to;
  if (!fetched &&
      (hint.number > now || hint.number >= rank.next_due || rank.fresh.size() >= kHintsMax)) {
    rank.next_due = std::min(rank.next_due, hint.number);
    return;
  }
  Insert(rank, place, suspect);
  if (!fetched) {
    rank.known_to = place;
    return;
  }
  // Those that come back must not make it grow for ever: the last ones are fetched again.
  if (rank.fresh.size() <= 2 * kHintsMax) return;
  const Place last = std::prev(rank.fresh.end())->first;
  rank.fresh.erase(std::prev(rank.fresh.end()));
  rank.known_to = std::prev(rank.fresh.end())->first;
  rank.next_due = std::min(rank.next_due, last.due);
}

void Window::Remove(const Hint& hint) {
  Rank& rank = RankOf(hint);
  rank.fresh.erase(PlaceOf(hint));
  rank.suspects.erase(PlaceOf(hint));
  rank.overdue.erase(PlaceOf(hint));
}

bool Window::AddOverdue(const Hint& hint, bool suspect) {
  std::map<Place, bool>& overdue = RankOf(hint).overdue;
  if (overdue.size() >= kSuspectsMax) return false;
  overdue.emplace(PlaceOf(hint), suspect);
  return true;
}

bool Window::HasOverdue() const {
  return std::any_of(ranks_.begin(), ranks_.end(),
                     [](const Rank& rank) { return !rank.overdue.empty(); });
}

UnixMicros Window::NextDue() const {
  UnixMicros next = kNever;
  for (const Rank& rank : ranks_) next = std::min(next, rank.next_due);
  return next;
}

std::optional<UnixMicros> Window::Oldest() const {
  std::optional<UnixMicros> oldest;
  for (const Rank& rank : ranks_) {
    for (const auto* places : {&rank.fresh, &rank.suspects}) {
      if (places->empty()) continue;
      const UnixMicros due = places->begin()->first.due;
      if (!oldest || due < *oldest) oldest = due;
    }
  }
  return oldest;
}

}  // namespace strata::queue
