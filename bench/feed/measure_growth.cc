// Whether the feed costs more the longer it is: the same on a server with a short ledger and on one
// whose ledger is a hundred times as long (a thousand times with --full) and that has a hundred
// times as many leases, in turns.
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/feed/feed_server.h"
#include "bench/feed/lease_workloads.h"
#include "bench/feed/subscriptions.h"
#include "bench/load/prepare.h"
#include "bench/load/transactions.h"
#include "bench/support/process.h"
#include "bench/support/rounds.h"
#include "strata/v1/feed_service.grpc.pb.h"

namespace strata::bench {
namespace {

constexpr int kInFlight = 64;
constexpr int64_t kCalls = 10'000;
// With one call in flight, each waits for the one before.
constexpr int64_t kCallsOneByOne = 1'000;
// So that all the leases that a server has were asked for, and so much was written that either
// server has flushed as often.
constexpr int64_t kWarmUps = 100'000;
// How often the same events are caught up with, as each costs so little.
constexpr int64_t kCatchUps = 10;

// Rounds for each that was asked for, as single ones differ by some percent, beside goals of ten. A
// single one is no measurement.
constexpr int kRounds = 3;

// What a server has before anything is measured on it: versions of each of its 10,000 documents,
// each an entry of the ledger, and leases. The last version is as far from its keyframe, which
// comes every 16 versions, on all of them: that distance costs, and is not what is to be measured.
struct Size {
  const char* name;
  const char* entries;  // as figures name it
  int64_t depth;
  int64_t leases;
};
constexpr Size kShort = {"short", "10^4", 1, 1'000};
constexpr Size kLong = {"long", "10^6", 6 * 16 + 1, 100'000};
constexpr Size kLongest = {"long", "10^7", 62 * 16 + 1, 100'000};

// Of RocksDB's threads that flush memtables and compact files.
constexpr char kStorageThreads[] = "rocksdb:";
constexpr char kSubscription[] = "all";
constexpr char kStorage[] = "flushes and compaction, an update";

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

double Each(std::chrono::nanoseconds time, int64_t count) {
  return static_cast<double>(time.count()) / 1e3 / static_cast<double>(count);
}

// The server's CPU time while something is done, for each of `count`. Flushes and compaction are
// left out: they come in bursts, for what others wrote long before.
double CostOf(const FeedServer& server, int64_t count, const std::function<void()>& action) {
  const auto used = [pid = server.pid()] {
    return CpuTime(pid) - CpuTimeOfThreads(pid, kStorageThreads);
  };
  server.AwaitQuiet();
  const auto before = used();
  action();
  return Each(used() - before, count);
}

void AwaitAll(const Watchers& watchers, int64_t events) {
  if (!watchers.AwaitEvents(events, kPatience)) throw std::runtime_error("events are missing");
  watchers.Check(events);
}

double CatchUp(const FeedServer& server, int64_t position, int64_t events, bool with_contents) {
  v1::WatchRequest request;
  request.set_after_position(position);
  if (with_contents) {
    request.set_include_content(true);
    request.set_encoding(v1::ENCODING_BSON);
  }
  return CostOf(server, kCatchUps * events, [&] {
    for (int64_t i = 0; i < kCatchUps; ++i) AwaitAll(*server.Watch(request), events);
  });
}

// A server that has something, its leases, and what is done with both.
class Subject {
 public:
  Subject(const FeedSettings& settings, const std::string& name, const Population& population,
          const std::vector<HeldLease>& leases, uint64_t seed)
      : server_(settings, name, population),
        calls_(settings.Scaled(kCalls)),
        calls_one_by_one_(settings.Scaled(kCallsOneByOne)),
        warm_ups_(settings.Scaled(kWarmUps)),
        leases_(leases),
        seed_(seed) {}

  Costs Measure(FigureLines& lines) {
    // Whatever is asked for below was asked for before, on either server.
    server_.RunCalls(*AcquireInTurn(leases_, kInFlight), kInFlight, warm_ups_, lines);
    const int64_t depth = server_.population().versions.front();
    Prepare(server_.channel(), *UpdateTogether(server_.population(), depth + 1));
    server_.RunCalls(*Updates(), kInFlight, calls_, lines);
    server_.AwaitQuiet();
    const auto storage_before = CpuTimeOfThreads(server_.pid(), kStorageThreads);
    const auto run = [&](const std::unique_ptr<Workload>& workload) {
      return CostOf(server_, calls_,
                    [&] { server_.RunCalls(*workload, kInFlight, calls_, lines); });
    };
    Costs costs;
    costs["Renew"] = run(RenewOwn(leases_));
    costs["Acquire"] = run(AcquireAgain(leases_, kInFlight, seed_++));
    costs["Update, fenced"] = run(Fenced(Updates(), leases_, Fence::kToken));
    costs["Update, fenced with place"] = run(Fenced(Updates(), leases_, Fence::kPlace));
    costs["update, one in flight, one watcher"] = Follow(1, 1, calls_one_by_one_, lines);
    costs["W1 update, 100 watchers"] = Follow(100, kInFlight, calls_, lines);
    // What these write is then caught up with, and consumed.
    const int64_t position = LastPosition(server_);
    CreateSubscription(server_, kSubscription, position);
    costs["W1 update, one watcher"] = Follow(1, kInFlight, calls_, lines);
    costs["catch-up, an event"] = CatchUp(server_, position, calls_, false);
    costs["catch-up with contents, an event"] = CatchUp(server_, position, calls_, true);
    costs["Consume, an event"] =
        CostOf(server_, calls_, [&] { ConsumeAll(server_, kSubscription, calls_); });
    server_.AwaitQuiet();
    const int64_t updates = 4 * calls_ + calls_one_by_one_;
    costs[kStorage] =
        Each(CpuTimeOfThreads(server_.pid(), kStorageThreads) - storage_before, updates);
    return costs;
  }

 private:
  std::unique_ptr<Workload> Updates() { return UpdateAtRandom(server_.population(), seed_++); }
  // An update, until all watchers have its event.
  double Follow(int64_t watchers, int in_flight, int64_t calls, FigureLines& lines) {
    const std::unique_ptr<Watchers> all = server_.Watch({}, watchers);
    return CostOf(server_, calls, [&] {
      server_.RunCalls(*Updates(), in_flight, calls, lines);
      AwaitAll(*all, calls);
    });
  }

  FeedServer server_;
  const int64_t calls_;
  const int64_t calls_one_by_one_;
  const int64_t warm_ups_;
  std::vector<HeldLease> leases_;
  uint64_t seed_;
};

// What a server of a size has left. Each round is on a copy of it, and so begins with the same:
// what is measured makes a ledger longer and its documents' histories deeper, and what a memtable
// holds makes the next insertion into it dearer, until it is flushed.
class Ground {
 public:
  Ground(const FeedSettings& settings, const Size& size) : settings_(settings), size_(size) {
    FeedServer server(settings, size.name, 1);
    Prepare(server.channel(), *UpdateTogether(server.population(), size.depth));
    Prepare(server.channel(), *AcquireAll(leases_, settings.Scaled(size.leases)));
    server.AwaitQuiet();
    server.Stop();
    population_ = server.population();
  }

  Costs Measure(int round, FigureLines& lines) const {
    const std::string name = size_.name + std::string("-") + std::to_string(round);
    const std::filesystem::path folder = settings_.folder;
    std::filesystem::copy(folder / size_.name, folder / name,
                          std::filesystem::copy_options::recursive);
    // Not those of another round; the same on either server.
    const uint64_t seed = static_cast<uint64_t>(round) * 100;
    Costs costs = Subject(settings_, name, population_, leases_, seed).Measure(lines);
    std::filesystem::remove_all(folder / name);
    return costs;
  }

 private:
  const FeedSettings& settings_;
  const Size& size_;
  Population population_;
  std::vector<HeldLease> leases_;
};

using Rounds = std::map<std::string, std::vector<double>>;

void Add(const Costs& costs, Rounds& rounds) {
  for (const auto& [what, cost] : costs) rounds[what].push_back(cost);
}

void Write(const char* figure, const Size& size, const Rounds& rounds, Unit unit,
           FigureLines& lines) {
  for (const auto& [what, values] : rounds) {
    WriteRounds(figure, {{"growth", what}, {"entries", size.entries}}, values, unit, lines);
  }
}

}  // namespace

void MeasureFeedGrowth(const FeedSettings& settings, FigureLines& lines) {
  const Size& size = settings.full ? kLongest : kLong;
  const Ground brief(settings, kShort);
  const Ground longer(settings, size);
  Rounds of_short;
  Rounds of_long;
  Rounds ratios;
  const int rounds = settings.rounds > 1 ? settings.rounds * kRounds : 1;
  for (int round = 0; round < rounds; ++round) {
    // Whoever comes second finds the machine as the first has left it.
    Costs few;
    if (round % 2 == 0) few = brief.Measure(round, lines);
    const Costs many = longer.Measure(round, lines);
    if (round % 2 != 0) few = brief.Measure(round, lines);
    Add(few, of_short);
    Add(many, of_long);
    for (const auto& [what, cost] : many) {
      if (few[what] > 0) ratios[what].push_back(cost / few[what]);  // few calls flush nothing
    }
  }
  Write("server_cpu", kShort, of_short, Unit::kMicroseconds, lines);
  Write("server_cpu", size, of_long, Unit::kMicroseconds, lines);
  Write("growth_ratio", size, ratios, Unit::kRatio, lines);
}

}  // namespace strata::bench
