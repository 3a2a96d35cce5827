// strata_peers: runs the workloads W1 to W5, T1 and T2 on etcd and PostgreSQL, or follows what is
// written to those and to NATS, or runs the queue workloads on PostgreSQL, RabbitMQ and Redis, each
// started in a temporary folder, durable, and stopped again. Gives its figures as lines of JSON
// (bench/README.md).
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
#include "bench/peers/queue_peer.h"
#include "bench/peers/queue_workloads.h"
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
  QueueSettings queue_workloads;
  double seconds = 3;
  double warm_up = 1;
  std::string json;
  std::vector<std::string> peers;  // empty: all
  bool feed = false;
  bool queues = false;
};

std::chrono::milliseconds Millis(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

template <typename Started>
struct System {
  std::string peer;  // as on the command line
  std::string name;
  std::function<std::unique_ptr<Started>()> start;
};

std::vector<System<Peer>> Systems() {
  return {
      {"etcd", "etcd", StartEtcd},
      {"postgresql", "postgresql", [] { return StartPostgres(TableLayout::kHistoryTable); }},
      {"postgresql", "postgresql full copies",
       [] { return StartPostgres(TableLayout::kFullCopies); }},
  };
}

// Those that can be followed.
std::vector<System<Peer>> FollowedSystems() {
  return {
      {"etcd", "etcd", StartEtcd},
      {"postgresql", "postgresql", [] { return StartPostgres(TableLayout::kFollowedCopies); }},
#ifdef STRATA_BENCH_NATS
      {"nats", "nats, each write synced", [] { return StartNats(true); }},
      {"nats", "nats, synced every 2 min", [] { return StartNats(false); }},
#endif
  };
}

// Those with queues.
std::vector<System<QueuePeer>> QueueSystems() {
  return {
      {"postgresql", "postgresql", [] { return StartPostgresQueue(PostgresReservation::kLocked); }},
      {"postgresql", "postgresql, reservations written",
       [] { return StartPostgresQueue(PostgresReservation::kWritten); }},
#ifdef STRATA_BENCH_RABBITMQ
      {"rabbitmq", "rabbitmq", StartRabbitmqQueue},
#endif
#ifdef STRATA_BENCH_REDIS
      {"redis", "redis", StartRedisQueue},
#endif
  };
}

// Those of `all` that are named; none named: all.
template <typename Started>
std::vector<System<Started>> Chosen(std::vector<System<Started>> all,
                                    const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (std::any_of(all.begin(), all.end(), [&](const auto& one) { return one.peer == name; })) {
      continue;
    }
    throw std::runtime_error(name +
                             " does not do this work, or was left out for want of its library: "
                             "--help, service/install-packages bench");
  }
  if (names.empty()) return all;
  const auto is_unwanted = [&](const auto& one) {
    return std::find(names.begin(), names.end(), one.peer) == names.end();
  };
  all.erase(std::remove_if(all.begin(), all.end(), is_unwanted), all.end());
  return all;
}

void Take(const std::string& system, const Followed& followed, FigureLines& lines) {
  const Parameters parameters = {{"system", system}, {"feed", followed.feed}};
  lines.Number("events_per_second", parameters, followed.events_per_second, Unit::kPerSecond);
  if (followed.behind_us) {
    lines.Number("behind", parameters, *followed.behind_us, Unit::kMicroseconds);
  }
  std::cerr << "." << std::flush;
}

// As strata_queue_load tells them.
void TakeMessages(const Measurement& measured, FigureLines& lines) {
  const Parameters parameters = {{"system", measured.system}, {"queue", measured.workload}};
  const auto write = [&](const char* figure, double value, Unit unit) {
    lines.Number(figure, parameters, value, unit);
  };
  write("messages_per_second", measured.calls_per_second(), Unit::kPerSecond);
  write("server_cpu", measured.server_cpu_us(), Unit::kMicroseconds);
  write("client_cpu", measured.client_cpu_us(), Unit::kMicroseconds);
  write("latency_p50", measured.latency_us(0.5), Unit::kMicroseconds);
  write("latency_p99", measured.latency_us(0.99), Unit::kMicroseconds);
  if (measured.failures > 0) {
    lines.Wrong(measured.system + ", " + measured.workload + ": " +
                std::to_string(measured.failures) + " wrong answers");
  }
  std::cerr << "." << std::flush;
}

