// What became of each message of a storm over a queue: as its consumers were told, and as the
// server has it; and whether the two agree.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace strata::fault {

// What is to be done with a message; by its number.
enum class Errand {
  kWork,       // has an effect, in the commit of its acknowledgement
  kPassOn,     // besides, a message to another queue
  kPlain,      // is acknowledged, and that is all
  kRefuse,     // its consumers say that it is dead
  kFailAlways  // its consumers roll it back
};
inline Errand ErrandOf(int64_t number) {
  if (number % 100 == 50) return Errand::kRefuse;
  if (number % 200 == 51) return Errand::kFailAlways;
  if (number % 8 == 7) return Errand::kPlain;
  return number % 4 == 0 ? Errand::kPassOn : Errand::kWork;
}

// Of one message.
struct Fate {
  // What its consumers were told.
  std::atomic<int32_t> acknowledged = 0;  // by answers of which none repeats another
  std::atomic<int32_t> unanswered = 0;    // acknowledgements whose answers nobody waited for
  // What the server has of it.
  int32_t finished = 0;
  int32_t dead = 0;
  int32_t unfinished = 0;
  int32_t effects = 0;
  int32_t passed_on = 0;
};

// Each message by its number, from 0.
using Ledger = std::vector<Fate>;

// What is wrong; the first few of many.
inline std::vector<std::string> FaultsOf(const Ledger& ledger) {
  constexpr size_t kMany = 20;
  std::vector<std::string> faults;
  for (size_t number = 0; number < ledger.size() && faults.size() < kMany; ++number) {
    const Fate& fate = ledger[number];
    const Errand errand = ErrandOf(static_cast<int64_t>(number));
    const auto expect = [&](bool holds, const std::string& what) {
      if (!holds) faults.push_back("message " + std::to_string(number) + " " + what);
    };
    expect(fate.unfinished == 0, "is not finished");
    expect(fate.finished + fate.dead == 1, "is finished " + std::to_string(fate.finished) +
                                               " times, and dead " + std::to_string(fate.dead));
    const bool works = errand == Errand::kWork || errand == Errand::kPassOn;
    expect(fate.effects == (works ? fate.finished : 0),
           "has " + std::to_string(fate.effects) + " effects");
    expect(fate.passed_on == (errand == Errand::kPassOn ? fate.finished : 0),
           "was passed on " + std::to_string(fate.passed_on) + " times");
    expect(fate.acknowledged <= fate.finished,
           "was acknowledged " + std::to_string(fate.acknowledged) + " times");
    expect(fate.finished <= fate.acknowledged + fate.unanswered,
           "is finished, and nobody acknowledged it");
    if (errand == Errand::kRefuse || errand == Errand::kFailAlways) {
      expect(fate.dead == 1, "is not dead");
    }
  }
  return faults;
}

}  // namespace strata::fault
