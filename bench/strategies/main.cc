// strategy_report FILE --out DIR [--scratch DIR] [--commit NAME]: measures every strategy on every
// engine with the real histories of FILE, and writes report.txt, report.json and report.html.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "bench/strategies/measure.h"
#include "bench/strategies/writers.h"

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

void WriteFile(const fs::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  if (!out.flush()) Fail("cannot write " + path.string());
}

int Main(int argc, char** argv) {
  Options options = ParseArguments(argc, argv);
  if (options.contains("load")) Load(options);
  if (!options.contains("file") || !options.contains("out")) {
    Fail("usage: strategy_report FILE --out DIR [--scratch DIR] [--commit NAME]");
  }
  const fs::path scratch =
      options.contains("scratch") ? fs::path(options["scratch"]) : fs::temp_directory_path();
  Report report = MeasureAll(options["file"], scratch / "strategy_report");
  report.commit = options["commit"];
  const fs::path out = options["out"];
  fs::create_directories(out);
  const std::string text = TextReport(report);
  WriteFile(out / "report.txt", text);
  WriteFile(out / "report.json", JsonReport(report));
  WriteFile(out / "report.html", HtmlReport(report));
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace strata::bench

int main(int argc, char** argv) { return strata::bench::Main(argc, argv); }
