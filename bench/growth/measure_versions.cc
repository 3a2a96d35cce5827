// Cost against the number of versions, under every strategy.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "bench/growth/measure.h"
#include "bench/growth/served.h"
#include "bench/load/prepare.h"
#include "bench/support/process.h"
#include "bench/support/table.h"
#include "bench/support/ten_fields.h"
#include "strata/v1/document_service.grpc.pb.h"

namespace strata::bench {
namespace {

using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

constexpr int kRounds = 3;
constexpr int kReadsInFlight = 64;
// No two updates of one document are under way at once, which would be another measurement.
constexpr int kUpdatesInFlight = 4;

// The documents are so many that the updates, spread over them, add few versions to each.
struct Size {
  int64_t versions;
  size_t documents;
};
constexpr Size kSizes[] = {{1, 6000}, {100, 100}, {10'000, 4}};
constexpr std::chrono::seconds kQuietMax{5};
// A strategy that takes longer for one size ends there: embedded history writes all versions with
// each update, so that 10,000 of them are 20 GB.
constexpr std::chrono::seconds kFillMax{5};

constexpr int64_t kLargeBytes = 900'000;
constexpr int64_t kLargeVersionsMax = 40;

std::string Count(int64_t value) { return Number(static_cast<double>(value), 0); }

// The one in the middle by its CPU time, which neighbours on the machine disturb least.
Measurement Median(std::vector<Measurement>& rounds) {
  const auto middle = rounds.begin() + static_cast<std::ptrdiff_t>(rounds.size() / 2);
  std::nth_element(rounds.begin(), middle, rounds.end(),
                   [](const Measurement& a, const Measurement& b) {
                     return a.server_cpu_us() < b.server_cpu_us();
                   });
  return std::move(*middle);
}

class VersionsMeasurement {
 public:
  VersionsMeasurement(const GrowthSettings& settings, Served& served, std::string strategy,
                      Figures& figures)
      : figures_(figures),
        served_(served),
        strategy_(std::move(strategy)),
        duration_(settings.full ? milliseconds(400) : milliseconds(120)) {}

  // All sizes are there before anything is measured, and take turns, so that what moves on the
  // machine meanwhile is not taken for growth.
  void Measure() {
    for (const Size& size : kSizes) FillOne(size);
    AwaitQuiet(served_.pid(), kQuietMax);
    for (int round = 0; round < kRounds; ++round) {
      for (Subject& subject : subjects_) {
        Take(Operation::kGet, *GetAtRandom(subject.population, 1), kReadsInFlight, subject);
        Take(Operation::kHistory, *NewestTenAtRandom(subject.population, 1), kReadsInFlight,
             subject);
        Take(Operation::kUpdate, *UpdateAtRandom(subject.population, 1), kUpdatesInFlight, subject);
      }
      std::cerr << "." << std::flush;
    }
    for (Subject& subject : subjects_) {
      for (size_t i = 0; i < kOperationNames.size(); ++i) {
        subject.point.costs.operations[i] = Median(subject.rounds[i]);
      }
      figures_.versions.push_back(std::move(subject.point));
    }
  }

  // Where a document's history does not fit any more, found with large versions.
  void FindLimit();

 private:
  struct Subject {
    Population population;
    VersionsPoint point;
    std::array<std::vector<Measurement>, 3> rounds;
  };

  void FillOne(const Size& size) {
    Subject subject;
    subject.population =
        served_.MakePopulation(strategy_ + "-" + std::to_string(size.versions), strategy_);
    std::vector<int64_t>& versions = subject.population.versions;
    versions.resize(size.documents);
    Prepare(served_.channel(),
            *Fill(subject.population, {.depth = size.versions, .until = Steady::now() + kFillMax}));
    subject.point.strategy = strategy_;
    subject.point.documents = static_cast<int64_t>(size.documents);
    subject.point.versions = *std::min_element(versions.begin(), versions.end());
    if (subject.point.versions < size.versions) {
      figures_.ends.push_back({strategy_, "stopped at " + Count(subject.point.versions) +
                                              " versions of 300 B after " +
                                              std::to_string(kFillMax.count()) +
                                              " s of filling, as each update writes them all"});
    }
    if (subject.point.versions > 0) subjects_.push_back(std::move(subject));
  }

  void Take(Operation operation, Workload& workload, int in_flight, Subject& subject) {
    Measurement measured = served_.Run(workload, in_flight, duration_);
    measured.workload = kOperationNames[static_cast<size_t>(operation)];
    measured.system = "strata " + strategy_;
    Check(measured, strategy_ + " with " + Count(subject.point.versions) + " versions", figures_);
    subject.rounds[static_cast<size_t>(operation)].push_back(std::move(measured));
  }

  Figures& figures_;
  Served& served_;
  const std::string strategy_;
  const milliseconds duration_;
  std::vector<Subject> subjects_;
};

void VersionsMeasurement::FindLimit() {
  const std::string collection = strategy_ + "-large";
  served_.MakePopulation(collection, strategy_);
  const auto stub = v1::DocumentService::NewStub(served_.channel());
  for (int64_t version = 1; version <= kLargeVersionsMax; ++version) {
    v1::UpdateRequest request;
    request.set_collection(collection);
    request.set_id("large");
    request.set_allow_missing(true);
    request.set_omit_content(true);
    request.mutable_replace()->set_bson(TenFields(version, version, kLargeBytes));
    v1::UpdateResponse response;
    grpc::ClientContext context;
    const grpc::Status status = stub->Update(&context, request, &response);
    if (status.ok() && response.document().version() == version) continue;
    if (status.error_code() != grpc::StatusCode::RESOURCE_EXHAUSTED) {
      figures_.wrong.push_back(strategy_ +
                               ": a large version was answered: " + status.error_message());
    }
    figures_.ends.push_back({strategy_, "refuses version " + std::to_string(version) + " of " +
                                            Count(kLargeBytes) + " B: " + status.error_message()});
    return;
  }
  figures_.ends.push_back({strategy_, "took all of " + std::to_string(kLargeVersionsMax) +
                                          " versions of " + Count(kLargeBytes) + " B"});
}

}  // namespace

void MeasureVersions(const GrowthSettings& settings, Figures& figures) {
  for (const char* strategy :
       {"full-copies", "current-flag", "embedded-history", "shadow-collection", "deltas"}) {
    const std::string folder = settings.folder + "/versions-" + strategy;
    {
      Served served(folder);
      VersionsMeasurement measurement(settings, served, strategy, figures);
      measurement.Measure();
      if (std::string_view(strategy) == "embedded-history") measurement.FindLimit();
    }
    // Some are gigabytes, and the next one wants the disk's cache to itself.
    std::filesystem::remove_all(folder);
  }
}

}  // namespace strata::bench
