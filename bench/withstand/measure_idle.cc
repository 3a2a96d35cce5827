// Connections on which nothing happens, as many as there may be, and a call that comes afresh.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "bench/withstand/trial.h"
#include "tests/fault/server_process.h"
#include "tests/withstand/server_cost.h"

namespace strata::bench {
namespace {

using std::chrono::seconds;

constexpr int64_t kWanted = 15'000;
constexpr int64_t kFilesBesides = 500;
constexpr int kFreshCalls = 50;

// The server takes no more connections than half of its open files.
int64_t ConnectionsMax() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) throw std::runtime_error("getrlimit failed");
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) throw std::runtime_error("setrlimit failed");
  const auto files = static_cast<int64_t>(std::min<rlim_t>(limit.rlim_max, 1 << 20));
  return std::min({kWanted, files / 2, files - kFilesBesides});
}

}  // namespace

void MeasureIdle(const TrialSettings& settings, FigureLines& lines) {
  const int64_t most = ConnectionsMax();
  fault::ServerProcess server({.data = settings.folder + "/idle",
                               .log = settings.folder + "/idle-log",
                               .flags = {"--connections-max=" + std::to_string(most)}});
  const int port = std::stoi(server.address().substr(server.address().rfind(':') + 1));
  const withstand::Documents documents(server.Connect());
  if (!documents.Fill("small", 1, 100).ok()) throw std::runtime_error("cannot prepare");
  const int64_t before = withstand::ResidentBytes(server.pid());
  withstand::IdleConnections idle(port);
  // The one that prepared, and those of the fresh calls, each counted for up to a second.
  if (!idle.Open(most - 1 - kFreshCalls, seconds(30))) throw std::runtime_error("cannot connect");
  const int64_t taken = withstand::ResidentBytes(server.pid()) - before;

  const Parameters parameters = {{"idle_connections", idle.greeted()}};
  std::chrono::milliseconds slowest{0};
  for (int i = 0; i < kFreshCalls; ++i) {
    const withstand::FreshCall call =
        withstand::CallAfresh({.port = port, .source = "127.0.9.9"}, withstand::kGetMethod,
                              withstand::GetMessage("small", "0"), seconds(10));
    slowest = std::max(slowest, call.took);
    if (call.outcome != withstand::Outcome::kAnswered) {
      lines.Wrong("a fresh call beside idle connections was not answered");
    }
  }
  lines.Number("memory_each", parameters,
               static_cast<double>(taken) / static_cast<double>(idle.greeted()), Unit::kBytes);
  lines.Number("fresh_call_max", parameters, static_cast<double>(slowest.count()) * 1e3,
               Unit::kMicroseconds);
}

}  // namespace strata::bench
