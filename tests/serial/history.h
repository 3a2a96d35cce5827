// What clients of a store asked for and were told, and whether it is strictly serialisable.
//
// The store says where each commit stands, so nothing has to be searched: calls are put in the
// order of (position, place), carried out one after the other on a map, and each must have been
// told what the map says. Besides, a call that ended before another began stands before it.
//
// A document holds one whole number, or is deleted. What this cannot see: calls that were refused
// although they could have been done, and what nobody read or wrote.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace strata::serial {

inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

enum class Action { kSet, kAdd, kDelete };  // adding to what is not there begins with 0

// What a call does to one document.
struct Effect {
  std::string document;
  Action action = Action::kSet;
  int64_t number = 0;
  std::optional<int64_t> precondition = {};  // the version that it asked for
  int64_t version = 0;                       // that it made
  std::optional<int64_t> answered = {};      // the number that the answer showed, if it did
};

// What a call knows of one document.
struct Observation {
  std::string document;
  std::optional<int64_t> version = {};  // none: there is no current one
  std::optional<int64_t> number = {};   // if that was shown
};

// A call: a unit, a single write, or a read (which has no effects).
struct Call {
  std::string name;  // of its own: the request id, the transaction id
  // By one clock of the clients, before it was sent and after it was answered.
  int64_t begun = 0;
  int64_t ended = kNever;  // never: nobody knows what became of it
  std::vector<Effect> effects = {};
  std::vector<Observation> observations = {};
  int64_t position = 0;  // of a read: all commits up to this one were seen
  int32_t place = 0;     // in that commit

  bool is_read() const { return effects.empty(); }
};

// Two calls that cannot both be true; the second one's name is empty where one alone cannot.
struct Contradiction {
  std::string first;
  std::string second;
  std::string what;
};

// Of calls whose places are known: at most so many of what contradicts each other.
std::vector<Contradiction> Check(std::vector<Call> calls, size_t most = 10);

// A version as the ledger tells of it.
struct LedgerEntry {
  int64_t position = 0;
  int32_t place = 0;
  std::string document;
  int64_t version = 0;
  std::string call;  // its name
};

// Gives each call its place, and tells by the ledger what became of those that nobody knows of:
// they have happened with all their effects, or are taken out. What the ledger and an answer do not
// agree on comes back.
std::vector<Contradiction> Resolve(const std::vector<LedgerEntry>& ledger, std::vector<Call>& calls,
                                   size_t most = 10);

// A line for each.
std::string ToText(const std::vector<Contradiction>& contradictions);

}  // namespace strata::serial
