#include "bench/feed/feed_server.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "bench/load/prepare.h"
#include "bench/support/process.h"

namespace strata::bench {
namespace {

constexpr char kQuietCollection[] = "quiet";
constexpr char kWatch[] = "/strata.v1.FeedService/Watch";
constexpr std::chrono::seconds kQuietMax{60};

fault::ServerSettings SettingsOf(const FeedSettings& settings, const std::string& name,
                                 const std::string& binary) {
  return {.data = settings.folder + "/" + name,
          .log = settings.folder + "/" + name + ".log",
          .flags = {},
          .binary = binary};
}

}  // namespace

Parameters FeedParameters(const std::string& what, const std::string& system) {
  return {{"system", system}, {"feed", what}};
}

int64_t FeedSettings::Scaled(int64_t count) const {
  return std::max<int64_t>(static_cast<int64_t>(static_cast<double>(count) * scale), 100);
}

FeedServer::FeedServer(const FeedSettings& settings, const std::string& name, int64_t depth,
                       const std::string& binary)
    : settings_(SettingsOf(settings, name, binary)),
      server_(std::in_place, settings_),
      channel_(Connect(server_->address())) {
  CreateCollection(channel_, kDocuments, "deltas");
  population_.collection = kDocuments;
  population_.versions.resize(static_cast<size_t>(settings.Scaled(kDocumentCount)));
  Prepare(channel_, *Fill(population_, {.depth = depth}));
}

FeedServer::FeedServer(const FeedSettings& settings, const std::string& name, Population population)
    : settings_(SettingsOf(settings, name, "")),
      server_(std::in_place, settings_),
      channel_(Connect(server_->address())),
      population_(std::move(population)) {}

void FeedServer::Stop() {
  channel_.reset();
  if (server_->Stop() != 0) throw std::runtime_error("the server did not stop as it should");
  server_.reset();
}

int64_t FeedServer::entries() const {
  const auto& versions = population_.versions;
  return std::accumulate(versions.begin(), versions.end(), int64_t{0});
}

void FeedServer::AwaitQuiet() const { bench::AwaitQuiet(pid(), kQuietMax); }

Measurement FeedServer::Run(Workload& workload, LoopSettings loop, FigureLines& lines) {
  loop.server = pid();
  Measurement measured = RunLoop(channel_, workload, loop);
  measured.system = "strata";
  if (measured.failures > 0 || measured.calls == 0) {
    lines.Wrong(measured.workload + ": " + std::to_string(measured.failures) +
                " wrong answers, and " + std::to_string(measured.calls) + " right ones");
  }
  return measured;
}

Measurement FeedServer::Run(Workload& workload, int in_flight, std::chrono::milliseconds duration,
                            FigureLines& lines) {
  LoopSettings loop;
  loop.in_flight = in_flight;
  loop.warm_up = duration / 4;
  loop.duration = duration;
  return Run(workload, loop, lines);
}

Measurement FeedServer::RunCalls(Workload& workload, int in_flight, int64_t calls,
                                 FigureLines& lines) {
  LoopSettings loop;
  loop.in_flight = in_flight;
  loop.calls_max = calls;
  return Run(workload, loop, lines);
}

Measurement FeedServer::Update(int in_flight, std::chrono::milliseconds duration,
                               FigureLines& lines) {
  return Run(*UpdateAtRandom(population_, seed_++), in_flight, duration, lines);
}

std::unique_ptr<Watchers> FeedServer::Watch(const v1::WatchRequest& request, int64_t count,
                                            std::chrono::milliseconds pause) const {
  auto watchers = std::make_unique<Watchers>(
      WatchersSettings{.address = address(),
                       .method = kWatch,
                       .request = request.SerializeAsString(),
                       .events_field = v1::WatchResponse::kEventsFieldNumber,
                       .count = count,
                       .pause = pause});
  watchers->AwaitGreeted(kPatience);
  return watchers;
}

std::unique_ptr<Watchers> FeedServer::Park(int64_t count) const {
  v1::WatchRequest request;
  request.add_collections(kQuietCollection);
  return Watch(request, count);
}

}  // namespace strata::bench
