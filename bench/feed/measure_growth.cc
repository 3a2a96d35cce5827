// Whether the feed costs more the longer it is: the same on a server with a short ledger and on one
// whose ledger is a hundred times as long (a thousand times with --full) and that has a hundred
// times as many leases, both there at once, a slice of the one beside a slice of the other.
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
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

// Of one slice, and with one call in flight, where each waits for the one before.
constexpr int64_t kCalls = 2'500;
constexpr int64_t kCallsOneByOne = 250;
// Of each step, on either server: a fraction of a second each, as what else the machine does
// differs by more than what is told, and is about the same for two that follow each other. One more
// goes before them, on what the step before has left in the processor's caches.
constexpr int kSlices = 8;
// So that all the leases that a server has were asked for.
constexpr int64_t kWarmUps = 100'000;
// How often the same events are caught up with in a slice, as each costs so little.
constexpr int64_t kCatchUps = 2;

constexpr int kRounds = 2;  // for each of other measurements

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
constexpr char kStorage[] = "flushes and compaction, an update";

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
  const auto before = used();
  action();
  return Each(used() - before, count);
}

void AwaitEvents(const Watchers& watchers, int64_t events) {
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
    for (int64_t i = 0; i < kCatchUps; ++i) AwaitEvents(*server.Watch(request), events);
  });
}

// A server that has something, its leases, and what is done with both.
class Subject {
 public:
  // The server's CPU time for each call or event of a slice.
  using Step = double (Subject::*)(FigureLines& lines);
  struct NamedStep {
    const char* what;
    Step step;
  };
  static const NamedStep kSteps[];

  Subject(const FeedSettings& settings, const std::string& name, const Population& population,
          const std::vector<HeldLease>& leases, uint64_t seed)
      : server_(settings, name, population),
        calls_(settings.Scaled(kCalls)),
        calls_one_by_one_(settings.Scaled(kCallsOneByOne)),
        warm_ups_(settings.Scaled(kWarmUps)),
        leases_(leases),
        seed_(seed) {}

  // Whatever the steps write was written before, on either server.
  void WarmUp(FigureLines& lines) {
    const int64_t depth = server_.population().versions.front();
    Prepare(server_.channel(), *UpdateTogether(server_.population(), depth + 1));
    server_.RunCalls(*Updates(), kInFlight, kSlices * calls_, lines);
    server_.AwaitQuiet();
    storage_before_ = CpuTimeOfThreads(server_.pid(), kStorageThreads);
    entries_before_ = server_.entries();
  }

  void AwaitQuiet() const { server_.AwaitQuiet(); }
  double Storage() const {
    server_.AwaitQuiet();
    return Each(CpuTimeOfThreads(server_.pid(), kStorageThreads) - storage_before_,
                server_.entries() - entries_before_);
  }

 private:
  double Renew(FigureLines& lines) { return Run(*RenewOwn(leases_), lines); }
  double Acquire(FigureLines& lines) {
    // With the first slice, which does not count.
    if (!std::exchange(acquired_, true)) {
      server_.RunCalls(*AcquireInTurn(leases_, kInFlight), kInFlight, warm_ups_, lines);
    }
    return Run(*AcquireAgain(leases_, kInFlight, seed_++), lines);
  }
  double UpdateFenced(FigureLines& lines) {
    return Run(*Fenced(Updates(), leases_, Fence::kToken), lines);
  }
  double UpdateWithPlace(FigureLines& lines) {
    return Run(*Fenced(Updates(), leases_, Fence::kPlace), lines);
  }
  double FollowOneByOne(FigureLines& lines) { return Follow(1, 1, calls_one_by_one_, lines); }
  double FollowByMany(FigureLines& lines) { return Follow(100, kInFlight, calls_, lines); }
  // What this writes is then caught up with, and consumed.
  double FollowByOne(FigureLines& lines) {
    if (followed_ == 0) position_ = LastPosition(server_);
    followed_ += calls_;
    return Follow(1, kInFlight, calls_, lines);
  }
  double CatchUpHeaders(FigureLines& /*lines*/) {
    return CatchUp(server_, position_, followed_, false);
  }
  double CatchUpContents(FigureLines& /*lines*/) {
    return CatchUp(server_, position_, followed_, true);
  }
  double Consume(FigureLines& /*lines*/) {
    const std::string subscription = "all-" + std::to_string(++subscriptions_);
    CreateSubscription(server_, subscription, position_);
    return CostOf(server_, followed_, [&] { ConsumeAll(server_, subscription, followed_); });
  }

  std::unique_ptr<Workload> Updates() { return UpdateAtRandom(server_.population(), seed_++); }
  double Run(Workload& workload, FigureLines& lines) {
    return CostOf(server_, calls_, [&] { server_.RunCalls(workload, kInFlight, calls_, lines); });
  }
  // An update, until all watchers have its event.
  double Follow(int64_t watchers, int in_flight, int64_t calls, FigureLines& lines) {
    const std::unique_ptr<Watchers> all = server_.Watch({}, watchers);
    return CostOf(server_, calls, [&] {
      server_.RunCalls(*Updates(), in_flight, calls, lines);
      AwaitEvents(*all, calls);
    });
  }

