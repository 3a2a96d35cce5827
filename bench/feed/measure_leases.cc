// What a renewal costs, and a write that is fenced: rounds of all in turns.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/feed/feed_server.h"
#include "bench/feed/lease_workloads.h"
#include "bench/load/prepare.h"
#include "bench/support/rounds.h"

namespace strata::bench {
namespace {

// What is told is small beside what else the machine does: so many short rounds, in turns, for each
// round of other measurements, so that those that are compared follow each other closely.
constexpr int kLeaseTurns = 64;
constexpr int kRoundsInOne = 8;
constexpr char kPlain[] = "W1 update, not fenced";

struct LeaseCase {
  std::string workload;
  std::function<std::unique_ptr<Workload>(uint64_t seed)> make;
  std::vector<Measurement> rounds{};
};

}  // namespace

void MeasureLeases(const FeedSettings& settings, FigureLines& lines) {
  FeedServer server(settings, "leases", 1);
  std::vector<HeldLease> leases;
  Prepare(server.channel(), *AcquireAll(leases, kInFlight));
  const auto updates = [&](uint64_t seed) { return UpdateAtRandom(server.population(), seed); };
  std::vector<LeaseCase> cases = {
      {kPlain, updates},
      {"W1 update, fenced",
       [&](uint64_t seed) { return Fenced(updates(seed), leases, Fence::kToken); }},
      {"W1 update, fenced with place",
       [&](uint64_t seed) { return Fenced(updates(seed), leases, Fence::kPlace); }},
      {"Renew", [&](uint64_t /*seed*/) { return RenewOwn(leases); }}};
  // What one has written is flushed and compacted while the next one runs, and a renewal writes
  // little: each comes as often after any other.
  std::vector<size_t> order = {0, 1, 2, 3};
  for (int round = 0; round < settings.Rounds(kLeaseTurns); ++round) {
    server.AwaitQuiet();
    std::next_permutation(order.begin(), order.end());
    for (const size_t i : order) {
      LeaseCase& one = cases[i];
      const std::unique_ptr<Workload> workload = one.make(static_cast<uint64_t>(round));
      one.rounds.push_back(
          server.Run(*workload, kInFlight, settings.duration / kRoundsInOne, lines));
    }
  }
  for (const LeaseCase& one : cases) {
    WriteCalls(one.workload, one.rounds, lines);
    if (one.workload == kPlain) continue;
    WriteRatios(one.workload, one.rounds, kPlain, cases.front().rounds, lines);
  }
}

}  // namespace strata::bench
