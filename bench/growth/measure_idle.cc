// What a connection and a stream cost while nothing happens on them, and whether others notice.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "bench/growth/idle_streams.h"
#include "bench/growth/measure.h"
#include "bench/growth/served.h"
#include "bench/load/prepare.h"
#include "bench/support/process.h"
#include "tests/withstand/attacks.h"

namespace strata::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Some fewer than the server takes in all, for those that call beside them.
constexpr int64_t kConnections = 9'900;
constexpr int64_t kStreams = 1'000;
constexpr size_t kDocuments = 1'000;
constexpr seconds kPatience{30};
// Files that the server and this program have open besides connections.
constexpr int64_t kFilesBesides = 100;

struct Moment {
  int64_t resident_bytes = 0;
  int64_t open_files = 0;
};

struct IdleResult {
  std::string what;  // "connections"
  int64_t asked = 0;
  int64_t open = 0;
  double opening_seconds = 0;
  Moment before;
  Moment with;
  Moment after;
};

Parameters When(const IdleResult& result, std::string_view when) {
  return {{"idle", result.what}, {"when", when}};
}

// A server with a few documents that are read from beside.
class IdleMeasurement {
 public:
  IdleMeasurement(const GrowthSettings& settings, const std::string& folder, IdleResult& result,
                  FigureLines& lines)
      : duration_(settings.full ? milliseconds(2000) : milliseconds(1000)),
        served_(settings.folder + "/" + folder),
        population_(served_.MakePopulation("documents", "deltas")),
        result_(result),
        lines_(lines) {
    population_.versions.resize(kDocuments);
    Prepare(served_.channel(), *Fill(population_));
    Gets("before");
    result_.before = Settled();
  }

  const Served& served() const { return served_; }

  // Once they are open, and then once they are closed.
  void With() {
    result_.with = Settled();
    Gets("beside");
  }
  void After() { result_.after = Settled(); }

 private:
  void Gets(std::string_view when) {
    const Measurement gets = served_.Run(*GetAtRandom(population_, 1), kInFlight, duration_);
    Check(gets, "beside idle " + result_.what, lines_);
    Write(When(result_, when), gets, lines_);
    std::cerr << "." << std::flush;
  }

  Moment Look() const { return {served_.resident_bytes(), OpenFiles(served_.pid())}; }

  // What the server does on arrival or end is done when nothing moves any more.
  Moment Settled() const {
    Moment last = Look();
    const auto end = std::chrono::steady_clock::now() + seconds(5);
    for (int still = 0; still < 3 && std::chrono::steady_clock::now() < end;) {
      std::this_thread::sleep_for(milliseconds(100));
      const Moment now = Look();
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
  FigureLines& lines_;
};

void WriteMoment(const Parameters& parameters, const Moment& moment, FigureLines& lines) {
  lines.Number("resident_memory", parameters, static_cast<double>(moment.resident_bytes),
               Unit::kBytes);
  lines.Number("open_files", parameters, static_cast<double>(moment.open_files), Unit::kCount);
}

void Write(const IdleResult& result, FigureLines& lines) {
  const Parameters idle = {{"idle", result.what}};
  lines.Number("open", idle, static_cast<double>(result.open), Unit::kCount);
  lines.Number("opening", idle, result.opening_seconds * 1e6, Unit::kMicroseconds);
  WriteMoment(When(result, "before"), result.before, lines);
  WriteMoment(When(result, "beside"), result.with, lines);
  WriteMoment(When(result, "after"), result.after, lines);
  const auto taken = static_cast<double>(result.with.resident_bytes - result.before.resident_bytes);
  lines.Number("memory_each", idle, taken / static_cast<double>(std::max<int64_t>(result.open, 1)),
               Unit::kBytes);
  if (result.open == result.asked) return;
  lines.Wrong(std::to_string(result.asked - result.open) + " of " + std::to_string(result.asked) +
              " " + result.what + " did not open");
}

int PortOf(const std::string& address) { return std::stoi(address.substr(address.rfind(':') + 1)); }

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void MeasureConnections(const GrowthSettings& settings, FigureLines& lines) {
  IdleResult result;
  result.what = "connections";
  // The server gives connections half of its open files.
  result.asked = std::min(kConnections, RaiseFileLimit() / 2 - kFilesBesides);
  IdleMeasurement measurement(settings, "connections", result, lines);
  {
    withstand::IdleConnections connections(PortOf(measurement.served().address()));
    const auto start = std::chrono::steady_clock::now();
    connections.Open(result.asked, kPatience);
    result.opening_seconds = SecondsSince(start);
    measurement.With();
    connections.Look();
    result.open = connections.greeted();
  }
  measurement.After();
  Write(result, lines);
}

void MeasureStreams(const GrowthSettings& settings, const std::string& what,
                    const std::string& folder, const std::string& method, FigureLines& lines) {
  IdleResult result;
  result.what = what;
  result.asked = kStreams;
  IdleMeasurement measurement(settings, folder, result, lines);
  {
    const auto start = std::chrono::steady_clock::now();
    IdleStreams streams(measurement.served().address(), method, kStreams);
    result.open = streams.Greet(kPatience);
    result.opening_seconds = SecondsSince(start);
    measurement.With();
  }
  measurement.After();
  Write(result, lines);
}

}  // namespace

int64_t RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) throw std::runtime_error("getrlimit failed");
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) throw std::runtime_error("setrlimit failed");
  return static_cast<int64_t>(limit.rlim_cur);
}

void MeasureIdle(const GrowthSettings& settings, FigureLines& lines) {
  MeasureConnections(settings, lines);
  MeasureStreams(settings, "streams (health Watch)", "watch", "/grpc.health.v1.Health/Watch",
                 lines);
  MeasureStreams(settings, "streams (enrollment Apply)", "apply",
                 "/strata.v1.EnrollmentService/Apply", lines);
}

}  // namespace strata::bench
