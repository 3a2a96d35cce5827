// Cost against the number of versions, under every strategy.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "bench/growth/measure.h"
#include "bench/growth/served.h"
#include "bench/load/prepare.h"
#include "bench/support/process.h"
#include "bench/support/ten_fields.h"
#include "strata/v1/document_service.grpc.pb.h"

namespace strata::bench {
namespace {

using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

constexpr int kVersionRounds = 3;
constexpr int kReadsInFlight = 64;
// No two updates of one document are under way at once, which would be another measurement.
constexpr int kUpdatesInFlight = 4;

// The documents are so many that the updates, spread over them, add few versions to each.
struct VersionSize {
  int64_t versions;
  size_t documents;
};
constexpr VersionSize kSizes[] = {{1, 6000}, {100, 100}, {10'000, 4}};
constexpr std::chrono::seconds kVersionQuietMax{5};
// A strategy that takes longer for one size ends there: embedded history writes all versions with
// each update, so that 10,000 of them are 20 GB.
constexpr std::chrono::seconds kVersionFillMax{5};

constexpr int64_t kLargeBytes = 900'000;
constexpr int64_t kLargeVersionsMax = 40;

// The one in the middle by its CPU time, which neighbours on the machine disturb least.
size_t Median(const std::vector<Measurement>& rounds) {
  std::vector<size_t> order(rounds.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return rounds[a].server_cpu_us() < rounds[b].server_cpu_us();
  });
  return order[order.size() / 2];
}

class VersionsMeasurement {
 public:
  VersionsMeasurement(const GrowthSettings& settings, Served& served, std::string strategy,
                      FigureLines& lines)
      : lines_(lines),
        served_(served),
        strategy_(std::move(strategy)),
        duration_(settings.full ? milliseconds(400) : milliseconds(120)) {}

  // All sizes are there before anything is measured, and take turns, so that what moves on the
  // machine meanwhile is not taken for growth.
  void Measure() {
    for (const VersionSize& size : kSizes) FillOne(size);
    AwaitQuiet(served_.pid(), kVersionQuietMax);
    for (int round = 0; round < kVersionRounds; ++round) {
      for (Subject& subject : subjects_) {
        Take(kGet, *GetAtRandom(subject.population, 1), kReadsInFlight, subject);
        Take(kHistory, *NewestTenAtRandom(subject.population, 1), kReadsInFlight, subject);
        Take(kUpdate, *UpdateAtRandom(subject.population, 1), kUpdatesInFlight, subject);
      }
      std::cerr << "." << std::flush;
    }
    for (const Subject& subject : subjects_) {
      for (const auto& [call, rounds] : subject.rounds) {
        Write({{"strategy", strategy_},
               {"versions", subject.versions},
               {"call", call},
               {"in_flight", rounds.front().in_flight}},
              rounds, Median(rounds), lines_);
      }
    }
  }

  // Where a document's history does not fit any more, found with large versions.
  void FindLimit();

 private:
  struct Subject {
    Population population;
    int64_t versions = 0;                                    // of each document, before the updates
    std::map<std::string, std::vector<Measurement>> rounds;  // by call
  };

  void FillOne(const VersionSize& size) {
    Subject subject;
    subject.population =
        served_.MakePopulation(strategy_ + "-" + std::to_string(size.versions), strategy_);
    std::vector<int64_t>& versions = subject.population.versions;
    versions.resize(size.documents);
    Prepare(served_.channel(),
            *Fill(subject.population,
                  {.depth = size.versions, .until = Steady::now() + kVersionFillMax}));
    subject.versions = *std::min_element(versions.begin(), versions.end());
    if (subject.versions < size.versions) {
      WriteEnd("was stopped at " + std::to_string(subject.versions) + " versions of 300 B after " +
               std::to_string(kVersionFillMax.count()) + " s of filling");
    }
    if (subject.versions > 0) subjects_.push_back(std::move(subject));
  }

  void Take(const std::string& call, Workload& workload, int in_flight, Subject& subject) {
    Measurement measured = served_.Run(workload, in_flight, duration_);
    Check(measured, strategy_ + " with " + std::to_string(subject.versions) + " versions", lines_);
    subject.rounds[call].push_back(std::move(measured));
  }

  // A strategy that does not go to the end of a row.
  void WriteEnd(const std::string& why) {
    lines_.Text("end", {{"strategy", strategy_}, {"number", ++ends_}}, why);
  }

  FigureLines& lines_;
  Served& served_;
  const std::string strategy_;
  const milliseconds duration_;
  std::vector<Subject> subjects_;
  int ends_ = 0;
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
      lines_.Wrong(strategy_ + ": a large version was answered: " + status.error_message());
    }
    WriteEnd("refuses version " + std::to_string(version) + " of " + std::to_string(kLargeBytes) +
             " B: " + status.error_message());
    return;
  }
  WriteEnd("took all of " + std::to_string(kLargeVersionsMax) + " versions of " +
           std::to_string(kLargeBytes) + " B");
}

}  // namespace

void MeasureVersions(const GrowthSettings& settings, FigureLines& lines) {
  for (const char* strategy :
       {"full-copies", "current-flag", "embedded-history", "shadow-collection", "deltas"}) {
    const std::string folder = settings.folder + "/versions-" + strategy;
    {
      Served served(folder);
      VersionsMeasurement measurement(settings, served, strategy, lines);
      measurement.Measure();
      if (std::string_view(strategy) == "embedded-history") measurement.FindLimit();
    }
    // Some are gigabytes, and the next one wants the disk's cache to itself.
    std::filesystem::remove_all(folder);
  }
}

}  // namespace strata::bench
