// What W1 loses to those who follow: rounds of all cases in turns.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/feed/feed_server.h"
#include "bench/feed/rounds.h"

namespace strata::bench {
namespace {

constexpr int kInFlight = 64;
constexpr int64_t kParked = 1'000;
constexpr char kNobody[] = "W1 update, nobody follows";
constexpr char kBaseline[] = "W1 update, the baseline";

struct Case {
  std::string workload;
  std::function<std::unique_ptr<Watchers>()> follow;
  std::vector<Measurement> rounds{};
};

}  // namespace

void MeasureBeside(const FeedSettings& settings, FigureLines& lines) {
  FeedServer server(settings, "beside", 1);
  std::optional<FeedServer> baseline;
  if (!settings.baseline.empty()) baseline.emplace(settings, "baseline", 1, settings.baseline);
  std::vector<Case> cases = {
      {kNobody, [] { return nullptr; }},
      {"W1 update, one watcher", [&] { return server.Watch({}); }},
      {"W1 update, 1,000 parked watchers", [&] { return server.Park(settings.Scaled(kParked)); }}};
  std::vector<Measurement> before;
  for (int round = 0; round < settings.rounds; ++round) {
    if (baseline) {
      baseline->AwaitQuiet();
      before.push_back(baseline->Update(kInFlight, settings.duration, lines));
    }
    for (Case& one : cases) {
      const std::unique_ptr<Watchers> watchers = one.follow();
      server.AwaitQuiet();
      one.rounds.push_back(server.Update(kInFlight, settings.duration, lines));
    }
  }
  for (const Case& one : cases) {
    WriteCalls(one.workload, one.rounds, lines);
    if (baseline) WriteRatios(one.workload, one.rounds, kBaseline, before, lines);
    if (one.workload != kNobody) {
      WriteRatios(one.workload, one.rounds, kNobody, cases.front().rounds, lines);
    }
  }
  if (baseline) WriteCalls(kBaseline, before, lines);
}

}  // namespace strata::bench
