// strata_http_load: what the port for people costs, on real servers in a temporary folder. Gives
// its figures as lines of JSON (bench/README.md).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "bench/http/measure.h"
#include "bench/support/figure_lines.h"
#include "bench/support/host.h"
#include "tests/support/temporary_directory.h"

namespace strata::bench {
namespace {

struct Part {
  const char* name;
  void (*measure)(const HttpLoadSettings&, FigureLines&);
};
constexpr Part kParts[] = {{"gets", MeasureGets}, {"idle", MeasureIdlePort}};

void Measure(const HttpLoadSettings& settings, const std::vector<std::string>& parts,
             FigureLines& lines) {
  for (const Part& part : kParts) {
    if (std::find(parts.begin(), parts.end(), part.name) == parts.end()) continue;
    std::cerr << part.name << std::flush;
    try {
      part.measure(settings, lines);
    } catch (const std::runtime_error& error) {
      // What the others give is still worth having.
      lines.Wrong(std::string(part.name) + ": " + error.what());
      std::cerr << ": " << error.what();
    }
    std::cerr << "\n";
  }
}

int Main(int argc, char** argv) {
  HttpLoadSettings settings;
  std::string json;
  double seconds = 1;
  std::vector<std::string> names;
  for (const Part& part : kParts) names.emplace_back(part.name);
  std::vector<std::string> parts = names;
  CLI::App app{
      "strata_http_load: starts servers in a temporary folder (TMPDIR) and shows what a Get of\n"
      "JSON costs by the port for people and by gRPC, and what W1 to W3 cost with that port open\n"
      "and idle and without it"};
  app.add_option("--part", parts, "what to measure")->check(CLI::IsMember(names));
  app.add_option("--seconds", seconds, "of each round")->check(CLI::Range(0.1, 600.0));
  app.add_option("--rounds", settings.rounds, "of each, in turns; the median counts")
      ->check(CLI::Range(1, 100));
  app.add_option("--documents", settings.documents, "of each size")
      ->check(CLI::Range(100, 1'000'000));
  app.add_option("--json", json, "file that figures are appended to, instead of standard output");
  for (CLI::Option* option : app.get_options()) option->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  settings.duration = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
  const test_support::TemporaryDirectory folder;
  settings.folder = folder.path().string();
  try {
    FigureLines lines("strata_http_load", json);
    lines.Text("measured_on", {}, DescribeHost());
    Measure(settings, parts, lines);
    return lines.wrong() == 0 ? 0 : 1;
  } catch (const std::runtime_error& error) {
    std::cerr << "strata_http_load: " << error.what() << std::endl;
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
