// strata_feed_load: what the feed, leases and subscriptions cost and give, each on real servers in
// a temporary folder. Gives its figures as lines of JSON (bench/README.md).
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "bench/feed/measure.h"
#include "bench/support/figure_lines.h"
#include "bench/support/host.h"
#include "tests/support/temporary_directory.h"

namespace strata::bench {
namespace {

struct Part {
  const char* name;
  void (*measure)(const FeedSettings&, FigureLines&);
};
constexpr Part kParts[] = {{"beside", MeasureBeside},    {"delivery", MeasureDelivery},
                           {"events", MeasureEvents},    {"catch-up", MeasureCatchUp},
                           {"memory", MeasureMemory},    {"leases", MeasureLeases},
                           {"consume", MeasureConsume},  {"exactly-once", MeasureExactlyOnce},
                           {"growth", MeasureFeedGrowth}};

void Measure(const FeedSettings& settings, const std::vector<std::string>& parts,
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

// Connections for thousands of streams.
void RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) throw std::runtime_error("getrlimit failed");
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) throw std::runtime_error("setrlimit failed");
}

int Main(int argc, char** argv) {
  FeedSettings settings;
  std::string json;
  double seconds = 1;
  std::vector<std::string> names;
  for (const Part& part : kParts) names.emplace_back(part.name);
  std::vector<std::string> parts = names;
  CLI::App app{
      "strata_feed_load: starts servers in a temporary folder (TMPDIR) and shows what those who\n"
      "follow cost and get, and what leases and subscriptions do"};
  app.add_option("--part", parts, "what to measure")->check(CLI::IsMember(names));
  app.add_option("--baseline", settings.baseline,
                 "another stratad, such as one from before a change, that W1 is held against in "
                 "turns")
      ->check(CLI::ExistingFile);
  app.add_option("--seconds", seconds, "of each round")->check(CLI::Range(0.1, 600.0));
  app.add_option("--rounds", settings.rounds, "the median counts")->check(CLI::Range(1, 100));
  app.add_option("--scale", settings.scale,
                 "multiplies documents, watchers and leases; anything but 1 is for tests")
      ->check(CLI::Range(0.01, 1.0));
  app.add_flag("--full", settings.full,
               "slow watchers for five minutes, and growth to a ledger of 10^7 entries");
  app.add_option("--json", json, "file that figures are appended to, instead of standard output");
  for (CLI::Option* option : app.get_options()) option->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  settings.duration = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
  const test_support::TemporaryDirectory folder;
  settings.folder = folder.path().string();
  try {
    RaiseFileLimit();
    FigureLines lines("strata_feed_load", json);
    lines.Text("measured_on", {}, DescribeHost());
    Measure(settings, parts, lines);
    return lines.wrong() == 0 ? 0 : 1;
  } catch (const std::runtime_error& error) {
    std::cerr << "strata_feed_load: " << error.what() << std::endl;
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
