// The goals of cost against the number of documents.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/render/goal_forms.h"

namespace strata::bench {
namespace {

constexpr char kFew[] = ", 10^4 documents";

Goal CpuGrowth(const std::string& call, const std::string& documents, double limit) {
  return AtMost(absl::StrCat(call, ": server CPU with ", documents, " documents of that with 10^4"),
                limit, Unit::kRatio,
                RatioOf("server_cpu_ratio", absl::StrCat(call, ", ", documents, " documents"),
                        absl::StrCat(call, kFew)));
}

std::vector<Goal> Million() {
  constexpr char kScalePostgres[] = "postgresql, 1000000 documents";
  const auto against = [&](const std::string& call, const std::string& its) {
    return AtLeast(absl::StrCat(call, " with 10^6 documents: calls/s of PostgreSQL's"), 1.3,
                   {"calls_per_second",
                    {{"system", ""},
                     {"workload", absl::StrCat(call, ", 10^6 documents")},
                     {"in_flight", "64"}}},
                   {{"calls_per_second",
                     {{"system", kScalePostgres}, {"workload", its}, {"in_flight", "64"}}}});
  };
  return {
      CpuGrowth("Update", "10^6", 1.8),
      AtMost("Update: p99 with 10^6 documents of that with 10^4", 2, Unit::kRatio,
             RatioOf("latency_p99_ratio", "Update, 10^6 documents", absl::StrCat("Update", kFew))),
      against("Update", "W1 update"),
      CpuGrowth("Get", "10^6", 1.6),
      CpuGrowth("Get, 90 % of 1 %", "10^6", 1.1),
      against("Get", "W3 get"),
      against("Get, 90 % of 1 %", "W3 get, 90 % of 1 %"),
      CpuGrowth("History, newest ten", "10^6", 1.3)};
}

std::vector<Goal> TenMillion() {
  constexpr double kBlockCache =
      256 * kMebibyte;  // --block-cache-mib, as servers have it by default
  const Where most = {{"scale_documents", "10^7"}};
  return {CpuGrowth("Update", "10^7", 2.5),
          AtMost("Update: longest with 10^7 documents", 100 * kMillisecond, Unit::kMicroseconds,
                 {"latency_max", most}),
          AtMost("memory with 10^7 documents", 1.25 * kBlockCache, Unit::kBytes,
                 {"resident_memory", most}),
          AtMost("serving after a kill -9 with 10^7 documents", 3000 * kMillisecond,
                 Unit::kMicroseconds, {"serving", most})};
}

std::vector<Goal> Sustained() {
  const Where all = {{"sustained", "Update"}, {"what", "all"}};
  std::vector<Goal> goals = {
      AtMost("updates for minutes: written to the disk for each byte of content", 8, Unit::kRatio,
             {"written_per_byte", all}),
      AtMost("updates for minutes: room on the disk of what it is when compacted", 1.5,
             Unit::kRatio, {"disk_ratio", {{"sustained", "Update"}}})};
  for (const std::string what : {"heads", "versions", "ledger", "requests"}) {
    goals.push_back(ToLookAt(absl::StrCat("updates for minutes: written for tables of ", what),
                             {"written_per_byte", {{"sustained", "Update"}, {"what", what}}}, {}));
  }
  return goals;
}

}  // namespace

std::vector<Goal> ScaleGoals() {
  std::vector<Goal> all;
  for (const auto some : {Million, TenMillion, Sustained}) {
    for (Goal& goal : some()) all.push_back(std::move(goal));
  }
  return all;
}

}  // namespace strata::bench
