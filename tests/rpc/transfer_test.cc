// The transfers, the leases, the queues and the subscriptions of the README, run as somebody would
// paste them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "tests/fault/child_process.h"
#include "tests/fault/documented_commands.h"
#include "tests/fault/server_process.h"
#include "tests/support/temporary_directory.h"

namespace strata::rpc_test {
namespace {

using testing::HasSubstr;
using testing::Not;

// The lines of the section's blocks that are marked as such.
std::string CommandsOf(const std::string& path, const std::string& section) {
  std::string commands;
  std::ifstream in(path);
  bool wanted = false;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (!inside && line.starts_with("#")) wanted = line == section;
    if (line.starts_with("```")) {
      inside = line == "```sh";
    } else if (wanted && inside) {
      commands += line + "\n";
    }
  }
  return commands;
}

// Before the commands: no package has grpcurl, so the command line tool sends what it would; and
// instead of for a second one waits for the server.
constexpr char kBefore[] = R"(
grpcurl() {
  local data
  while [ $# -gt 0 ]; do if [ "$1" = -d ]; then data=$2; shift; fi; shift; done
  strata commit - --timeout 10s <<< "$data"
}
sleep() {
  if [ "$1" != 1 ]; then command sleep "$1"; return; fi
  until strata collections > listed 2>&1; do kill -0 $! && command sleep 0.1; done
}
# Each server takes a free port, and the tool finds it in what the server says.
stratad() {
  exec "$STRATAD" --listen "127.0.0.1:$PORT" "$@"
}
)";

struct Pasted {
  fault::Finished finished;
  std::string errors;
};

// Runs the commands of a section in `folder`, which is a new one in place of that of the same name
// under /tmp.
Pasted Paste(const std::string& section, const std::string& folder) {
  const test_support::TemporaryDirectory directory;
  const std::string port = fault::FreePort();
  const std::string tool = fault::StrataBinary();
  std::ofstream script(directory.Join("script"));
  script << "set -euxo pipefail\nexport STRATA_SERVER=127.0.0.1:" << port << " PORT=" << port
         << " STRATAD=" << STRATA_SERVER_BINARY
         << "\nPATH=" << std::filesystem::path(tool).parent_path().string() << ":$PATH\n"
         << "trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n"
         << kBefore
         << fault::Replaced(CommandsOf(STRATA_README, section), "/tmp/" + folder,
                            directory.Join(folder));
  script.close();
  fault::Finished finished =
      fault::RunToEnd({"/bin/bash", directory.Join("script")}, directory.Join("errors"));
  std::string errors = fault::ReadFile(directory.Join("errors"));
  return {std::move(finished), std::move(errors)};
}

TEST(Transfer, IsDoneByTheCommandsThatAreWrittenDown) {
  const auto [finished, errors] = Paste("### Transactions", "strata-transfer");
  ASSERT_EQ(finished.status, 0) << finished.output << errors;
  // What the comments beside the commands say.
  std::string balances;
  size_t at = 0;
  while ((at = finished.output.find("\"balance\": ", at)) != std::string::npos) {
    at += 11;
    balances += finished.output.substr(at, finished.output.find('\n', at) - at) + " ";
  }
  EXPECT_EQ(balances, "900 1100 1000 1000 900 1100 ") << finished.output;
  EXPECT_THAT(finished.output, HasSubstr("transfer-2  pending  two-phase"));
  EXPECT_THAT(finished.output, HasSubstr("transfer-2  done    two-phase"));
  EXPECT_THAT(finished.output, HasSubstr("    in transaction transfer-1"));
  EXPECT_THAT(finished.output, HasSubstr("    in transaction transfer-2"));
  EXPECT_THAT(errors, HasSubstr("transaction transfer-2 is not decided yet"));
}

TEST(Leases, AreHeldByTheCommandsThatAreWrittenDown) {
  const auto [finished, errors] = Paste("### Leases", "strata-leases");
  ASSERT_EQ(finished.status, 0) << finished.output << errors;
  EXPECT_THAT(finished.output, HasSubstr("updated reports today, version 3"));
  EXPECT_THAT(finished.output, Not(HasSubstr("version 4")));
  EXPECT_THAT(finished.output, HasSubstr("\"state\": \"repeated\""));
  EXPECT_THAT(finished.output, HasSubstr("nightly  worker-2"));
  EXPECT_THAT(errors, HasSubstr("LEASE_HELD"));
  EXPECT_THAT(errors, HasSubstr("LEASE_LOST"));
}

int CountOf(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

TEST(Listener, GoesOnByTheCommandsThatAreWrittenDown) {
  const auto [finished, errors] = Paste("#### A listener", "strata-listener");
  ASSERT_EQ(finished.status, 0) << finished.output << errors;
  EXPECT_EQ(CountOf(finished.output, "moby        1  created"), 1) << finished.output;
  EXPECT_EQ(CountOf(finished.output, "moby        2  updated"), 1) << finished.output;
}

TEST(Queues, AreWorkedOnByTheCommandsThatAreWrittenDown) {
  const auto [finished, errors] = Paste("### Queues", "strata-queues");
  ASSERT_EQ(finished.status, 0) << finished.output << errors;
  EXPECT_THAT(errors, HasSubstr("MESSAGE_NOT_FOUND"));
  // At most that whose answer the kill may have cost; what a command moved itself is no news.
  EXPECT_LE(CountOf(errors, "RESERVATION_LOST"), 1) << errors;
  // The message that both tries were used up for, moved on; the sale and its bill.
  EXPECT_EQ(CountOf(finished.output, " to mails\n"), 1) << finished.output;
  EXPECT_THAT(finished.output, HasSubstr("\"left\": 2"));
  EXPECT_EQ(CountOf(finished.output, "{\"apples\":1}\n"), 1) << finished.output;
  EXPECT_EQ(CountOf(finished.output, "INVALID_CONTENT"), 2) << finished.output;
  EXPECT_GE(CountOf(finished.output, " to out\n"), 29) << finished.output;
}

TEST(Subscriptions, AreConsumedByTheCommandsThatAreWrittenDown) {
  const auto [finished, errors] = Paste("### Subscriptions", "strata-mail");
  ASSERT_EQ(finished.status, 0) << finished.output << errors;
  EXPECT_EQ(CountOf(finished.output, "updated sums all, version"), 3) << finished.output;
  EXPECT_THAT(finished.output, HasSubstr("\"orders\": 3"));
  EXPECT_THAT(errors, HasSubstr("no ink"));
  EXPECT_EQ(CountOf(finished.output, "VERSION_KIND_UPDATED"), 1) << finished.output;
  EXPECT_THAT(finished.output, HasSubstr("DONE UP TO"));
}

}  // namespace
}  // namespace strata::rpc_test
