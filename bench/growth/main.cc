// strata_growth: how the real server grows with documents, versions, idle connections and streams,
// a burst of large updates, and at its start.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "bench/growth/measure.h"
#include "bench/growth/writers.h"
#include "tests/support/temporary_directory.h"

namespace strata::bench {
namespace {

struct Part {
  const char* name;
  void (*measure)(const GrowthSettings&, Figures&);
};
// Starts go behind documents, whose directory they use.
constexpr Part kParts[] = {{"versions", MeasureVersions},
                           {"idle", MeasureIdle},
                           {"bursts", MeasureBursts},
                           {"documents", MeasureDocuments},
                           {"starts", MeasureStarts}};

void WriteFile(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
}

Figures Measure(const GrowthSettings& settings, const std::vector<std::string>& parts) {
  const auto start = std::chrono::steady_clock::now();
  Figures figures;
  for (const Part& part : kParts) {
    if (std::find(parts.begin(), parts.end(), part.name) == parts.end()) continue;
    std::cerr << part.name << std::flush;
    part.measure(settings, figures);
    std::cerr << "\n";
  }
  figures.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return figures;
}

int Main(int argc, char** argv) {
  GrowthSettings settings;
  std::string json;
  std::string html;
  std::vector<std::string> names;
  for (const Part& part : kParts) names.emplace_back(part.name);
  std::vector<std::string> parts = names;
  CLI::App app{
      "strata_growth: starts servers in a temporary folder and shows how they grow: with the "
      "number\n"
      "of documents and versions, with idle connections and streams, in a burst of updates of a\n"
      "megabyte, and at their start"};
  app.add_flag("--full", settings.full,
               "up to a million documents, a start on 1 GB, longer rounds: some eight minutes");
  app.add_option("--part", parts, "what to measure")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  app.add_option("--json", json, "file for the figures, an object a line");
  app.add_option("--html", html, "file for a page with plots");
  CLI11_PARSE(app, argc, argv);
  const test_support::TemporaryDirectory folder;
  settings.folder = folder.path().string();
  try {
    RaiseFileLimit();
    const Figures figures = Measure(settings, parts);
    std::cout << TextReport(figures) << std::flush;
    if (!json.empty()) WriteFile(json, JsonLines(figures));
    if (!html.empty()) WriteFile(html, HtmlReport(figures));
    return figures.wrong.empty() ? 0 : 1;
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
