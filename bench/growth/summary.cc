#include "bench/growth/summary.h"

#include <algorithm>
#include <cmath>

#include "bench/support/table.h"

namespace strata::bench {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;
constexpr int64_t kStartBytesMax = 64 * kMebibyte;
constexpr double kStreamKibMax = 32;
constexpr double kServingMsMax = 1000;
constexpr int64_t kGigabyte = 1'000'000'000;
constexpr double kBesideMin = 0.9;
// From 100 versions to 10,000.
constexpr double kGrowthMax = 0.1;
// A write is held as message, content, record and in a memtable; memtables, log and caches have
// their own besides.
constexpr int64_t kFormsMax = 4;
constexpr int64_t kBesidesMax = 256 * kMebibyte;

std::string Share(double share) { return Number(share * 100, 0) + " %"; }

void AddIdle(const Figures& figures, std::vector<Goal>& goals) {
  for (const IdleResult& idle : figures.idle) {
    const std::string each = Digits(idle.kib_each()) + " KiB";
    if (idle.what != "connections") {
      goals.push_back({"at most 32 KiB for each of 1,000 idle " + idle.what, each,
                       idle.kib_each() <= kStreamKibMax});
    }
    const double beside = idle.get_beside.calls_per_second() / idle.get_before.calls_per_second();
    goals.push_back({"Get beside " + Number(static_cast<double>(idle.asked), 0) + " idle " +
                         idle.what + ": at least 90 % of the calls/s without them",
                     Share(beside), beside >= kBesideMin});
  }
}

void AddBursts(const Figures& figures, std::vector<Goal>& goals) {
  for (const BurstResult& burst : figures.bursts) {
    if (!burst.stalled) {
      goals.push_back(
          {Describe(burst) + ": nothing but OK and RESOURCE_EXHAUSTED, true to its word",
           Number(static_cast<double>(burst.accepted), 0) + " and " +
               Number(static_cast<double>(burst.refused), 0),
           burst.wrong.empty()});
    }
    goals.push_back(
        {(burst.stalled ? Describe(burst) : "the same") +
             ": memory grows by at most four times that and 256 MiB besides",
         Mebibytes(burst.growth()),
         burst.growth() <= kFormsMax * burst.in_flight_mib_max * kMebibyte + kBesidesMax});
  }
}

void AddVersions(const Figures& figures, std::vector<Goal>& goals) {
  for (const VersionsPoint& most : figures.versions) {
    if (most.versions < 10'000 || most.strategy == "embedded-history") continue;
    const auto few = std::find_if(figures.versions.begin(), figures.versions.end(),
                                  [&](const VersionsPoint& point) {
                                    return point.strategy == most.strategy && point.versions == 100;
                                  });
    if (few == figures.versions.end()) continue;
    for (const Operation operation : {Operation::kGet, Operation::kHistory}) {
      const double before = few->costs.of(operation).server_cpu_us();
      const double growth = most.costs.of(operation).server_cpu_us() / before - 1;
      goals.push_back({most.strategy + ", " + kOperationNames[static_cast<size_t>(operation)] +
                           ": at most 10 % more CPU with 10,000 versions than with 100",
                       Share(std::abs(growth)) + (growth > 0 ? " more" : " less"),
                       growth <= kGrowthMax});
    }
  }
}

void AddStarts(const Figures& figures, std::vector<Goal>& goals) {
  if (figures.starts.empty()) return;
  goals.push_back({"at most 64 MiB resident at start on " + figures.starts.front().what,
                   Mebibytes(figures.starts.front().resident_bytes),
                   figures.starts.front().resident_bytes <= kStartBytesMax});
  for (const StartResult& start : figures.starts) {
    const bool large = start.directory_bytes >= kGigabyte;
    goals.push_back({"serving within 1 s of exec on " + start.what +
                         (large ? "" : " (not yet the goal's 1 GB)"),
                     Digits(start.serving_ms) + " ms", start.serving_ms <= kServingMsMax});
  }
}

}  // namespace

std::vector<Goal> GrowthGoals(const Figures& figures) {
  std::vector<Goal> goals;
  AddVersions(figures, goals);
  AddIdle(figures, goals);
  AddBursts(figures, goals);
  AddStarts(figures, goals);
  return goals;
}

std::string Mebibytes(int64_t bytes) {
  return Digits(static_cast<double>(bytes) / static_cast<double>(kMebibyte)) + " MiB";
}

std::string Describe(const BurstResult& burst) {
  return Number(static_cast<double>(burst.calls), 0) + (burst.stalled ? " unfinished" : "") +
         " updates of 1 MiB on " + std::to_string(burst.connections) +
         (burst.connections == 1 ? " connection, " : " connections, ") +
         (burst.at_once == 1 ? "one by one, " : "") + std::to_string(burst.in_flight_mib_max) +
         " MiB in flight";
}

}  // namespace strata::bench
