// Whether queues that nobody uses cost calls on documents anything: W1 to W3 beside another server
// program in turns, such as one from before there were queues.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/queue/queue_server.h"
#include "bench/support/rounds.h"

namespace strata::bench {
namespace {

constexpr int kBaselineTurns =
    4;  // rounds in turns for each of other measurements: what is told is small
constexpr int kWriters = 16;

struct Case {
  std::string workload;
  int in_flight = kInFlight;
  std::function<std::unique_ptr<Workload>(QueueServer& server, uint64_t seed)> make;
  std::vector<Measurement> rounds{};
  std::vector<Measurement> before{};
};

}  // namespace

void MeasureBaseline(const QueueLoadSettings& settings, FigureLines& lines) {
  if (settings.baseline.empty()) return;
  QueueServer server(settings, "unused");
  QueueServer baseline(settings, "baseline", settings.baseline);
  Case cases[] = {{.workload = "W1 update",
                   .make = [](QueueServer& one,
                              uint64_t seed) { return UpdateAtRandom(one.population(), seed); }},
                  {.workload = "W2 hot document",
                   .in_flight = kWriters,
                   .make =
                       [](QueueServer& one, uint64_t seed) {
                         return UpdateHot(one.population().collection,
                                          "hot-" + std::to_string(seed));
                       }},
                  {.workload = "W3 get", .make = [](QueueServer& one, uint64_t seed) {
                     return GetAtRandom(one.population(), seed);
                   }}};
  for (int round = 0; round < kBaselineTurns * settings.rounds; ++round) {
    const auto run = [&](QueueServer& one, const Case& of) {
      return one.Run(*of.make(one, static_cast<uint64_t>(round)), of.in_flight, settings.duration,
                     lines);
    };
    for (Case& one : cases) {
      // Nobody always comes first.
      if (round % 2 == 0) one.rounds.push_back(run(server, one));
      one.before.push_back(run(baseline, one));
      if (round % 2 == 1) one.rounds.push_back(run(server, one));
    }
  }
  for (const Case& one : cases) {
    WriteRatios(one.workload + ", queues unused", one.rounds, one.workload + ", before queues",
                one.before, lines);
  }
}

}  // namespace strata::bench