// One system after another; whether all of their answers were right.
template <typename Started>
bool RunEach(const std::vector<System<Started>>& systems, FigureLines& lines,
             const std::function<int64_t(const std::string& system, Started& peer)>& run) {
  int64_t failures = 0;
  for (const System<Started>& system : systems) {
    try {
      const std::unique_ptr<Started> peer = system.start();
      failures += run(system.name, *peer);
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
  return failures == 0;
}

bool RunFollowed(const Settings& settings, FigureLines& lines) {
  return RunEach<Peer>(Chosen(FollowedSystems(), settings.peers), lines,
                       [&](const std::string& system, Peer& peer) {
                         RunFeed(peer, settings.workloads,
                                 [&](const Followed& followed) { Take(system, followed, lines); });
                         return 0;
                       });
}

bool RunQueues(const Settings& settings, FigureLines& lines) {
  return RunEach<QueuePeer>(Chosen(QueueSystems(), settings.peers), lines,
                            [&](const std::string& system, QueuePeer& peer) {
                              int64_t failures = 0;
                              RunQueueWorkloads(system, peer, settings.queue_workloads,
                                                [&](const Measurement& measured) {
                                                  TakeMessages(measured, lines);
                                                  failures += measured.failures;
                                                });
                              return failures;
                            });
}

bool RunDocuments(const Settings& settings, FigureLines& lines) {
  return RunEach<Peer>(
      Chosen(Systems(), settings.peers), lines, [&](const std::string& system, Peer& peer) {
        int64_t failures = 0;
        // Another system, for whoever holds it against others.
        const std::string name =
            settings.workloads.documents == WorkloadSettings().documents
                ? system
                : system + ", " + std::to_string(settings.workloads.documents) + " documents";
        RunWorkloads(name, peer, settings.workloads, [&](const Measurement& measured) {
          Write(ParametersOf(measured), measured, lines);
          failures += measured.failures;
          std::cerr << "." << std::flush;
        });
        return failures;
      });
}

int Run(const Settings& settings) {
  FigureLines lines("strata_peers", settings.json);
  lines.Text("measured_on", {}, DescribeHost());
  const auto run = settings.feed ? RunFollowed : settings.queues ? RunQueues : RunDocuments;
  return run(settings, lines) ? 0 : kExitFailure;
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app{
      "strata_peers: runs the workloads W1 to W5, T1 and T2 on other stores (etcd, postgresql), "
      "each\n"
      "started durable in a temporary folder (TMPDIR), with a fixed number of calls in flight"};
  app.add_option("peer", settings.peers, "those to run; none named: all")
      ->check(CLI::IsMember({"etcd", "postgresql", "nats", "rabbitmq", "redis"}));
  CLI::Option* const feed = app.add_flag("--feed", settings.feed,
                                         "instead: those who follow what is written, as "
                                         "strata_feed_load does (etcd, postgresql, nats)");
  app.add_flag("--queues", settings.queues,
               "instead: the queue workloads (postgresql, rabbitmq, redis)")
      ->excludes(feed);
  app.add_option("--waiting", settings.queue_workloads.waiting,
                 "messages in the queue of q2_cycle_waiting; 0 leaves it out")
      ->check(CLI::Range(0, 10'000'000));
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
  settings.queue_workloads.warm_up = settings.workloads.warm_up;
  settings.queue_workloads.duration = settings.workloads.duration;
  settings.queue_workloads.documents = settings.workloads.documents;
  settings.queue_workloads.seed = settings.workloads.seed;
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
