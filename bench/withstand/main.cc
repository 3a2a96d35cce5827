// strata_withstand: attacks on the real server, beside a caller who means no harm, and what they
// cost him and the server. Gives its figures as lines of JSON (bench/README.md).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "bench/support/figure_lines.h"
#include "bench/support/host.h"
#include "bench/withstand/trial.h"
#include "tests/support/temporary_directory.h"

namespace strata::bench {
namespace {

constexpr char kIdle[] = "idle";

// In the order in which they run, each once.
std::vector<std::string> NamesOf(const std::vector<Trial>& trials) {
  std::vector<std::string> names;
  for (const Trial& trial : trials) {
    if (std::find(names.begin(), names.end(), trial.name) == names.end()) {
      names.push_back(trial.name);
    }
  }
  names.emplace_back(kIdle);
  return names;
}

void MeasureAll(const std::vector<Trial>& trials, const std::vector<std::string>& chosen,
                const TrialSettings& settings, FigureLines& lines) {
  const auto is_chosen = [&](const std::string& name) {
    return std::find(chosen.begin(), chosen.end(), name) != chosen.end();
  };
  for (const Trial& trial : trials) {
    if (!is_chosen(trial.name)) continue;
    std::cerr << trial.name << ", event loops " << trial.event_loops << "\n";
    Measure(trial, settings, lines);
  }
  if (is_chosen(kIdle)) MeasureIdle(settings, lines);
}

int Main(int argc, char** argv) {
  TrialSettings settings;
  std::string json;
  const std::vector<Trial> trials = AllTrials();
  const std::vector<std::string> names = NamesOf(trials);
  std::vector<std::string> chosen = names;
  int64_t seconds = settings.duration.count();
  CLI::App app{
      "strata_withstand: starts servers in a temporary folder, attacks them, and shows how long "
      "an\n"
      "honest caller waits meanwhile and how much memory the server takes: what is to be "
      "withstood,\n"
      "what gRPC by itself does not resist (some of it takes gigabytes), and idle connections"};
  app.add_option("--attack", chosen, "which attacks")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  app.add_option("--seconds", seconds, "how long each attack goes on")
      ->check(CLI::Range(1, 600))
      ->capture_default_str();
  app.add_option("--json", json, "file that figures are appended to, instead of standard output");
  CLI11_PARSE(app, argc, argv);
  settings.duration = std::chrono::seconds(seconds);
  const test_support::TemporaryDirectory folder;
  settings.folder = folder.path().string();
  try {
    FigureLines lines("strata_withstand", json);
    lines.Text("measured_on", {}, DescribeHost());
    MeasureAll(trials, chosen, settings, lines);
    return lines.wrong() == 0 ? 0 : 1;
  } catch (const std::runtime_error& error) {
    std::cerr << "strata_withstand: " << error.what() << std::endl;
    return 1;
  }
}

}  // namespace
}  // namespace strata::bench

int main(int argc, char** argv) {
  // As the servers do: what the client costs is taken from them.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  return strata::bench::Main(argc, argv);
}
