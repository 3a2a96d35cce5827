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

constexpr int kInFlight = 64;
// These have about twenty versions more, so that pages of ten are full.
constexpr size_t kDocumentsWithHistory = 1000;
constexpr int64_t kUpdatesForHistory = 20'000;
// A fill that is this slow ends the measurement at the point before.
constexpr std::chrono::seconds kFillMax{150};
constexpr std::chrono::seconds kQuietMax{20};

class DocumentsMeasurement {
 public:
  DocumentsMeasurement(const GrowthSettings& settings, Figures& figures)
      : figures_(figures),
        duration_(settings.full ? milliseconds(2000) : milliseconds(800)),
        served_(settings.folder + "/documents"),
        population_(served_.MakePopulation("documents", "deltas")) {}

  // False: there are fewer documents than that, and will not be more.
  bool Measure(int64_t documents) {
    DocumentsPoint point;
    point.documents = documents;
    const size_t before = population_.versions.size();
    population_.versions.resize(static_cast<size_t>(documents));
    const Measurement filled =
        Prepare(served_.channel(), *Fill(population_, {.until = Steady::now() + kFillMax}));
    if (population_.versions.back() == 0) return false;
    point.fills_per_second = filled.calls_per_second();
    if (before == 0) MakeHistories();
    AwaitQuiet(served_.pid(), kQuietMax);
    Take(Operation::kGet, *GetAtRandom(population_, 1), point);
    Population with_history = population_;
    with_history.versions.resize(kDocumentsWithHistory);
    Take(Operation::kHistory, *NewestTenAtRandom(with_history, 1), point);
    Take(Operation::kUpdate, *UpdateAtRandom(population_, 1), point);
    point.resident_bytes = served_.resident_bytes();
    figures_.documents.push_back(std::move(point));
    return true;
  }

  void Stop() {
    if (served_.Stop() != 0) figures_.wrong.push_back("documents: the server did not end well");
  }

 private:
  void MakeHistories() {
    LoopSettings loop;
    loop.calls_max = kUpdatesForHistory;
    const auto updates = UpdateAtRandom(population_, 1);
    Check(RunLoop(served_.channel(), *updates, loop), "documents", figures_);
  }

  void Take(Operation operation, Workload& workload, DocumentsPoint& point) {
    Measurement& measured = point.costs.operations[static_cast<size_t>(operation)];
    measured = served_.Run(workload, kInFlight, duration_);
    measured.workload = kOperationNames[static_cast<size_t>(operation)];
    Check(measured, std::to_string(point.documents) + " documents", figures_);
    std::cerr << "." << std::flush;
  }

  Figures& figures_;
  const milliseconds duration_;
  Served served_;
  Population population_;
};

}  // namespace

void MeasureDocuments(const GrowthSettings& settings, Figures& figures) {
  DocumentsMeasurement measurement(settings, figures);
  for (const int64_t documents : {1'000, 10'000, 100'000, 1'000'000}) {
    if (documents > 100'000 && !settings.full) break;
    if (!measurement.Measure(documents)) break;
  }
  measurement.Stop();
}

}  // namespace strata::bench
