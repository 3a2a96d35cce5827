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

void MeasureAll(const std::vector<Trial>& trials, const TrialSettings& settings,
                FigureLines& lines) {
  for (const Trial& trial : trials) {
    Measure(trial, settings, lines);
    std::cerr << "." << std::flush;
  }
}

struct Part {
  const char* name;
  void (*measure)(const TrialSettings&, FigureLines&);
};
constexpr Part kParts[] = {
    {"withstood", [](const TrialSettings& settings,
                     FigureLines& lines) { MeasureAll(WithstoodTrials(), settings, lines); }},
    {"unresisted", [](const TrialSettings& settings,
                      FigureLines& lines) { MeasureAll(UnresistedTrials(), settings, lines); }},
    {"idle", MeasureIdle},
};

int Main(int argc, char** argv) {
  TrialSettings settings;
  std::string json;
  std::vector<std::string> names;
  for (const Part& part : kParts) names.emplace_back(part.name);
  std::vector<std::string> parts = names;
  int64_t seconds = settings.duration.count();
  CLI::App app{
      "strata_withstand: starts servers in a temporary folder, attacks them, and shows how long "
      "an\n"
      "honest caller waits meanwhile and how much memory the server takes: what is to be "
      "withstood,\n"
      "what gRPC by itself does not resist (some of it takes gigabytes), and idle connections"};
  app.add_option("--part", parts, "what to measure")
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
    for (const Part& part : kParts) {
      if (std::find(parts.begin(), parts.end(), part.name) == parts.end()) continue;
      std::cerr << part.name << std::flush;
      part.measure(settings, lines);
      std::cerr << "\n";
    }
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
