// Whether the feed costs more the longer it is: the same on a new server and on one whose ledger is
// ten times as long (a hundred times with --full), in turns.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/feed/feed_server.h"
#include "bench/feed/lease_workloads.h"
#include "bench/feed/rounds.h"
#include "bench/feed/subscriptions.h"
#include "bench/load/prepare.h"
#include "bench/support/process.h"
#include "strata/v1/feed_service.grpc.pb.h"

namespace strata::bench {
namespace {

constexpr int kInFlight = 64;
constexpr int64_t kCalls = 5'000;
constexpr int64_t kFewLeases = 1'000;
constexpr int64_t kManyLeases = 10'000;

// The server's CPU time for each call or event, by what was done.
using Costs = std::map<std::string, double>;

int64_t LastPosition(const FeedServer& server) {
  v1::GetFeedResponse response;
  grpc::ClientContext context;
  const grpc::Status status =
      v1::FeedService::NewStub(server.channel())->GetFeed(&context, {}, &response);
  if (!status.ok()) throw std::runtime_error("GetFeed: " + status.error_message());
  return response.last_position();
}

double CatchUp(const FeedServer& server, int64_t position, int64_t events) {
  v1::WatchRequest request;
  request.set_after_position(position);
  const auto before = CpuTime(server.pid());
  const std::unique_ptr<Watchers> watcher = server.Watch(request);
  if (!watcher->AwaitEvents(events, kPatience)) throw std::runtime_error("events are missing");
  watcher->Check(events);
  return static_cast<double>((CpuTime(server.pid()) - before).count()) / 1e3 /
         static_cast<double>(events);
}

// A server, its leases, and what is done with both.
class Subject {
 public:
  Subject(const FeedSettings& settings, const std::string& name, int64_t depth, int64_t leases)
      : server_(settings, name, depth), calls_(settings.Scaled(kCalls)) {
    Prepare(server_.channel(), *AcquireAll(leases_, settings.Scaled(leases)));
  }

  Costs Measure(int round, FigureLines& lines) {
    const auto seed = static_cast<uint64_t>(round);
    const auto updates = [&] { return UpdateAtRandom(server_.population(), seed); };
    const auto run = [&](Workload& workload) {
      server_.AwaitQuiet();
      return server_.RunCalls(workload, kInFlight, calls_, lines).server_cpu_us();
    };
    Costs costs;
    costs["Renew"] = run(*RenewOwn(leases_));
    costs["Acquire"] = run(*AcquireAgain(leases_, kInFlight, seed));
    costs["Update, fenced with place"] = run(*Fenced(updates(), leases_, Fence::kPlace));
    // What these write is then caught up with, and consumed.
    const int64_t position = LastPosition(server_);
    const std::string subscription = "round-" + std::to_string(round);
    CreateSubscription(server_, subscription, position);
    {
      const std::unique_ptr<Watchers> watcher = server_.Watch({});
      costs["W1 update, one watcher"] = run(*updates());
    }
    server_.AwaitQuiet();
    costs["catch-up, an event"] = CatchUp(server_, position, calls_);
    server_.AwaitQuiet();
    costs["Consume, an event"] = ConsumeAll(server_, subscription, calls_).cpu_us;
    return costs;
  }

 private:
  FeedServer server_;
  const int64_t calls_;
  std::vector<HeldLease> leases_;
};

using Rounds = std::map<std::string, std::vector<double>>;

void Add(const Costs& costs, Rounds& rounds) {
  for (const auto& [what, cost] : costs) rounds[what].push_back(cost);
}

void Write(const std::string& ledger, const Rounds& rounds, FigureLines& lines) {
  for (const auto& [what, costs] : rounds) {
    WriteRounds("server_cpu", {{"growth", what}, {"ledger", ledger}}, costs, Unit::kMicroseconds,
                lines);
  }
}

}  // namespace

void MeasureFeedGrowth(const FeedSettings& settings, FigureLines& lines) {
  const int64_t times = settings.full ? 100 : 10;
  Subject longer(settings, "long", times, times / 10 * kManyLeases);
  Rounds of_new;
  Rounds of_long;
  Rounds ratios;
  for (int round = 0; round < settings.rounds; ++round) {
    // A new one each time, as what is measured makes its ledger longer.
    Costs fresh =
        Subject(settings, "new-" + std::to_string(round), 1, kFewLeases).Measure(round, lines);
    const Costs grown = longer.Measure(round, lines);
    Add(fresh, of_new);
    Add(grown, of_long);
    for (const auto& [what, cost] : grown) ratios[what].push_back(cost / fresh[what]);
  }
  Write("new", of_new, lines);
  Write("long", of_long, lines);
  for (const auto& [what, values] : ratios) {
    WriteRounds("growth_ratio", {{"growth", what}}, values, Unit::kRatio, lines);
  }
}

}  // namespace strata::bench
