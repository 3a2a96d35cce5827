// strata_client_load: what a call costs by the client library, beside the generated stub. Gives its
// figures as lines of JSON (bench/README.md).
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "bench/client/calls.h"
#include "bench/support/figure_lines.h"
#include "bench/support/host.h"
#include "bench/support/process.h"
#include "bench/support/rounds.h"
#include "strata/client/client.h"
#include "tests/fault/server_process.h"
#include "tests/support/temporary_directory.h"

namespace strata::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Settings {
  int rounds = 9;
  double seconds = 1;
};

// What one round of one way gave, a call.
struct Round {
  double microseconds = 0;  // from its begin to its end, if one is made at a time
  double client_cpu = 0;    // of this process
};

void Prepare(const std::string& target, Caller& caller) {
  const auto client = client::Client::Connect({.target = target});
  for (int64_t i = 0; i < kDocuments; ++i) {
    const auto written = client->collection(kCollection)
                             .Create(IdOf(i), client::Value(client::Object{{"number", i}}));
    if (!written.ok()) throw std::runtime_error(written.status().ToString());
  }
  // Each document gets its ten fields.
  if (caller.Update(64, Clock::now() + std::chrono::milliseconds(500)) < kDocuments) {
    throw std::runtime_error("the documents could not be written");
  }
}

template <typename Calls>
Round Measure(const Settings& settings, const Calls& calls) {
  const auto cpu = CpuTime(getpid());
  const auto begin = Clock::now();
  const auto length =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(settings.seconds));
  const int64_t count = calls(begin + length);
  if (count <= 0) throw std::runtime_error("a call was answered wrongly");
  const std::chrono::duration<double, std::micro> took = Clock::now() - begin;
  const std::chrono::duration<double, std::micro> used = CpuTime(getpid()) - cpu;
  const auto all = static_cast<double>(count);
  return {.microseconds = took.count() / all, .client_cpu = used.count() / all};
}

// Both ways in turns; the median of the rounds' ratios counts.
void MeasureWorkload(const Settings& settings, const std::string& workload, int in_flight,
                     std::vector<std::unique_ptr<Caller>>& callers, FigureLines& lines) {
  std::map<std::string_view, std::vector<double>> times;
  std::map<std::string_view, std::vector<double>> cpus;
  std::vector<double> time_ratios;
  std::vector<double> cpu_ratios;
  for (int round = 0; round < settings.rounds; ++round) {
    // Who is first changes, so that neither has the other's tail.
    std::swap(callers[0], callers[1]);
    std::map<std::string_view, Round> measured;
    for (const auto& caller : callers) {
      measured[caller->name()] = Measure(settings, [&](Clock::time_point until) {
        return workload == "get" ? caller->Get(in_flight, until) : caller->Update(in_flight, until);
      });
    }
    for (const auto& [name, figures] : measured) {
      times[name].push_back(figures.microseconds);
      cpus[name].push_back(figures.client_cpu);
    }
    const Round& raw = measured["generated stub"];
    const Round& library = measured["client library"];
    time_ratios.push_back(library.microseconds / raw.microseconds);
    cpu_ratios.push_back(library.client_cpu / raw.client_cpu);
  }
  for (const auto& [name, values] : times) {
    const Parameters parameters = {
        {"client", name}, {"workload", workload}, {"in_flight", int64_t{in_flight}}};
    WriteRounds("time_per_call", parameters, values, Unit::kMicroseconds, lines);
    WriteRounds("client_cpu", parameters, cpus[name], Unit::kMicroseconds, lines);
  }
  const Parameters parameters = {
      {"client", "client library"}, {"workload", workload}, {"in_flight", int64_t{in_flight}}};
  WriteRounds("time_ratio", parameters, time_ratios, Unit::kRatio, lines);
  WriteRounds("client_cpu_ratio", parameters, cpu_ratios, Unit::kRatio, lines);
}

void Run(const Settings& settings, FigureLines& lines) {
  lines.Text("measured_on", {}, DescribeHost());
  const test_support::TemporaryDirectory folder;
  fault::ServerSettings server_settings;
  server_settings.data = folder.Join("data");
  server_settings.log = folder.Join("log");
  server_settings.flags = {"--engine", "memory"};
  const fault::ServerProcess server(server_settings);
  std::vector<std::unique_ptr<Caller>> callers;
  callers.push_back(MakeRawCaller(server.address()));
  callers.push_back(MakeLibraryCaller(server.address()));
  Prepare(server.address(), *callers[0]);
  for (const char* workload : {"get", "update"}) {
    for (const int in_flight : {1, 64}) {
      MeasureWorkload(settings, workload, in_flight, callers, lines);
    }
  }
}

int Main(int argc, char** argv) {
  Settings settings;
  std::string json;
  CLI::App app{
      "strata_client_load: starts a server in memory, and shows what a call costs by the client\n"
      "library for C++ and by the generated stub, one at a time and 64 at once"};
  app.add_option("--rounds", settings.rounds, "of each way, in turns; the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--seconds", settings.seconds, "of each round")
      ->check(CLI::Range(0.05, 600.0))
      ->capture_default_str();
  app.add_option("--json", json, "file that figures are appended to, instead of standard output");
  CLI11_PARSE(app, argc, argv);
  try {
    FigureLines lines("strata_client_load", json);
    Run(settings, lines);
    return 0;
  } catch (const std::runtime_error& error) {
    std::cerr << "strata_client_load: " << error.what() << std::endl;
    return 1;
  }
}

}  // namespace
}  // namespace strata::bench

int main(int argc, char** argv) {
  // As the servers do: what the client costs is measured here.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  return strata::bench::Main(argc, argv);
}
