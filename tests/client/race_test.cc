// Several processes modify one document while the server is killed: in the end it counts each of
// them once. STRATA_CLIENT_RACE="8 500 20" makes it 8 processes, 500 each, through 20 kills.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "strata/client/client.h"
#include "tests/fault/child_process.h"
#include "tests/fault/server_process.h"
#include "tests/support/places.h"
#include "tests/support/temporary_directory.h"

namespace strata::client {
namespace {

struct Settings {
  int processes = 4;
  int each = 100;
  int kills = 3;
};

Settings SettingsOfTheEnvironment() {
  Settings settings;
  if (const char* const text = std::getenv("STRATA_CLIENT_RACE")) {
    std::istringstream(text) >> settings.processes >> settings.each >> settings.kills;
  }
  return settings;
}

std::optional<int64_t> Count(const Collection& things) {
  const auto document = things.Get("counter");
  if (!document.ok() || !document->has_value()) return std::nullopt;
  const Value& content = *(*document)->content;
  return content["n"].AsInteger();
}

TEST(Race, EachModifyCountsOnceHoweverOftenTheServerIsKilled) {
  const Settings settings = SettingsOfTheEnvironment();
  const test_support::TemporaryDirectory folder;
  fault::ServerSettings server_settings;
  server_settings.data = folder.Join("data");
  server_settings.log = folder.Join("log");
  auto server = std::make_unique<fault::ServerProcess>(server_settings);
  // From here on at the same address.
  server_settings.listen = server->address();
  const auto client = Client::Connect({.target = server->address(), .retry_for = absl::Minutes(1)});
  ASSERT_TRUE(client.ok()) << client.status();
  const Collection things = client->collection("things");

  std::vector<std::unique_ptr<fault::ChildProcess>> processes;
  for (int i = 0; i < settings.processes; ++i) {
    const std::vector<std::string> arguments = {
        test_support::BuiltPath("tests/client/client_modifier"), server->address(), "things",
        "counter", std::to_string(settings.each)};
    processes.push_back(std::make_unique<fault::ChildProcess>(arguments, folder.Join("modifiers")));
  }

  // Each kill comes when a further share of the work is done, so that all of them hit it.
  const int64_t all = int64_t{settings.processes} * settings.each;
  for (int kill = 1; kill <= settings.kills; ++kill) {
    const int64_t share = all * kill / (settings.kills + 1);
    while (Count(things).value_or(0) < share) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    server->Kill();
    server = std::make_unique<fault::ServerProcess>(server_settings);
  }
  for (const auto& process : processes) {
    EXPECT_EQ(process->Wait(), 0) << fault::ReadFile(folder.Join("modifiers"));
  }
  EXPECT_EQ(Count(things), all);
  const auto versions = All(things.History("counter", {.page_size = 1000}));
  ASSERT_TRUE(versions.ok()) << versions.status();
  EXPECT_EQ(static_cast<int64_t>(versions->size()), all);
}

}  // namespace
}  // namespace strata::client
