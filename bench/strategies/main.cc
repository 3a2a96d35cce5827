// strategy_report FILE [--json FILE] [--scratch DIR] [--commit NAME]: measures every strategy on
// every engine with the real histories of FILE. Gives its figures as lines of JSON
// (bench/README.md): appended to the second FILE, or on standard output.
#include <bson/bson.h>
#include <rocksdb/version.h>

#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/strategies/measure.h"
#include "bench/support/figure_lines.h"
#include "bench/support/host.h"

namespace strata::bench {
namespace {

namespace fs = std::filesystem;

using Options = std::map<std::string, std::string, std::less<>>;

Options ParseArguments(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (!argument.starts_with("--")) {
      options["file"] = argument;
    } else if (i + 1 < argc) {
      options[argument.substr(2)] = argv[++i];
    }
  }
  return options;
}

const engines::Engine& EngineOf(std::string_view name) {
  for (const engines::Engine& engine : engines::AllEngines()) {
    if (engine.name == name) return engine;
  }
  Fail("no engine " + std::string(name));
}

[[noreturn]] void Load(const Options& options) {
  const versioning::StrategyEntry* const strategy =
      versioning::FindStrategy(options.at("strategy"));
  if (strategy == nullptr) Fail("no strategy " + options.at("strategy"));
  std::vector<int64_t> growth;
  for (const auto part : absl::StrSplit(options.at("growth"), ',', absl::SkipEmpty())) {
    if (!absl::SimpleAtoi(part, &growth.emplace_back())) Fail("no number");
  }
  LoadAndWait(EngineOf(options.at("engine")), *strategy, ReadHistories(options.at("file")), growth,
              options.at("load"));
}

// With what a host has besides: the libraries, and what was built.
std::string DescribeMachine(const std::string& commit) {
  std::string text = absl::StrCat(DescribeHost(), ", RocksDB ", ROCKSDB_MAJOR, ".", ROCKSDB_MINOR,
                                  ".", ROCKSDB_PATCH, ", libbson ", bson_get_version());
  if (!commit.empty()) absl::StrAppend(&text, ", commit ", commit);
  return text;
}

int Main(int argc, char** argv) {
  Options options = ParseArguments(argc, argv);
  if (options.contains("load")) Load(options);
  if (!options.contains("file")) {
    Fail("usage: strategy_report FILE [--json FILE] [--scratch DIR] [--commit NAME]");
  }
  const fs::path scratch =
      options.contains("scratch") ? fs::path(options["scratch"]) : fs::temp_directory_path();
  try {
    FigureLines lines("strategy_report", options["json"]);
    lines.Text("measured_on", {}, DescribeMachine(options["commit"]));
    MeasureAll(options["file"], scratch / "strategy_report", lines);
  } catch (const std::runtime_error& error) {
    Fail(error.what());
  }
  return 0;
}

}  // namespace
}  // namespace strata::bench

int main(int argc, char** argv) { return strata::bench::Main(argc, argv); }
