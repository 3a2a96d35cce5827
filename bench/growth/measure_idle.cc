// What a connection and a stream cost while nothing happens on them, and whether others notice.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "bench/growth/idle_connections.h"
#include "bench/growth/idle_streams.h"
#include "bench/growth/measure.h"
#include "bench/growth/served.h"
#include "bench/load/prepare.h"

namespace strata::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int64_t kConnections = 10'000;
constexpr int64_t kStreams = 1'000;
constexpr size_t kDocuments = 1'000;
constexpr int kInFlight = 64;
constexpr seconds kPatience{30};
// Files that the server and this program have open besides connections.
constexpr int64_t kFilesBesides = 1'000;

// A server with a few documents that are read from beside.
class IdleMeasurement {
 public:
  IdleMeasurement(const GrowthSettings& settings, const std::string& folder, IdleResult& result,
                  Figures& figures)
      : duration_(settings.full ? milliseconds(2000) : milliseconds(1000)),
        served_(settings.folder + "/" + folder),
        population_(served_.MakePopulation("documents", "deltas")),
        result_(result),
        figures_(figures) {
    population_.versions.resize(kDocuments);
    Prepare(served_.channel(), *Fill(population_));
    result_.get_before = Gets();
    result_.before = Settled();
  }

  const Served& served() const { return served_; }

  // Once they are open, and then once they are closed.
  void With() {
    result_.with = Settled();
    result_.get_beside = Gets();
  }
  void After() { result_.after = Settled(); }

 private:
  Measurement Gets() {
    Measurement gets = served_.Run(*GetAtRandom(population_, 1), kInFlight, duration_);
    Check(gets, "beside idle " + result_.what, figures_);
    std::cerr << "." << std::flush;
    return gets;
  }

  // What the server does on arrival or end is done when nothing moves any more.
  IdleResult::Moment Settled() const {
    IdleResult::Moment last = served_.Look();
    const auto end = std::chrono::steady_clock::now() + seconds(5);
    for (int still = 0; still < 3 && std::chrono::steady_clock::now() < end;) {
      std::this_thread::sleep_for(milliseconds(100));
      const IdleResult::Moment now = served_.Look();
      const bool same =
          now.resident_bytes == last.resident_bytes && now.open_files == last.open_files;
      still = same ? still + 1 : 0;
      last = now;
    }
    return last;
  }

  const milliseconds duration_;
  Served served_;
  Population population_;
  IdleResult& result_;
  Figures& figures_;
};

void Judge(const IdleResult& result, Figures& figures) {
  if (result.open == result.asked) return;
  figures.wrong.push_back(std::to_string(result.asked - result.open) + " of " +
                          std::to_string(result.asked) + " " + result.what + " did not open");
}

int PortOf(const std::string& address) { return std::stoi(address.substr(address.rfind(':') + 1)); }

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void MeasureConnections(const GrowthSettings& settings, Figures& figures) {
  IdleResult result;
  result.what = "connections";
  result.asked = std::min(kConnections, RaiseFileLimit() - kFilesBesides);
  IdleMeasurement measurement(settings, "connections", result, figures);
  {
    IdleConnections connections;
    const auto start = std::chrono::steady_clock::now();
    result.open = connections.Open(PortOf(measurement.served().address()), result.asked, kPatience);
    result.opening_seconds = SecondsSince(start);
    measurement.With();
    result.open -= connections.CountClosed();
  }
  measurement.After();
  Judge(result, figures);
  figures.idle.push_back(std::move(result));
}

void MeasureStreams(const GrowthSettings& settings, const std::string& what,
                    const std::string& folder, const std::string& method, Figures& figures) {
  IdleResult result;
  result.what = what;
  result.asked = kStreams;
  IdleMeasurement measurement(settings, folder, result, figures);
  {
    const auto start = std::chrono::steady_clock::now();
    IdleStreams streams(measurement.served().address(), method, kStreams);
    result.open = streams.Greet(kPatience);
    result.opening_seconds = SecondsSince(start);
    measurement.With();
  }
  measurement.After();
  Judge(result, figures);
  figures.idle.push_back(std::move(result));
}

}  // namespace

int64_t RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) throw std::runtime_error("getrlimit failed");
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) throw std::runtime_error("setrlimit failed");
  return static_cast<int64_t>(limit.rlim_cur);
}

void MeasureIdle(const GrowthSettings& settings, Figures& figures) {
  MeasureConnections(settings, figures);
  MeasureStreams(settings, "streams (health Watch)", "watch", "/grpc.health.v1.Health/Watch",
                 figures);
  MeasureStreams(settings, "streams (enrollment Apply)", "apply",
                 "/strata.v1.EnrollmentService/Apply", figures);
}

}  // namespace strata::bench
