// How many events a second the feed gives: to those who keep up with W1, and from the beginning.
#include <memory>
#include <string>
#include <vector>

#include "bench/feed/feed_server.h"
#include "bench/support/process.h"
#include "bench/support/rounds.h"

namespace strata::bench {
namespace {

using Clock = Watchers::Clock;

constexpr int64_t kDepth = 10;

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

// What a round of deliveries gave.
struct Delivered {
  std::vector<double> per_second;
  std::vector<double> behind_us;
  std::vector<double> cpu_us;  // of the server, an event
};

void Write(const std::string& what, const Delivered& delivered, FigureLines& lines) {
  const Parameters parameters = FeedParameters(what);
  WriteRounds("events_per_second", parameters, delivered.per_second, Unit::kPerSecond, lines);
  WriteRounds("server_cpu", parameters, delivered.cpu_us, Unit::kMicroseconds, lines);
  if (delivered.behind_us.empty()) return;
  WriteRounds("behind", parameters, delivered.behind_us, Unit::kMicroseconds, lines);
}

// Throws std::runtime_error if events are missing, or come twice.
void AwaitAll(Watchers& watchers, int64_t events) {
  if (!watchers.AwaitEvents(events, kPatience)) {
    throw std::runtime_error("of " + std::to_string(events) + " events some did not come");
  }
  watchers.Check(events);
}

}  // namespace

void MeasureEvents(const FeedSettings& settings, FigureLines& lines) {
  FeedServer server(settings, "events", 1);
  for (const int64_t count : {1, 100}) {
    const std::string name = count == 1 ? "1 watcher of everything" : "100 watchers of everything";
    std::vector<Measurement> updates;
    Delivered delivered;
    for (int round = 0; round < settings.rounds; ++round) {
      const std::unique_ptr<Watchers> watchers = server.Watch({}, count);
      server.AwaitQuiet();
      const int64_t before = server.entries();
      const Clock::time_point begin = Clock::now();
      const auto cpu_before = CpuTime(server.pid());
      updates.push_back(server.Update(kInFlight, settings.duration, lines));
      const Clock::time_point written = Clock::now();
      AwaitAll(*watchers, server.entries() - before);
      const auto cpu = CpuTime(server.pid()) - cpu_before;
      const auto events = static_cast<double>(watchers->events());
      delivered.per_second.push_back(events / Seconds(watchers->last_arrival() - begin));
      delivered.behind_us.push_back(std::max(Seconds(watchers->last_arrival() - written), 0.0) *
                                    1e6);
      delivered.cpu_us.push_back(static_cast<double>(cpu.count()) / 1e3 / events);
    }
    WriteCalls("W1 update, " + name, updates, lines);
    Write(name + ", under W1", delivered, lines);
  }
}

void MeasureCatchUp(const FeedSettings& settings, FigureLines& lines) {
  const FeedServer server(settings, "catch-up", kDepth);
  v1::WatchRequest headers;
  headers.set_after_position(0);
  v1::WatchRequest contents = headers;
  contents.set_include_content(true);
  contents.set_encoding(v1::ENCODING_BSON);
  Delivered of_headers;
  Delivered of_contents;
  for (int round = 0; round < settings.rounds; ++round) {
    for (const auto& [request, delivered] :
         {std::pair(&headers, &of_headers), std::pair(&contents, &of_contents)}) {
      server.AwaitQuiet();
      const auto cpu_before = CpuTime(server.pid());
      const Clock::time_point begin = Clock::now();
      const std::unique_ptr<Watchers> watcher = server.Watch(*request);
      AwaitAll(*watcher, server.entries());
      const auto cpu = CpuTime(server.pid()) - cpu_before;
      const auto events = static_cast<double>(watcher->events());
      delivered->per_second.push_back(events / Seconds(watcher->last_arrival() - begin));
      delivered->cpu_us.push_back(static_cast<double>(cpu.count()) / 1e3 / events);
    }
  }
  Write("catch-up, headers", of_headers, lines);
  Write("catch-up, with contents", of_contents, lines);
}

}  // namespace strata::bench
