#include "tests/serial/history.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

namespace strata::serial {
namespace {

constexpr int32_t kBehindAll = std::numeric_limits<int32_t>::max();

using Made = std::pair<std::string, int64_t>;  // document, version

class Contradictions {
 public:
  explicit Contradictions(size_t most) : most_(most) {}
  void Add(std::string first, std::string second, std::string what) {
    if (all_.size() == most_) return;
    all_.push_back({std::move(first), std::move(second), std::move(what)});
  }
  std::vector<Contradiction> Take() { return std::move(all_); }

 private:
  const size_t most_;
  std::vector<Contradiction> all_;
};

std::string NameOf(const std::string& document, int64_t version) {
  return document + " version " + std::to_string(version);
}

std::string NumberText(const std::optional<int64_t>& number) {
  return number ? std::to_string(*number) : "nothing";
}

class Replay {
 public:
  Replay(std::vector<Call> calls, size_t most) : calls_(std::move(calls)), found_(most) {}

  std::vector<Contradiction> Run() {
    for (Call& call : calls_) {
      if (call.is_read()) call.place = kBehindAll;
    }
    std::stable_sort(calls_.begin(), calls_.end(),
                     [](const Call& a, const Call& b) { return PlaceOf(a) < PlaceOf(b); });
    FindMakers();
    for (const Call& call : calls_) CarryOut(call);
    CheckTimes();
    return found_.Take();
  }

 private:
  struct State {
    int64_t version = 0;
    std::optional<int64_t> number;
  };

  static std::pair<int64_t, int32_t> PlaceOf(const Call& call) {
    return {call.position, call.place};
  }

  void FindMakers() {
    const Call* before = nullptr;
    for (const Call& call : calls_) {
      if (call.is_read()) continue;
      if (before != nullptr && PlaceOf(*before) == PlaceOf(call)) {
        found_.Add(before->name, call.name, "both stand at one place");
      }
      before = &call;
      for (const Effect& effect : call.effects) {
        const auto [first, fresh] = makers_.emplace(Made{effect.document, effect.version}, &call);
        if (fresh) continue;
        found_.Add(first->second->name, call.name,
                   "both made " + NameOf(effect.document, effect.version));
      }
    }
  }

  std::string MakerOf(const std::string& document, int64_t version) const {
    const auto maker = makers_.find({document, version});
    return maker == makers_.end() ? "" : maker->second->name;
  }

  // The one who stands between what a call knew and where it stands: who replaced the version too
  // early, or made it too late.
  void AddStale(const Call& call, const std::string& document, int64_t knew, int64_t is,
                const std::string& how) {
    found_.Add(
        call.name, knew < is ? MakerOf(document, knew + 1) : MakerOf(document, knew),
        how + NameOf(document, knew) + ", and at its place there is version " + std::to_string(is));
  }

  void CarryOut(const Call& call) {
    for (const Observation& one : call.observations) CheckObservation(call, one);
    // All effects of a unit begin with what was there before it.
    for (const Effect& effect : call.effects) Apply(call, effect);
  }

  void CheckObservation(const Call& call, const Observation& one) {
    const State& state = states_[one.document];
    if (!one.version) {
      if (state.number) {
        found_.Add(call.name, MakerOf(one.document, state.version),
                   "found no " + one.document + ", and at its place there is version " +
                       std::to_string(state.version));
      }
      return;
    }
    if (*one.version != state.version) {
      AddStale(call, one.document, *one.version, state.version, "saw ");
    } else if (one.number && one.number != state.number) {
      found_.Add(call.name, MakerOf(one.document, state.version),
                 "saw " + NumberText(one.number) + " in " + NameOf(one.document, state.version) +
                     ", which holds " + NumberText(state.number));
    }
  }

  void Apply(const Call& call, const Effect& effect) {
    State& state = states_[effect.document];
    if (effect.precondition && *effect.precondition != state.version) {
      AddStale(call, effect.document, *effect.precondition, state.version, "asked for ");
    }
    if (effect.version != state.version + 1) {
      AddStale(call, effect.document, effect.version - 1, state.version, "built on ");
    }
    state.version = std::max(effect.version, state.version);
    switch (effect.action) {
      case Action::kSet:
        state.number = effect.number;
        break;
      case Action::kAdd:
        state.number = state.number.value_or(0) + effect.number;
        break;
      case Action::kDelete:
        state.number.reset();
        break;
    }
    if (effect.answered && effect.answered != state.number) {
      found_.Add(call.name, MakerOf(effect.document, effect.version - 1),
                 "was answered " + NumberText(effect.answered) + " of " +
                     NameOf(effect.document, effect.version) + ", which holds " +
                     NumberText(state.number));
    }
  }

