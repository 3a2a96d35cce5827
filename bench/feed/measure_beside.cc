// What W1 loses to those who follow: rounds of all cases in turns.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/feed/feed_server.h"
#include "bench/support/rounds.h"

namespace strata::bench {
namespace {

constexpr int kTurns = 4;  // rounds in turns for each of other measurements: what is told is small
constexpr int64_t kParked = 1'000;
constexpr char kNobody[] = "W1 update, nobody follows";
constexpr char kBaseline[] = "W1 update, the baseline";

struct Case {
  std::string workload;
  FeedServer* server = nullptr;
  std::function<std::unique_ptr<Watchers>()> follow;
  std::vector<Measurement> rounds{};
};

void RunRound(Case& one, std::chrono::milliseconds duration, FigureLines& lines) {
  const std::unique_ptr<Watchers> watchers = one.follow();
  one.server->AwaitQuiet();
  one.rounds.push_back(one.server->Update(kInFlight, duration, lines));
}

}  // namespace

void MeasureBeside(const FeedSettings& settings, FigureLines& lines) {
  FeedServer server(settings, "beside", 1);
  std::optional<FeedServer> baseline;
  if (!settings.baseline.empty()) baseline.emplace(settings, "baseline", 1, settings.baseline);
  const auto nobody = [] { return nullptr; };
  std::vector<Case> cases = {{kNobody, &server, nobody},
                             {"W1 update, one watcher", &server, [&] { return server.Watch({}); }},
                             {"W1 update, 1,000 parked watchers", &server,
                              [&] { return server.Park(settings.Scaled(kParked)); }}};
  if (baseline) cases.push_back({kBaseline, &*baseline, nobody});
  // Each begins a round in its turn, as the first has the coldest caches.
  for (int round = 0; round < settings.Rounds(kTurns); ++round) {
    for (size_t i = 0; i < cases.size(); ++i) {
      RunRound(cases[(static_cast<size_t>(round) + i) % cases.size()], settings.duration, lines);
    }
  }
  for (const Case& one : cases) {
    WriteCalls(one.workload, one.rounds, lines);
    if (one.workload == kBaseline) continue;
    for (const Case& to : cases) {
      const bool is_reference = to.workload == kNobody || to.workload == kBaseline;
      if (!is_reference || &to == &one) continue;
      WriteRatios(one.workload, one.rounds, to.workload, to.rounds, lines);
    }
  }
}

}  // namespace strata::bench
