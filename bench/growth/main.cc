// strata_growth: how the real server grows with documents, versions, idle connections and streams,
// a burst of large updates, and at its start. Gives its figures as lines of JSON (bench/README.md).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "bench/growth/measure.h"
#include "bench/support/figure_lines.h"
#include "bench/support/host.h"
#include "tests/support/temporary_directory.h"

namespace strata::bench {
namespace {

struct Part {
  const char* name;
  void (*measure)(const GrowthSettings&, FigureLines&);
};
// Starts come after documents, whose directory they use.
constexpr Part kParts[] = {{"versions", MeasureVersions},   {"idle", MeasureIdle},
                           {"bursts", MeasureBursts},       {"scale", MeasureScale},
                           {"sustained", MeasureSustained}, {"documents", MeasureDocuments},
                           {"starts", MeasureStarts}};

void Measure(const GrowthSettings& settings, const std::vector<std::string>& parts,
             FigureLines& lines) {
  for (const Part& part : kParts) {
    if (std::find(parts.begin(), parts.end(), part.name) == parts.end()) continue;
    std::cerr << part.name << std::flush;
    part.measure(settings, lines);
    std::cerr << "\n";
  }
}

int Main(int argc, char** argv) {
  GrowthSettings settings;
  std::string json;
  std::vector<std::string> names;
  for (const Part& part : kParts) names.emplace_back(part.name);
  std::vector<std::string> parts = names;
  CLI::App app{
      "strata_growth: starts servers in a temporary folder and shows how they grow: with the "
      "number\n"
      "of documents and versions, with idle connections and streams, in a burst of updates of a\n"
      "megabyte, and at their start"};
  app.add_flag("--full", settings.full,
               "up to a million documents, ten minutes of updates, a start on 1 GB, longer rounds: "
               "half an hour");
  app.add_flag("--long", settings.longest,
               "scale: 10^7 documents instead of 10^6; sustained: ten minutes");
  app.add_option("--part", parts, "what to measure")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  app.add_option("--json", json, "file that figures are appended to, instead of standard output");
  CLI11_PARSE(app, argc, argv);
  const test_support::TemporaryDirectory folder;
  settings.folder = folder.path().string();
  try {
    RaiseFileLimit();
    FigureLines lines("strata_growth", json);
    lines.Text("measured_on", {}, DescribeHost());
    Measure(settings, parts, lines);
    return lines.wrong() == 0 ? 0 : 1;
  } catch (const std::runtime_error& error) {
    std::cerr << "strata_growth: " << error.what() << std::endl;
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
