// How long an event takes to those who wait for it, and what waiting costs.
#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/feed/feed_server.h"
#include "bench/support/histogram.h"
#include "bench/support/process.h"
#include "bench/support/rounds.h"

namespace strata::bench {
namespace {

using Clock = Watchers::Clock;

constexpr char kDelivery[] = "delivery, one update in flight";
constexpr int64_t kWatchers = 1'000;
// Of what an idle server does, as some of it comes around every few seconds.
constexpr std::chrono::seconds kIdle{5};
constexpr std::chrono::seconds kIdleLong{30};

// Updates, with the time at which each was sent.
class Stamped final : public Workload {
 public:
  explicit Stamped(std::unique_ptr<Workload> inner) : inner_(std::move(inner)) {}
  std::string name() const override { return inner_->name(); }
  std::string method() const override { return inner_->method(); }
  bool Next(int slot, std::string& request) override {
    const bool is_there = inner_->Next(slot, request);
    if (is_there) sent_.push_back(Clock::now());
    return is_there;
  }
  Outcome Answered(int slot, std::string_view response) override {
    return inner_->Answered(slot, response);
  }
  Outcome Refused(int slot, std::string_view message) override {
    return inner_->Refused(slot, message);
  }
  const std::vector<Clock::time_point>& sent() const { return sent_; }

 private:
  const std::unique_ptr<Workload> inner_;
  std::vector<Clock::time_point> sent_;
};

double Micros(std::chrono::nanoseconds duration) {
  return static_cast<double>(duration.count()) / 1e3;
}

void MeasureIdleServer(const std::string& what, const FeedSettings& settings,
                       const FeedServer& server, FigureLines& lines) {
  const std::chrono::milliseconds time = settings.full        ? kIdleLong
                                         : settings.scale < 1 ? settings.duration
                                                              : kIdle;
  std::vector<double> shares;
  for (int round = 0; round < settings.rounds; ++round) {
    server.AwaitQuiet();
    const Clock::time_point begin = Clock::now();
    const auto before = CpuTime(server.pid());
    std::this_thread::sleep_for(time);
    const auto used = CpuTime(server.pid()) - before;
    shares.push_back(std::chrono::duration<double>(used) / (Clock::now() - begin));
  }
  WriteRounds("core_share", FeedParameters(what), shares, Unit::kRatio, lines);
}

}  // namespace

void MeasureDelivery(const FeedSettings& settings, FigureLines& lines) {
  FeedServer server(settings, "delivery", 1);
  std::vector<Measurement> updates;
  std::vector<double> p50;
  std::vector<double> p99;
  std::vector<double> above;
  for (int round = 0; round < settings.rounds; ++round) {
    const std::unique_ptr<Watchers> watcher = server.Watch({});
    server.AwaitQuiet();
    Stamped workload(UpdateAtRandom(server.population(), static_cast<uint64_t>(round)));
    const Measurement measured = server.Run(workload, 1, settings.duration, lines);
    const auto count = static_cast<int64_t>(workload.sent().size());
    if (!watcher->AwaitEvents(count, kPatience)) throw std::runtime_error("events are missing");
    watcher->Check(count);
    // One writer, so the nth event is that of the nth update.
    const std::vector<Clock::time_point> arrivals = watcher->arrivals();
    Histogram delivery;
    // The first ones are the warm-up.
    for (size_t i = arrivals.size() / 5; i < arrivals.size(); ++i) {
      delivery.Add(arrivals[i] - workload.sent()[i]);
    }
    p50.push_back(Micros(delivery.Quantile(0.5)));
    p99.push_back(Micros(delivery.Quantile(0.99)));
    above.push_back(p50.back() - measured.latency_us(0.5));
    updates.push_back(measured);
  }
  WriteCalls("W1 update, one watcher", updates, lines);
  WriteRounds("delivery_p50", FeedParameters(kDelivery), p50, Unit::kMicroseconds, lines);
  WriteRounds("delivery_p99", FeedParameters(kDelivery), p99, Unit::kMicroseconds, lines);
  WriteRounds("delivery_p50_above_update", FeedParameters(kDelivery), above, Unit::kMicroseconds,
              lines);
  MeasureIdleServer("idle, nobody follows", settings, server, lines);
  const std::unique_ptr<Watchers> watchers = server.Watch({}, settings.Scaled(kWatchers));
  MeasureIdleServer("idle, 1,000 watchers", settings, server, lines);
}

}  // namespace strata::bench