  FeedServer server_;
  const int64_t calls_;
  const int64_t calls_one_by_one_;
  const int64_t warm_ups_;
  std::vector<HeldLease> leases_;
  uint64_t seed_;
  std::chrono::nanoseconds storage_before_{};
  int64_t entries_before_ = 0;
  int64_t position_ = 0;  // behind it are the events of FollowByOne
  int64_t followed_ = 0;  // how many those are
  int subscriptions_ = 0;
  bool acquired_ = false;  // all leases, once
};

const Subject::NamedStep Subject::kSteps[] = {
    {"Update, fenced", &Subject::UpdateFenced},
    {"Update, fenced with place", &Subject::UpdateWithPlace},
    {"update, one in flight, one watcher", &Subject::FollowOneByOne},
    {"W1 update, 100 watchers", &Subject::FollowByMany},
    {"W1 update, one watcher", &Subject::FollowByOne},
    {"catch-up, an event", &Subject::CatchUpHeaders},
    {"catch-up with contents, an event", &Subject::CatchUpContents},
    {"Consume, an event", &Subject::Consume},
    {"Renew", &Subject::Renew},
    // The last: of a hundred times as many leases it leaves a hundred times as much in all caches.
    {"Acquire", &Subject::Acquire},
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

  std::unique_ptr<Subject> Begin(int round) const {
    const std::filesystem::path folder = settings_.folder;
    std::filesystem::copy(folder / size_.name, folder / NameOf(round),
                          std::filesystem::copy_options::recursive);
    // Not those of another round; the same on either server.
    const uint64_t seed = static_cast<uint64_t>(round) * 100;
    return std::make_unique<Subject>(settings_, NameOf(round), population_, leases_, seed);
  }
  void End(std::unique_ptr<Subject> subject, int round) const {
    subject.reset();
    std::filesystem::remove_all(std::filesystem::path(settings_.folder) / NameOf(round));
  }

 private:
  std::string NameOf(int round) const {
    return size_.name + std::string("-") + std::to_string(round);
  }

  const FeedSettings& settings_;
  const Size& size_;
  Population population_;
  std::vector<HeldLease> leases_;
};

using Rounds = std::map<std::string, std::vector<double>>;

struct Growth {
  Rounds few;     // a cost for each round
  Rounds many;    // the same with the long ledger
  Rounds ratios;  // one for each two slices
};

// Each step in slices, one on either server beside the other.
void MeasureStep(const Subject::NamedStep& step, Subject& brief, Subject& longer, Growth& growth,
                 FigureLines& lines) {
  Subject* const subjects[] = {&brief, &longer};
  double costs[] = {0, 0};
  for (const Subject* subject : subjects) subject->AwaitQuiet();
  for (int slice = 0; slice <= kSlices; ++slice) {
    double of_slice[] = {0, 0};
    // Whoever comes second finds the machine as the first has left it.
    for (const int turn : {0, 1}) {
      const int which = (slice + turn) % 2;
      of_slice[which] = (subjects[which]->*step.step)(lines);
    }
    if (slice == 0) continue;
    for (const int which : {0, 1}) costs[which] += of_slice[which] / kSlices;
    growth.ratios[step.what].push_back(of_slice[1] / of_slice[0]);
  }
  growth.few[step.what].push_back(costs[0]);
  growth.many[step.what].push_back(costs[1]);
}

void MeasureRound(const Ground& brief, const Ground& longer, int round, Growth& growth,
                  FigureLines& lines) {
  std::unique_ptr<Subject> of_brief = brief.Begin(round);
  std::unique_ptr<Subject> of_longer = longer.Begin(round);
  for (Subject* subject : {of_brief.get(), of_longer.get()}) subject->WarmUp(lines);
  for (const Subject::NamedStep& step : Subject::kSteps) {
    MeasureStep(step, *of_brief, *of_longer, growth, lines);
  }
  const double few = of_brief->Storage();
  const double many = of_longer->Storage();
  growth.few[kStorage].push_back(few);
  growth.many[kStorage].push_back(many);
  if (few > 0) growth.ratios[kStorage].push_back(many / few);  // few calls flush nothing
  brief.End(std::move(of_brief), round);
  longer.End(std::move(of_longer), round);
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
  Growth growth;
  for (int round = 0; round < settings.Rounds(kRounds); ++round) {
    MeasureRound(brief, longer, round, growth, lines);
  }
  Write("server_cpu", kShort, growth.few, Unit::kMicroseconds, lines);
  Write("server_cpu", size, growth.many, Unit::kMicroseconds, lines);
  Write("growth_ratio", size, growth.ratios, Unit::kRatio, lines);
}

}  // namespace strata::bench
