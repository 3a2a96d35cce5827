// strata_queue_load: what queues cost and give, each on real servers in a temporary folder. Gives
// its figures as lines of JSON (bench/README.md).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "bench/queue/measure.h"
#include "bench/support/figure_lines.h"
#include "bench/support/host.h"
#include "tests/support/temporary_directory.h"

namespace strata::bench {
namespace {

constexpr Depth kFull{1'000'000, "10^6"};
constexpr Depth kLong{10'000'000, "10^7"};
constexpr int64_t kThroughFull = 1'000'000;

struct Part {
  const char* name;
  void (*measure)(const QueueLoadSettings&, FigureLines&);
};
constexpr Part kParts[] = {
    {"push", MeasurePush},       {"cycle", MeasureCycle},     {"receive", MeasureReceive},
    {"commit", MeasureCommit},   {"wait", MeasureWait},       {"depth", MeasureDepth},
    {"through", MeasureThrough}, {"waiting", MeasureWaiting}, {"baseline", MeasureBaseline}};

void Measure(const QueueLoadSettings& settings, const std::vector<std::string>& parts,
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
  QueueLoadSettings settings;
  std::string json;
  double seconds = 1;
  bool full = false;
  bool longest = false;
  std::vector<std::string> names;
  for (const Part& part : kParts) names.emplace_back(part.name);
  std::vector<std::string> parts = names;
  CLI::App app{
      "strata_queue_load: starts servers in a temporary folder (TMPDIR) and shows what it costs "
      "to\n"
      "push, take and acknowledge messages, beside updates of documents, and how that grows"};
  app.add_option("--part", parts, "what to measure")->check(CLI::IsMember(names));
  app.add_option("--baseline", settings.baseline,
                 "another stratad, such as one from before a change, that W1 to W3 are held "
                 "against in turns")
      ->check(CLI::ExistingFile);
  app.add_option("--seconds", seconds, "of each round, but of commit")
      ->check(CLI::Range(0.1, 600.0));
  app.add_option("--rounds", settings.rounds, "the median counts")->check(CLI::Range(1, 100));
  app.add_option("--scale", settings.scale,
                 "multiplies documents and messages; anything but 1 is for tests")
      ->check(CLI::Range(0.01, 1.0));
  app.add_flag("--full", full, "10^6 messages that wait or go through, instead of 10^5");
  app.add_flag("--long", longest, "besides: 10^7 that wait");
  app.add_option("--json", json, "file that figures are appended to, instead of standard output");
  for (CLI::Option* option : app.get_options()) option->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  settings.duration = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
  if (full || longest) settings.through = kThroughFull;
  if (full || longest) settings.depths = {kFull};
  if (longest) settings.depths.push_back(kLong);
  const test_support::TemporaryDirectory folder;
  settings.folder = folder.path().string();
  try {
    FigureLines lines("strata_queue_load", json);
    lines.Text("measured_on", {}, DescribeHost());
    Measure(settings, parts, lines);
    return lines.wrong() == 0 ? 0 : 1;
  } catch (const std::runtime_error& error) {
    std::cerr << "strata_queue_load: " << error.what() << std::endl;
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
