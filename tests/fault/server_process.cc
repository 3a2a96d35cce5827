// Starts stratad and waits for the line that says where it serves.
#include "tests/fault/server_process.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <optional>

#include "tests/support/places.h"

namespace strata::fault {
namespace {

std::vector<std::string> CommandLine(const ServerSettings& settings) {
  std::vector<std::string> arguments = {
      settings.binary.empty() ? test_support::ServerProgram() : settings.binary, "--data",
      settings.data, "--listen", settings.listen};
  arguments.insert(arguments.end(), settings.flags.begin(), settings.flags.end());
  if (settings.open_files_max == 0) return arguments;
  const std::string limit = "ulimit -n " + std::to_string(settings.open_files_max);
  std::vector<std::string> limited = {"/bin/sh", "-c", limit + R"( && exec "$@")", "sh"};
  limited.insert(limited.end(), arguments.begin(), arguments.end());
  return limited;
}

}  // namespace

ServerProcess::ServerProcess(const ServerSettings& settings)
    : process_(CommandLine(settings), settings.log) {
  const std::optional<std::string> line = process_.ReadLine(std::chrono::minutes(1));
  constexpr std::string_view kOpening = "stratad: serving strata.v1 on ";
  if (!line.has_value() || !line->starts_with(kOpening)) {
    std::cerr << "the server does not serve; it said: " << line.value_or("nothing") << "\n"
              << ReadFile(settings.log) << std::endl;
    std::abort();
  }
  address_ = line->substr(kOpening.size());
  address_.erase(address_.find(' '));
}

std::shared_ptr<grpc::Channel> ServerProcess::Connect() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  return grpc::CreateCustomChannel(address_, grpc::InsecureChannelCredentials(), arguments);
}

void ServerProcess::Kill() {
  process_.Signal(SIGKILL);
  process_.Wait();
}

int ServerProcess::Stop() {
  process_.Signal(SIGTERM);
  return process_.Wait();
}

std::string StrataBinary() { return test_support::CommandLineProgram(); }

}  // namespace strata::fault
