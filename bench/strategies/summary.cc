#include "bench/strategies/summary.h"

#include <algorithm>

#include "bench/support/table.h"

namespace strata::bench {
namespace {

constexpr double kDeltasShareMax = 0.04;
constexpr double kBesidesContentsMax = 200;
constexpr double kLayoutOverheadMax = 1.15;

std::string Percent(double share) { return Number(share * 100, 1) + " %"; }

// What the contents take: without the headers that share their records.
double ContentsAlone(const Result& result) {
  return static_cast<double>(result.bytes.contents() - result.bare.contents());
}

}  // namespace

std::vector<Goal> StorageGoals(const Report& report) {
  std::vector<Goal> goals;
  const double versions = static_cast<double>(report.versions);
  for (const Result& result : report.results) {
    if (!result.durable) continue;
    const double besides = static_cast<double>(result.headers_requests_ledger()) / versions;
    goals.push_back({result.strategy + ": headers, requests and ledger at most 200 B a version",
                     Digits(besides) + " B", besides <= kBesidesContentsMax});
    if (result.strategy == "deltas") {
      const double raw = static_cast<double>(report.bson_bytes);
      const double share = static_cast<double>(result.bytes.contents()) / raw;
      goals.push_back({"deltas: content keyspaces at most 4 % of the raw contents",
                       Percent(share) + ", " + Percent(ContentsAlone(result) / raw) +
                           " without the headers in the same records",
                       share <= kDeltasShareMax});
    } else {
      const double ratio =
          ContentsAlone(result) / static_cast<double>(report.engine(result.engine).raw_bytes);
      goals.push_back({result.strategy + ": contents within 15 % of what " + result.engine +
                           " makes of them raw",
                       Percent(ratio), ratio <= kLayoutOverheadMax});
    }
  }
  return goals;
}

std::string CrashSummary(const CrashResult& crash) {
  std::string summary;
  for (const CrashPoint& point : crash.points) {
    if (point.findings.empty()) continue;
    if (!summary.empty()) summary += "; ";
    summary += "after " + std::to_string(point.writes) +
               (point.writes == 1 ? " write: " : " writes: ") + point.findings.front();
    if (point.findings.size() > 1) {
      summary += " (and " + std::to_string(point.findings.size() - 1) + " more)";
    }
    summary += point.findings_after == 0 ? ", gone with the next update" : ", still there later";
  }
  const std::string points = std::to_string(crash.points.size());
  return summary.empty() ? "nothing, at any of " + points + " points" : summary;
}

const CrashResult& CrashOf(const Report& report, const std::string& strategy) {
  return *std::find_if(report.crashes.begin(), report.crashes.end(),
                       [&](const CrashResult& crash) { return crash.strategy == strategy; });
}

}  // namespace strata::bench
