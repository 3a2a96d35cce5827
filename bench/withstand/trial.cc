#include "bench/withstand/trial.h"

#include <poll.h>

#include <memory>
#include <stdexcept>
#include <thread>

#include "tests/fault/server_process.h"
#include "tests/withstand/honest_caller.h"
#include "tests/withstand/server_cost.h"

namespace strata::bench {
namespace {

using std::chrono::milliseconds;
using withstand::Documents;
using withstand::HonestCaller;
using withstand::HonestResult;

constexpr milliseconds kEvery{5};
constexpr milliseconds kHonestDeadline{20'000};
constexpr milliseconds kBefore{2'000};

void Must(const grpc::Status& status) {
  if (!status.ok()) throw std::runtime_error("cannot prepare: " + status.error_message());
}

double Microseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

void Wait(milliseconds duration) { poll(nullptr, 0, static_cast<int>(duration.count())); }

class Running {
 public:
  Running(const Trial& trial, const std::string& folder)
      : trial_(trial),
        server_({.data = folder + "/data", .log = folder + "-log", .flags = Flags(trial)}),
        documents_(server_.Connect()) {
    Must(documents_.Fill("small", 10, 100));
    if (trial.prepare) Must(trial.prepare(documents_));
  }

  pid_t pid() const { return server_.pid(); }
  int port() const { return std::stoi(server_.address().substr(server_.address().rfind(':') + 1)); }

  std::unique_ptr<HonestCaller> CallHonestly() {
    return std::make_unique<HonestCaller>(
        [this](grpc::ClientContext& context, int64_t) {
          return trial_.honest == Honest::kGets ? documents_.Get(context, "small", "0")
                                                : documents_.List(context, "small");
        },
        kEvery, kHonestDeadline);
  }

 private:
  static std::vector<std::string> Flags(const Trial& trial) {
    std::vector<std::string> flags = {"--event-loops=" + std::to_string(trial.event_loops)};
    flags.insert(flags.end(), trial.flags.begin(), trial.flags.end());
    return flags;
  }

  const Trial& trial_;
  fault::ServerProcess server_;
  Documents documents_;
};

void WriteHonest(const HonestResult& result, Parameters parameters, std::string_view when,
                 FigureLines& lines) {
  parameters.emplace_back("when", when);
  const auto count = [&](const char* figure, size_t value) {
    lines.Number(figure, parameters, static_cast<double>(value), Unit::kCount);
  };
  const auto time = [&](const char* figure, double share) {
    lines.Number(figure, parameters, Microseconds(result.Quantile(share)), Unit::kMicroseconds);
  };
  count("answered", result.answered());
  count("failures", result.failures.size());
  time("latency_p50", 0.5);
  time("latency_p99", 0.99);
  time("latency_max", 1);
}

}  // namespace

void Measure(const Trial& trial, const TrialSettings& settings, FigureLines& lines) {
  const Parameters parameters = {{"attack", trial.attack},
                                 {"event_loops", trial.event_loops},
                                 {"honest", trial.honest == Honest::kGets ? "Get" : "List"}};
  static int number = 0;
  Running running(trial, settings.folder + "/" + std::to_string(number++));
  const auto alone = running.CallHonestly();
  Wait(kBefore);
  WriteHonest(alone->End(), parameters, "before", lines);
  withstand::ForgetResidentPeak(running.pid());
  const int64_t before = withstand::ResidentBytes(running.pid());
  const auto attacked = running.CallHonestly();
  withstand::AttackCounts counts;
  {
    const std::jthread attack(
        [&](std::stop_token stop) { trial.run(running.port(), std::move(stop), counts); });
    Wait(settings.duration);
  }
  const HonestResult beside = attacked->End();
  WriteHonest(beside, parameters, "beside", lines);
  const auto bytes = [&](const char* figure, int64_t value) {
    lines.Number(figure, parameters, static_cast<double>(value), Unit::kBytes);
  };
  bytes("memory_before", before);
  bytes("memory_peak", withstand::ResidentPeak(running.pid()));
  lines.Number("sent", parameters, static_cast<double>(counts.sent), Unit::kCount);
  lines.Number("connections", parameters, static_cast<double>(counts.connections), Unit::kCount);
  if (!beside.failures.empty()) lines.Text("first_failure", parameters, beside.failures[0]);
}

}  // namespace strata::bench
