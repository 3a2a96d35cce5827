// Whether calls cost more the more documents are stored: the same calls on a server with 10^4
// documents and on one with a hundred times as many (a thousand times with --long), in turns; how
// long the longest update took, the most memory, and a start after a kill -9.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/growth/measure.h"
#include "bench/growth/served.h"
#include "bench/load/prepare.h"
#include "bench/support/process.h"
#include "bench/support/rounds.h"

namespace strata::bench {
namespace {

using std::chrono::milliseconds;

constexpr int kScaleRounds = 5;
constexpr milliseconds kReads{1500};
// Enough to have each server flush its memtables now and then, on whose account compactions are.
constexpr int64_t kUpdates = 60'000;
constexpr std::chrono::seconds kScaleQuietMax{120};

struct Size {
  const char* name;
  int64_t documents;
};
constexpr Size kFew = {"10^4", 10'000};
constexpr Size kMany = {"10^6", 1'000'000};
constexpr Size kMost = {"10^7", 10'000'000};

// What is measured, in this order.
constexpr char kGetFew[] = "Get, 90 % of 1 %";
const std::vector<std::string>& Calls() {
  static const std::vector<std::string> calls = {kGet, kGetFew, kHistory, kUpdate};
  return calls;
}

class Crowd {
 public:
  Crowd(const GrowthSettings& settings, const Size& size, FigureLines& lines)
      : size_(size),
        lines_(lines),
        folder_(settings.folder + "/scale-" + size.name),
        served_(folder_),
        population_(served_->MakePopulation("documents", "deltas")) {
    population_.versions.resize(static_cast<size_t>(size.documents));
    const Measurement filled = Prepare(served_->channel(), *Fill(population_));
    lines_.Number("documents_filled_per_second", {{"documents", size.name}},
                  filled.calls_per_second(), Unit::kPerSecond);
    Population with_history = WithHistory();
    const auto updates = UpdateAtRandom(with_history, 1);
    Update(*updates, kUpdatesForHistory);
    std::copy(with_history.versions.begin(), with_history.versions.end(),
              population_.versions.begin());
    // The first round is not to be the first time that anything is read.
    Update(*UpdateAtRandom(population_, 2), kUpdates);
    std::cerr << "." << std::flush;
  }

  Measurement Measure(const std::string& call, uint64_t seed) {
    AwaitQuiet(served_->pid(), kScaleQuietMax);
    Measurement measured = call == kUpdate
                               ? Update(*UpdateAtRandom(population_, seed), kUpdates)
                               : Checked(served_->Run(*Reads(call, seed), kInFlight, kReads));
    if (call == kUpdate)
      longest_update_ = std::max(longest_update_, measured.latencies.Quantile(1));
    return measured;
  }

  // What the last updates left in the log is read again.
  void KillAndStart() {
    const int64_t resident = PeakResidentBytes(served_->pid());
    served_->Kill();
    served_.reset();
    const auto start = std::chrono::steady_clock::now();
    served_.emplace(folder_);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    Number("serving", took.count(), Unit::kMicroseconds);
    Number("resident_memory", static_cast<double>(resident), Unit::kBytes);
    Number("latency_max", std::chrono::duration<double, std::micro>(longest_update_).count(),
           Unit::kMicroseconds);
    if (served_->Stop() != 0) lines_.Wrong("scale: the server did not end well");
  }

 private:
  Population WithHistory() const {
    Population some = population_;
    some.versions.resize(kDocumentsWithHistory);
    return some;
  }

  std::unique_ptr<Workload> Reads(const std::string& call, uint64_t seed) const {
    if (call == kHistory) return NewestTenAtRandom(WithHistory(), seed);
    return call == kGet ? GetAtRandom(population_, seed) : GetMostlyFew(population_, seed);
  }

  void Number(const std::string& figure, double value, Unit unit) const {
    lines_.Number(figure, {{"scale_documents", size_.name}}, value, unit);
  }

  // Its CPU time is all that comes of the updates, until the last compaction has ended.
  Measurement Update(Workload& updates, int64_t calls) {
    const auto before = CpuTime(served_->pid());
    LoopSettings loop;
    loop.in_flight = kInFlight;
    loop.calls_max = calls;
    Measurement measured = RunLoop(served_->channel(), updates, loop);
    AwaitQuiet(served_->pid(), kScaleQuietMax);
    measured.server_cpu = CpuTime(served_->pid()) - before;
    return Checked(std::move(measured));
  }

  Measurement Checked(Measurement measured) const {
    Check(measured, std::string(size_.name) + " documents", lines_);
    std::cerr << "." << std::flush;
    return measured;
  }

  const Size size_;
  FigureLines& lines_;
  const std::string folder_;
  std::optional<Served> served_;
  Population population_;
  std::chrono::nanoseconds longest_update_{0};
};

std::string Name(const std::string& call, const Size& size) {
  return call + ", " + size.name + " documents";
}

}  // namespace

void MeasureScale(const GrowthSettings& settings, FigureLines& lines) {
  const Size& size = settings.longest ? kMost : kMany;
  Crowd few(settings, kFew, lines);
  Crowd many(settings, size, lines);
  for (const std::string& call : Calls()) {
    std::vector<Measurement> of_few;
    std::vector<Measurement> of_many;
    for (int round = 0; round < kScaleRounds; ++round) {
      const auto seed = static_cast<uint64_t>(round) + 10;
      // Whoever comes second finds the machine as the first has left it.
      if (round % 2 == 0) of_few.push_back(few.Measure(call, seed));
      of_many.push_back(many.Measure(call, seed));
      if (round % 2 != 0) of_few.push_back(few.Measure(call, seed));
    }
    WriteRatios(Name(call, size), of_many, Name(call, kFew), of_few, lines);
    WriteCalls(Name(call, kFew), std::move(of_few), lines);
    WriteCalls(Name(call, size), std::move(of_many), lines);
  }
  few.KillAndStart();
  many.KillAndStart();
}

}  // namespace strata::bench
