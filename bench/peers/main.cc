// strata_peers: runs the workloads W1 to W5, T1 and T2 on etcd and PostgreSQL, or follows what is
// written to those and to NATS, each started in a temporary folder, durable, and stopped again.
// Gives its figures as lines of JSON (bench/README.md).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "bench/peers/peer.h"
#include "bench/peers/server_program.h"
#include "bench/peers/workloads.h"
#include "bench/support/figure_lines.h"
#include "bench/support/host.h"
#include "bench/support/measurement.h"

namespace strata::bench {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitInterrupted = 130;

struct Settings {
  WorkloadSettings workloads;
  double seconds = 3;
  double warm_up = 1;
  std::string json;
  std::vector<std::string> peers;  // empty: all
  bool feed = false;
};

std::chrono::milliseconds Millis(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

struct System {
  std::string peer;  // as on the command line
  std::string name;
  std::function<std::unique_ptr<Peer>()> start;
};

std::vector<System> Systems() {
  return {
      {"etcd", "etcd", StartEtcd},
      {"postgresql", "postgresql", [] { return StartPostgres(TableLayout::kHistoryTable); }},
      {"postgresql", "postgresql full copies",
       [] { return StartPostgres(TableLayout::kFullCopies); }},
  };
}

// Those that can be followed.
std::vector<System> FollowedSystems() {
  return {
      {"etcd", "etcd", StartEtcd},
      {"postgresql", "postgresql", [] { return StartPostgres(TableLayout::kFollowedCopies); }},
#ifdef STRATA_BENCH_NATS
      {"nats", "nats, each write synced", [] { return StartNats(true); }},
      {"nats", "nats, synced every 2 min", [] { return StartNats(false); }},
#endif
  };
}

std::vector<System> Chosen(const Settings& settings) {
  std::vector<System> chosen = settings.feed ? FollowedSystems() : Systems();
  const std::vector<std::string>& names = settings.peers;
  for (const std::string& name : names) {
    if (std::any_of(chosen.begin(), chosen.end(),
                    [&](const System& system) { return system.peer == name; })) {
      continue;
    }
    throw std::runtime_error(name + (settings.feed
                                         ? " is left out: no libnats (service/install-packages "
                                           "bench)"
                                         : " can only be followed: --feed"));
  }
  if (names.empty()) return chosen;
  const auto is_unwanted = [&](const System& system) {
    return std::find(names.begin(), names.end(), system.peer) == names.end();
  };
  chosen.erase(std::remove_if(chosen.begin(), chosen.end(), is_unwanted), chosen.end());
  return chosen;
}

void Take(const std::string& system, const Followed& followed, FigureLines& lines) {
  const Parameters parameters = {{"system", system}, {"feed", followed.feed}};
  lines.Number("events_per_second", parameters, followed.events_per_second, Unit::kPerSecond);
  if (followed.behind_us) {
    lines.Number("behind", parameters, *followed.behind_us, Unit::kMicroseconds);
  }
  std::cerr << "." << std::flush;
}

int Run(const Settings& settings) {
  FigureLines lines("strata_peers", settings.json);
  lines.Text("measured_on", {}, DescribeHost());
  int64_t failures = 0;
  const auto take = [&](const Measurement& measured) {
    Write(ParametersOf(measured), measured, lines);
    failures += measured.failures;
    std::cerr << "." << std::flush;
  };
  for (const System& system : Chosen(settings)) {
    try {
      const std::unique_ptr<Peer> peer = system.start();
      if (settings.feed) {
        RunFeed(*peer, settings.workloads,
                [&](const Followed& followed) { Take(system.name, followed, lines); });
      } else {
        RunWorkloads(system.name, *peer, settings.workloads, take);
      }
    } catch (const InterruptedError&) {
      throw;
    } catch (const std::runtime_error& error) {
      // What the others give is still worth having.
      lines.Wrong(system.name + ": " + error.what());
      std::cerr << "\n" << system.name << ": " << error.what() << std::endl;
      ++failures;
    }
  }
  std::cerr << "\n";
  return failures == 0 ? 0 : kExitFailure;
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app{
      "strata_peers: runs the workloads W1 to W5, T1 and T2 on other stores, each started durable\n"
      "in a temporary folder (TMPDIR), with a fixed number of calls in flight"};
  app.add_option("peer", settings.peers, "those to run; none named: all")
      ->check(CLI::IsMember({"etcd", "postgresql", "nats"}));
  app.add_flag("--feed", settings.feed,
               "instead: those who follow what is written, as strata_feed_load does");
  app.add_option("--seconds", settings.seconds, "of each workload")->check(CLI::Range(0.1, 600.0));
  app.add_option("--warm-up", settings.warm_up, "seconds before each")
      ->check(CLI::Range(0.0, 60.0));
  app.add_option("--documents", settings.workloads.documents)->check(CLI::Range(100, 10'000'000));
  app.add_option("--seed", settings.workloads.seed);
  app.add_option("--json", settings.json,
                 "file that figures are appended to, instead of standard output");
  for (CLI::Option* option : app.get_options()) option->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  settings.workloads.warm_up = Millis(settings.warm_up);
  settings.workloads.duration = Millis(settings.seconds);
  TakeSignals();
  try {
    return Run(settings);
  } catch (const InterruptedError&) {
    std::cerr << "\nstrata_peers: interrupted" << std::endl;
    return kExitInterrupted;
  } catch (const std::runtime_error& error) {
    std::cerr << "strata_peers: " << error.what() << std::endl;
    return kExitFailure;
  }
}

}  // namespace
}  // namespace strata::bench

int main(int argc, char** argv) {
  // What the client costs is taken from the servers; so it takes no notes of who waits for whom.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  return strata::bench::Main(argc, argv);
}
