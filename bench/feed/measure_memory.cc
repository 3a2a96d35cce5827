// What the server holds for those who wait, and for those who are slow.
#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/feed/feed_server.h"
#include "bench/support/process.h"
#include "bench/support/rounds.h"

namespace strata::bench {
namespace {

constexpr int64_t kFewParked = 1'000;
constexpr int64_t kManyParked = 5'000;
constexpr int64_t kSlow = 100;
constexpr std::chrono::seconds kSlowPause{1};

// Once it does not move any more, at most so long.
int64_t Settled(pid_t process) {
  constexpr std::chrono::milliseconds kLook{100};
  int64_t last = ResidentBytes(process);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  for (int still = 0; still < 3 && std::chrono::steady_clock::now() < end;) {
    std::this_thread::sleep_for(kLook);
    const int64_t now = ResidentBytes(process);
    still = now == last ? still + 1 : 0;
    last = now;
  }
  return last;
}

void MeasureParked(const FeedSettings& settings, FigureLines& lines) {
  const FeedServer server(settings, "parked", 1);
  const int64_t few = settings.Scaled(kFewParked);
  const int64_t more = settings.Scaled(kManyParked) - few;
  server.AwaitQuiet();
  const int64_t with_none = Settled(server.pid());
  const std::unique_ptr<Watchers> first = server.Park(few);
  const int64_t with_few = Settled(server.pid());
  const std::unique_ptr<Watchers> second = server.Park(more);
  const int64_t with_many = Settled(server.pid());
  const auto each = [](int64_t bytes, int64_t count) {
    return static_cast<double>(bytes) / static_cast<double>(count);
  };
  lines.Number("memory_each", FeedParameters("parked watchers, the first 1,000"),
               each(with_few - with_none, few), Unit::kBytes);
  lines.Number("memory_each", FeedParameters("parked watchers, the next 4,000"),
               each(with_many - with_few, more), Unit::kBytes);
}

// A server writes into memory and caches even if nobody follows, so one of its own takes as many
// updates without followers.
void MeasureSlow(const FeedSettings& settings, FigureLines& lines) {
  const std::chrono::milliseconds time =
      settings.full ? std::chrono::minutes(5) : 10 * settings.duration;
  FeedServer server(settings, "slow", 1);
  const std::unique_ptr<Watchers> watchers = server.Watch({}, kSlow, kSlowPause);
  const int64_t filled = server.entries();
  // From when everything that there is to be held for them is held.
  server.Update(kInFlight, time / 4, lines);
  const int64_t first = server.entries() - filled;
  const int64_t before = ResidentBytes(server.pid());
  server.Update(kInFlight, time, lines);
  const int64_t then = server.entries() - filled - first;
  const int64_t growth = ResidentBytes(server.pid()) - before;
  watchers->Check(first + then);

  FeedServer alone(settings, "alone", 1);
  alone.RunCalls(*UpdateAtRandom(alone.population(), 1), kInFlight, first, lines);
  const int64_t before_alone = ResidentBytes(alone.pid());
  alone.RunCalls(*UpdateAtRandom(alone.population(), 2), kInFlight, then, lines);
  const int64_t growth_alone = ResidentBytes(alone.pid()) - before_alone;

  const Parameters slow = FeedParameters("100 slow watchers, under W1");
  lines.Number("memory_growth", FeedParameters("nobody, as many updates"),
               static_cast<double>(growth_alone), Unit::kBytes);
  lines.Number("memory_growth", slow, static_cast<double>(growth), Unit::kBytes);
  lines.Number("memory_growth_above", slow,
               static_cast<double>(std::max<int64_t>(growth - growth_alone, 0)), Unit::kBytes);
}

}  // namespace

void MeasureMemory(const FeedSettings& settings, FigureLines& lines) {
  MeasureParked(settings, lines);
  MeasureSlow(settings, lines);
}

}  // namespace strata::bench
