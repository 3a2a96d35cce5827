#include "bench/growth/summary.h"

#include <algorithm>

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
constexpr double kHistorySlowerMax = 1.1;
// A request's bytes, the document made of them, and what commits.
constexpr double kBurstFactorMax = 3;

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
    goals.push_back({Describe(burst) + ": nothing but OK and RESOURCE_EXHAUSTED, true to its word",
                     Number(static_cast<double>(burst.accepted), 0) + " and " +
                         Number(static_cast<double>(burst.refused), 0),
                     burst.wrong.empty()});
    const double limit = static_cast<double>(burst.in_flight_mib_max * kMebibyte);
    goals.push_back({"the same: memory grows by at most three times what may be in flight",
                     Mebibytes(burst.growth()),
                     static_cast<double>(burst.growth()) <= kBurstFactorMax * limit});
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
      const double slower =
          few->costs.of(operation).calls_per_second() / most.costs.of(operation).calls_per_second();
      goals.push_back({most.strategy + ", " + kOperationNames[static_cast<size_t>(operation)] +
                           ": at most 10 % slower with 10,000 versions than with 100",
                       slower > 1 ? Share(slower - 1) + " slower" : Share(1 - slower) + " faster",
                       slower <= kHistorySlowerMax});
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
  return Number(static_cast<double>(burst.calls), 0) + " updates of 1 MiB on " +
         std::to_string(burst.connections) +
         (burst.connections == 1 ? " connection, " : " connections, ") +
         std::to_string(burst.in_flight_mib_max) + " MiB in flight";
}

}  // namespace strata::bench
