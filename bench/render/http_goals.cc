// The goals of the port for people.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/render/goal_forms.h"

namespace strata::bench {
namespace {

// What came with the port costs calls by gRPC nothing while nobody uses it.
std::vector<Goal> IdlePort() {
  std::vector<Goal> goals;
  for (const char* workload : {"W1 update", "W2 hot document", "W3 get"}) {
    const std::string of = absl::StrCat(workload, ", port for people idle");
    const std::string to = absl::StrCat(workload, ", no port for people");
    goals.push_back(AtLeast(absl::StrCat(of, ": calls/s of those without"), 0.97,
                            RatioOf("calls_ratio", of, to)));
    goals.push_back(AtMost(absl::StrCat(of, ": server CPU above that without"), 1,
                           Unit::kMicroseconds, RatioOf("server_cpu_above", of, to)));
  }
  return goals;
}

std::vector<Goal> GetsByHttp() {
  std::vector<Goal> goals;
  for (const char* bytes : {"300", "2048"}) {
    for (const char* in_flight : {"1", "16"}) {
      const auto by = [&](const char* way) {
        return absl::StrCat("JSON Get of ", bytes, " B, ", way, ", ", in_flight, " in flight");
      };
      goals.push_back(ToLookAt(absl::StrCat(by("HTTP"), ": server CPU of gRPC's"),
                               RatioOf("server_cpu_ratio", by("HTTP"), by("gRPC")), {}));
    }
  }
  return goals;
}

}  // namespace

std::vector<Goal> HttpGoals() {
  std::vector<Goal> all = IdlePort();
  for (Goal& goal : GetsByHttp()) all.push_back(std::move(goal));
  return all;
}

}  // namespace strata::bench
