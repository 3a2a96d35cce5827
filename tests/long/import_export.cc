// import_export FILE [STRATEGY…]: a file of versions imported by the real programs under each
// strategy, exported and held against itself, version by version; then the same import again, which
// must change nothing, and the export imported in its turn. Prints bytes on disk and versions a
// second. Exit status 0: all equal.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "tests/fault/server_process.h"
#include "tests/fault/version_lines.h"
#include "tests/support/temporary_directory.h"

namespace strata::fault {
namespace {

namespace fs = std::filesystem;

int64_t BytesUnder(const fs::path& directory) {
  int64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) bytes += static_cast<int64_t>(entry.file_size());
  }
  return bytes;
}

class Trial {
 public:
  Trial(const std::string& file, const Histories& input, const std::string& strategy)
      : file_(file), input_(input), strategy_(strategy) {}

  // False, having said why: something differs.
  bool Run() {
    const auto versions = static_cast<int64_t>(CountVersions(input_));
    ServerProcess server(settings_);
    const std::string first = Strata(server, {"import", file_, "--collection", "trial"});
    const std::string exported = Export(server, "trial");
    const std::string second = Strata(server, {"import", file_, "--collection", "trial"});
    const std::string unchanged = Export(server, "trial");
    Expect(server.Stop() == 0, "the server stops");
    ServerProcess(settings_).Stop();  // which moves what is still in the log to its place
    const int64_t bytes_on_disk = BytesUnder(settings_.data);
    ServerProcess again(settings_);
    Strata(again, {"import", exported, "--collection", "second"});
    const std::string round_trip = Export(again, "second");
    Expect(again.Stop() == 0, "the server stops");
    Expect(NumberIn(first, "written") == versions, "every line becomes a version");
    Expect(NumberIn(second, "replayed") == versions, "the repeated import replays every line");
    ExpectSame("the export", exported);
    ExpectSame("the export after the repeated import", unchanged);
    ExpectSame("the export of the imported export", round_trip);
    std::printf("%-18s %10lld %12lld %14lld %s\n", strategy_.c_str(),
                static_cast<long long>(versions),
                static_cast<long long>(NumberIn(first, "versions_per_second")),
                static_cast<long long>(bytes_on_disk), equal_ ? "equal" : "DIFFERENT");
    std::fflush(stdout);
    return equal_;
  }

 private:
  std::string Strata(const ServerProcess& server, std::vector<std::string> arguments) {
    std::vector<std::string> command = {StrataBinary(), "--json", "--server", server.address()};
    if (arguments[0] == "import") arguments.insert(arguments.end(), {"--strategy", strategy_});
    command.insert(command.end(), arguments.begin(), arguments.end());
    Finished finished = RunToEnd(command, settings_.log);
    Expect(finished.status == 0, arguments[0] + " ends with " + std::to_string(finished.status));
    return finished.output;
  }

  std::string Export(const ServerProcess& server, const std::string& collection) {
    const std::string path = directory_.Join("export-" + std::to_string(++exports_));
    Strata(server, {"export", collection, "-o", path});
    return path;
  }

  void ExpectSame(const std::string& what, const std::string& path) {
    const std::string difference = FirstDifference(input_, ReadVersionLines(path));
    Expect(difference.empty(), what + ": " + difference);
  }

  void Expect(bool holds, const std::string& what) {
    if (holds) return;
    equal_ = false;
    std::cerr << strategy_ << ": " << what << "\n" << ReadFile(settings_.log);
  }

  const std::string& file_;
  const Histories& input_;
  const std::string strategy_;
  test_support::TemporaryDirectory directory_;
  ServerSettings settings_{directory_.Join("data"), directory_.Join("log"), "127.0.0.1:0", {}};
  int exports_ = 0;
  bool equal_ = true;
};

int Main(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    std::cerr << "usage: import_export FILE [STRATEGY...]\n";
    return 2;
  }
  std::vector<std::string> strategies(arguments.begin() + 1, arguments.end());
  if (strategies.empty()) {
    strategies = {"full-copies", "current-flag", "embedded-history", "shadow-collection", "deltas"};
  }
  const Histories input = ReadVersionLines(arguments[0]);
  std::cout << input.size() << " documents\n";
  std::printf("%-18s %10s %12s %14s\n", "strategy", "versions", "versions/s", "bytes on disk");
  bool equal = true;
  for (const std::string& strategy : strategies) {
    equal = Trial(arguments[0], input, strategy).Run() && equal;
  }
  return equal ? 0 : 1;
}

}  // namespace
}  // namespace strata::fault

int main(int argc, char** argv) {
  return strata::fault::Main(std::vector<std::string>(argv + 1, argv + argc));
}