  // Nobody ended before one began who stands before it. Reads of one position are in no order.
  void CheckTimes() {
    const Call* earliest = nullptr;  // of those that stand behind
    for (size_t end = calls_.size(); end > 0;) {
      size_t begin = end;
      while (begin > 0 && PlaceOf(calls_[begin - 1]) == PlaceOf(calls_[end - 1])) --begin;
      for (size_t i = begin; i < end; ++i) {
        if (earliest == nullptr || earliest->ended >= calls_[i].begun) continue;
        found_.Add(calls_[i].name, earliest->name,
                   "the first stands before the second, which had ended when the first began");
      }
      for (size_t i = begin; i < end; ++i) {
        if (earliest == nullptr || calls_[i].ended < earliest->ended) earliest = &calls_[i];
      }
      end = begin;
    }
  }

  std::vector<Call> calls_;
  Contradictions found_;
  std::map<Made, const Call*> makers_;
  std::unordered_map<std::string, State> states_;
};

// What the ledger says of each call.
class Ledger {
 public:
  explicit Ledger(const std::vector<LedgerEntry>& entries) {
    for (const LedgerEntry& entry : entries) {
      by_call_[entry.call].push_back(&entry);
      makers_.emplace(Made{entry.document, entry.version}, entry.call);
    }
  }

  const std::vector<const LedgerEntry*>& Of(const std::string& call) {
    asked_[call] = true;
    return by_call_[call];
  }
  std::string MakerOf(const Effect& effect) const {
    const auto maker = makers_.find({effect.document, effect.version});
    return maker == makers_.end() ? "" : maker->second;
  }
  std::vector<std::string> NobodyAskedFor() const {
    std::vector<std::string> names;
    for (const auto& [name, entries] : by_call_) {
      if (!asked_.contains(name)) names.push_back(name);
    }
    return names;
  }

 private:
  std::map<std::string, std::vector<const LedgerEntry*>> by_call_;
  std::map<Made, std::string> makers_;
  std::unordered_map<std::string, bool> asked_;
};

// Whether a call and what the ledger has of it agree; gives it its versions and its place.
void Place(const std::vector<const LedgerEntry*>& entries, const Ledger& ledger, Call& call,
           Contradictions& found) {
  const bool is_known = call.ended != kNever;
  std::map<std::string, const LedgerEntry*> by_document;
  for (const LedgerEntry* entry : entries) {
    if (!by_document.emplace(entry->document, entry).second) {
      found.Add(call.name, "", "wrote " + entry->document + " twice");
    }
    if (entry->position != entries[0]->position) {
      found.Add(call.name, "", "its versions have several positions");
    }
  }
  for (Effect& effect : call.effects) {
    const auto entry = by_document.find(effect.document);
    if (entry == by_document.end()) {
      found.Add(call.name, ledger.MakerOf(effect),
                "the ledger does not have its write of " + effect.document);
      continue;
    }
    if (is_known && effect.version != entry->second->version) {
      found.Add(call.name, ledger.MakerOf(effect),
                "was answered " + NameOf(effect.document, effect.version) +
                    ", and the ledger says version " + std::to_string(entry->second->version));
    }
    effect.version = entry->second->version;
  }
  if (entries.empty()) return;
  if (entries.size() > call.effects.size()) found.Add(call.name, "", "did more than was asked for");
  if (is_known && call.position != entries[0]->position) {
    found.Add(call.name, "",
              "was answered position " + std::to_string(call.position) + ", and the ledger says " +
                  std::to_string(entries[0]->position));
  }
  const auto [first, last] =
      std::minmax_element(entries.begin(), entries.end(),
                          [](const auto* a, const auto* b) { return a->place < b->place; });
  if ((*last)->place - (*first)->place + 1 != static_cast<int32_t>(entries.size())) {
    found.Add(call.name, "", "others stand between its entries of the ledger");
  }
  call.position = entries[0]->position;
  call.place = (*first)->place;
}

}  // namespace

std::vector<Contradiction> Check(std::vector<Call> calls, size_t most) {
  return Replay(std::move(calls), most).Run();
}

std::vector<Contradiction> Resolve(const std::vector<LedgerEntry>& entries,
                                   std::vector<Call>& calls, size_t most) {
  Contradictions found(most);
  Ledger ledger(entries);
  std::erase_if(calls, [&](const Call& call) {
    return call.ended == kNever && (call.is_read() || ledger.Of(call.name).empty());
  });
  for (Call& call : calls) {
    if (!call.is_read()) Place(ledger.Of(call.name), ledger, call, found);
  }
  for (const std::string& name : ledger.NobodyAskedFor()) {
    found.Add(name, "", "is in the ledger, and nobody asked for it");
  }
  return found.Take();
}

std::string ToText(const std::vector<Contradiction>& contradictions) {
  std::string text;
  for (const Contradiction& one : contradictions) {
    text +=
        one.first + " and " + (one.second.empty() ? "nobody" : one.second) + ": " + one.what + "\n";
  }
  return text;
}

}  // namespace strata::serial
