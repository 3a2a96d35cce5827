// strata_access: what it costs to know who calls, what denials tell, and whether quotas hold. Gives
// its figures as lines of JSON (bench/README.md).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "bench/access/measure.h"
#include "bench/support/host.h"
#include "tests/support/temporary_directory.h"

namespace strata::bench {
namespace {

struct Part {
  const char* name;
  void (*measure)(const AccessSettings&, const Secrets&, FigureLines&);
};

constexpr Part kParts[] = {
    {"cost", MeasureCost}, {"denials", MeasureDenials}, {"quotas", MeasureQuotas}};

int Run(const AccessSettings& settings, const std::vector<std::string>& chosen,
        const std::string& json) {
  FigureLines lines("strata_access", json);
  lines.Text("measured_on", {}, DescribeHost());
  const Secrets secrets(settings.folder);
  for (const Part& part : kParts) {
    if (std::find(chosen.begin(), chosen.end(), part.name) == chosen.end()) continue;
    std::cerr << part.name << "\n";
    part.measure(settings, secrets, lines);
  }
  return lines.wrong() == 0 ? 0 : 1;
}

int Main(int argc, char** argv) {
  AccessSettings settings;
  std::string json;
  std::vector<std::string> chosen;
  for (const Part& part : kParts) chosen.emplace_back(part.name);
  CLI::App app{
      "strata_access: starts servers in a temporary folder and shows what it costs to know who\n"
      "calls (a token, a policy, TLS, client certificates), whether denials tell what is there,\n"
      "and whether a caller gets its quota, no less and no more, at nobody else's cost"};
  app.add_option("--measure", chosen, "what")->check(CLI::IsMember(chosen))->capture_default_str();
  app.add_option("--rounds", settings.rounds, "of the cost; the median counts")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_option("--seconds", settings.seconds, "of each round")
      ->check(CLI::Range(0.1, 600.0))
      ->capture_default_str();
  app.add_option("--calls", settings.calls, "denied Gets of each kind")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  app.add_option("--json", json, "file that figures are appended to, instead of standard output");
  CLI11_PARSE(app, argc, argv);
  const test_support::TemporaryDirectory folder;
  settings.folder = folder.path().string();
  try {
    return Run(settings, chosen, json);
  } catch (const std::runtime_error& error) {
    std::cerr << "strata_access: " << error.what() << std::endl;
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
