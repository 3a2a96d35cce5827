// Cost against the number of documents in one collection.
#include <chrono>
#include <iostream>
#include <string>

#include "bench/growth/measure.h"
#include "bench/growth/served.h"
#include "bench/load/prepare.h"
#include "bench/support/process.h"

namespace strata::bench {
namespace {

using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

// A fill that is this slow ends the measurement at the point before.
constexpr std::chrono::seconds kFillMax{150};
constexpr std::chrono::seconds kQuietMax{20};

class DocumentsMeasurement {
 public:
  DocumentsMeasurement(const GrowthSettings& settings, FigureLines& lines)
      : lines_(lines),
        duration_(settings.full ? milliseconds(2000) : milliseconds(800)),
        served_(settings.folder + "/documents"),
        population_(served_.MakePopulation("documents", "deltas")) {}

  // False: there are fewer documents than that, and will not be more.
  bool Measure(int64_t documents) {
    const size_t before = population_.versions.size();
    population_.versions.resize(static_cast<size_t>(documents));
    const Measurement filled =
        Prepare(served_.channel(), *Fill(population_, {.until = Steady::now() + kFillMax}));
    if (population_.versions.back() == 0) return false;
    lines_.Number("documents_filled_per_second", {{"documents", documents}},
                  filled.calls_per_second(), Unit::kPerSecond);
    if (before == 0) MakeHistories();
    AwaitQuiet(served_.pid(), kQuietMax);
    Take(kGet, *GetAtRandom(population_, 1), documents);
    Population with_history = population_;
    with_history.versions.resize(kDocumentsWithHistory);
    Take(kHistory, *NewestTenAtRandom(with_history, 1), documents);
    Take(kUpdate, *UpdateAtRandom(population_, 1), documents);
    lines_.Number("resident_memory", {{"documents", documents}},
                  static_cast<double>(served_.resident_bytes()), Unit::kBytes);
    return true;
  }

  void Stop() {
    if (served_.Stop() != 0) lines_.Wrong("documents: the server did not end well");
  }

 private:
  void MakeHistories() {
    LoopSettings loop;
    loop.calls_max = kUpdatesForHistory;
    const auto updates = UpdateAtRandom(population_, 1);
    Check(RunLoop(served_.channel(), *updates, loop), "documents", lines_);
  }

  void Take(const std::string& call, Workload& workload, int64_t documents) {
    const Measurement measured = served_.Run(workload, kInFlight, duration_);
    Check(measured, std::to_string(documents) + " documents", lines_);
    Write({{"documents", documents}, {"call", call}, {"in_flight", kInFlight}}, measured, lines_);
    std::cerr << "." << std::flush;
  }

  FigureLines& lines_;
  const milliseconds duration_;
  Served served_;
  Population population_;
};

}  // namespace

void MeasureDocuments(const GrowthSettings& settings, FigureLines& lines) {
  DocumentsMeasurement measurement(settings, lines);
  for (const int64_t documents : {1'000, 10'000, 100'000, 1'000'000}) {
    if (documents > 100'000 && !settings.full) break;
    if (!measurement.Measure(documents)) break;
  }
  measurement.Stop();
}

}  // namespace strata::bench
