// The commands of service/docs/certificates.md, run as somebody would paste them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/fault/child_process.h"
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

std::string FreePort() {
  const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  bind(listening, reinterpret_cast<const sockaddr*>(&address), size);
  getsockname(listening, reinterpret_cast<sockaddr*>(&address), &size);
  close(listening);
  return std::to_string(ntohs(address.sin_port));
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
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
  const std::string port = FreePort();
  std::ofstream script(directory.Join("script"));
  script << "set -euxo pipefail\ncd " << directory.path()
         << "\nPATH=" << folder_of(STRATA_SERVER_BINARY) << ":" << folder_of(fault::StrataBinary())
         << ":$PATH\n"
         << "trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n";
  int commands = 0;
  for (const std::string& command : CommandsOf(STRATA_CERTIFICATES_DOCUMENT)) {
    if (command.starts_with("grpcurl ")) continue;  // no package has it
    script << Strict(Replaced(command, "50051", port)) << "\n";
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
