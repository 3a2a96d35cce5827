// The commands of service/docs/certificates.md, run as somebody would paste them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/fault/child_process.h"
#include "tests/fault/documented_commands.h"
#include "tests/fault/server_process.h"
#include "tests/support/temporary_directory.h"

namespace strata::tls_test {
namespace {

// The lines of the blocks marked as such, in their order; a command of several lines is one.
std::vector<std::string> CommandsOf(const std::string& path) {
  std::vector<std::string> commands;
  std::ifstream in(path);
  bool inside = false;
  bool goes_on = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```")) {
      inside = line == "```sh";
    } else if (inside && goes_on) {
      commands.back() += "\n" + line;
      goes_on = line.ends_with("\\");
    } else if (inside) {
      commands.push_back(line);
      goes_on = line.ends_with("\\");
    }
  }
  return commands;
}

// What a shell stops at that is to fail, too, and not only what is to succeed.
std::string Strict(const std::string& command) {
  if (!command.starts_with("! ")) return command;
  return "if " + command.substr(2) + "; then echo 'it did not fail'; exit 1; fi";
}

TEST(Rotation, IsDoneByTheCommandsThatAreWrittenDown) {
  const test_support::TemporaryDirectory directory;
  const auto folder_of = [](const std::string& program) {
    return std::filesystem::path(program).parent_path().string();
  };
  const std::string port = fault::FreePort();
  std::ofstream script(directory.Join("script"));
  script << "set -euxo pipefail\ncd " << directory.path()
         << "\nPATH=" << folder_of(STRATA_SERVER_BINARY) << ":" << folder_of(fault::StrataBinary())
         << ":$PATH\n"
         << "trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n";
  int commands = 0;
  for (const std::string& command : CommandsOf(STRATA_CERTIFICATES_DOCUMENT)) {
    if (command.starts_with("grpcurl ")) continue;  // no package has it
    script << Strict(fault::Replaced(command, "50051", port)) << "\n";
    ++commands;
  }
  script.close();
  EXPECT_GT(commands, 50);
  const fault::Finished finished =
      fault::RunToEnd({"/bin/bash", directory.Join("script")}, directory.Join("errors"));
  EXPECT_EQ(finished.status, 0) << finished.output << fault::ReadFile(directory.Join("errors"))
                                << fault::ReadFile(directory.Join("strata-secrets/stratad.log"));
}

}  // namespace
}  // namespace strata::tls_test
