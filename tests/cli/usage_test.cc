// Claims about what a person types wrongly, and about terminals.
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "clients/cli/command_tree.h"
#include "clients/cli/draft.h"
#include "tests/cli/command_line.h"
#include "tests/fault/child_process.h"
#include "tests/support/environment_variable.h"
#include "tests/support/places.h"
#include "tests/support/temporary_directory.h"

namespace strata::cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Usage : public CommandLine {
 protected:
  // What is said of it; it has to be wrong.
  std::string Said(const std::vector<std::string>& arguments) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.status, kExitUsage) << testing::PrintToString(arguments);
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  }
};

TEST_F(Usage, AMisspeltWordSuggests) {
  EXPECT_EQ(Said({"hsitory", "books", "moby"}),
            "strata: there is no command 'hsitory'; did you mean 'history'?\n"
            "See strata --help.\n");
  EXPECT_THAT(Said({"gte", "books", "list"}), HasSubstr("did you mean 'get'?"));
  EXPECT_THAT(Said({"queue", "creat", "mails"}),
              HasSubstr("strata queue has no command 'creat'; did you mean 'create'?"));
  EXPECT_THAT(Said({"--json", "--timeout", "5s", "lits", "books"}), HasSubstr("'list'?"));
  EXPECT_THAT(Said({"frobnicate"}), HasSubstr("no command 'frobnicate'\n"));
  EXPECT_THAT(Said({"update", "books", "moby", "{}", "--reson", "x"}),
              HasSubstr("strata update has no option '--reson'; did you mean '--reason'?"));
  EXPECT_THAT(Said({}), HasSubstr("name a command"));
  EXPECT_THAT(Said({"get", "books"}), HasSubstr("ID is required\nSee strata get --help."));
}

TEST_F(Usage, NearestKnowsHowFarIsTooFar) {
  const std::vector<std::string> names = {"get", "list", "history", "purge-tombstones"};
  EXPECT_EQ(Nearest("gett", names), "get");
  EXPECT_EQ(Nearest("hist", names), "history");
  EXPECT_EQ(Nearest("purge-tombstone", names), "purge-tombstones");
  EXPECT_EQ(Nearest("xyz", names), "");
  EXPECT_EQ(Nearest("", names), "");
}

TEST_F(Usage, ANumberHasToBeOne) {
  EXPECT_THAT(Said({"get", "books", "moby", "--version", "two"}),
              StartsWith("strata: --version: 'two' is not a number\n"));
  EXPECT_THAT(Said({"get", "books", "moby", "--version", "0"}),
              StartsWith("strata: --version: 0 is too small, the least is 1\n"));
  EXPECT_THAT(Said({"get", "books", "moby", "--version", "1.5"}), HasSubstr("is not a number"));
  EXPECT_THAT(Said({"get", "books", "moby", "--version", ""}), HasSubstr("is not a number"));
  EXPECT_THAT(Said({"get", "books", "moby", "--version", "99999999999999999999"}),
              HasSubstr("is too large"));
  EXPECT_THAT(Said({"diff", "books", "moby", "one"}), StartsWith("strata: FROM: 'one' is not"));
  EXPECT_THAT(Said({"update", "books", "moby", "{}", "--max-attempts", "101"}),
              HasSubstr("101 is not from 1 to 100"));
  EXPECT_THAT(Said({"collections", "create", "books", "--keyframe-interval", "3000000000"}),
              HasSubstr("'3000000000' is not a number, or too large"));
  Run({"create", "books", "moby", "{}"});
  EXPECT_EQ(Run({"get", "books", "moby", "--version", "01"}).status, kExitOk);
}

TEST_F(Usage, AServerIsNamedAsPeopleNameIt) {
  const auto said = [](const std::string& server) {
    const Outcome outcome = RunBare({"get", "a", "b", "--timeout", "1s", "--server", server});
    return std::to_string(outcome.status) + " " + outcome.err;
  };
  EXPECT_THAT(said("http://books.example:50051"), StartsWith("2 strata: --server: "));
  EXPECT_THAT(said("http://books.example:50051"), HasSubstr("host:port"));
  EXPECT_THAT(said("https://books.example"), HasSubstr("--tls-ca"));
  EXPECT_THAT(said(""), StartsWith("2 strata: --server: "));
  EXPECT_THAT(said("books.example:port"), StartsWith("2 "));
  // Nobody serves there, or somebody does: it is a server's address in any case.
  for (const std::string server : {"127.0.0.1", "localhost", "[::1]"}) {
    EXPECT_THAT(said(server), Not(StartsWith("2 "))) << server;
  }
}

TEST_F(Usage, WhatIsNotUtf8IsRefused) {
  EXPECT_EQ(Said({"create", "books", "caf\xe9", "{}"}), "strata: not UTF-8: caf\\xe9\n");
  EXPECT_THAT(Said({"list", "books", "--where", "a=\xff"}), HasSubstr("not UTF-8"));
  EXPECT_THAT(Said({"\xc3"}), HasSubstr("not UTF-8"));
}

TEST_F(Usage, TimesMayCountFromNow) {
  Run({"create", "books", "moby", "{}"});
  const int64_t before = std::chrono::duration_cast<std::chrono::seconds>(
                             std::chrono::system_clock::now().time_since_epoch())
                             .count();
  EXPECT_EQ(Run({"get", "books", "moby", "--at", "5m ago"}).status, kExitOk);
  EXPECT_NEAR(static_cast<double>(server_.last_get.at_time().seconds()),
              static_cast<double>(before - 300), 60);
  EXPECT_EQ(Run({"list", "books", "--at", "2 days ago"}).status, kExitOk);
  EXPECT_NEAR(static_cast<double>(server_.last_list.at_time().seconds()),
              static_cast<double>(before - 2 * 86'400), 60);
  EXPECT_THAT(Said({"get", "books", "moby", "--at", "five minutes ago"}),
              HasSubstr("write '5m ago'"));
}

// What history prints is a time that --at takes.
TEST_F(Usage, TimesOfHistoryCanBeGivenBack) {
  Run({"create", "books", "moby", "{}"});
  const std::string history = Run({"history", "books", "moby"}).out;
  const size_t at = history.find("1970-");
  ASSERT_NE(at, std::string::npos) << history;
  const std::string time = history.substr(at, 26);
  EXPECT_EQ(time, "1970-01-01 00:00:01.000000");
  EXPECT_EQ(Run({"get", "books", "moby", "--at", time}).status, kExitOk);
  EXPECT_EQ(server_.last_get.at_time().seconds(), 1);
}

TEST_F(Usage, AlikeErrorsAreCounted) {
  std::string lines;
  for (int i = 0; i < 1234; ++i) lines += "no json\n";
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"push", "mails", "-", "--lines"}, {"apply", "-"}}) {
    const Outcome outcome = Run(command, lines);
    EXPECT_EQ(outcome.status, kExitRefused);
    size_t named = 0;
    for (size_t at = 0; (at = outcome.err.find("stdin:", at)) != std::string::npos; ++at) ++named;
    EXPECT_EQ(named, 10u) << command[0];
    EXPECT_THAT(outcome.err, HasSubstr("and 1,224 more of INVALID_ARGUMENT\n"));
    EXPECT_THAT(outcome.err, HasSubstr("1,234 malformed"));
    std::vector<std::string> with_json = command;
    with_json.push_back("--json");
    const std::string all = Run(with_json, lines).err;
    EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 1234);
  }
}

// What the program prints at a terminal.
std::string AtTerminal(const std::string& command) {
  const test_support::TemporaryDirectory directory;
  const fault::Finished finished = fault::RunToEnd(
      {"/bin/sh", "-c",
       "exec script -qec " + ShellWord(command) + " " + ShellWord(directory.Join("log"))},
      directory.Join("errors"));
  EXPECT_EQ(finished.status, 0) << finished.output;
  return finished.output;
}

TEST_F(Usage, ColoursAreForTerminalsThatHaveThem) {
  Run({"create", "books", "moby", "{}"});
  const std::string command = ShellWord(test_support::CommandLineProgram()) +
                              " history books moby --server " + server_.address();
  EXPECT_THAT(AtTerminal("TERM=xterm NO_COLOR= " + command), HasSubstr("\x1b["));
  for (const std::string setting : {"TERM=dumb", "TERM=", "TERM=xterm NO_COLOR=1"}) {
    const std::string printed = AtTerminal(setting + " " + command);
    EXPECT_THAT(printed, HasSubstr("created"));
    EXPECT_THAT(printed, Not(HasSubstr("\x1b"))) << setting;
  }
}

// Without a token too.
TEST_F(Usage, AProxyIsNotAskedForThisMachine) {
  Run({"create", "books", "moby", "{}"});
  const test_support::TemporaryDirectory directory;
  const fault::Finished finished = fault::RunToEnd(
      {"/bin/sh", "-c",
       "http_proxy=http://127.0.0.1:1 https_proxy=http://127.0.0.1:1 grpc_proxy=http://127.0.0.1:1 "
       "exec " +
           ShellWord(test_support::CommandLineProgram()) +
           " get books moby --timeout 10s --server " + server_.address()},
      directory.Join("errors"));
  EXPECT_EQ(finished.status, 0) << fault::ReadFile(directory.Join("errors"));
}

class StatusCommand : public CommandLine {};

TEST_F(StatusCommand, TellsWhatTheServerIs) {
  v1::GetServerInfoResponse& info = server_.server_info.info;
  info.set_version("0.5.0");
  info.set_commit("abc123");
  info.set_engine("rocksdb");
  info.set_storage_format(3);
  info.mutable_start_time()->set_seconds(1769860800);
  info.set_writable(true);
  info.mutable_limits()->set_document_bytes(1 << 20);
  info.add_services("strata.v1.DocumentService");
  info.add_services("strata.v1.ServerService");
  const Outcome outcome = Run({"status"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  for (const std::string line :
       {"version    0.5.0 (abc123)\n", "engine     rocksdb\n", "format     3\n",
        "started    2026-01-31 12:00:00, ", "writable   yes\n",
        "limits     document: 1,048,576 bytes, ",
        "services   strata.v1.DocumentService\n           strata.v1.ServerService\n"}) {
    EXPECT_THAT(outcome.out, HasSubstr(line));
  }
  EXPECT_THAT(Run({"status", "--json"}).out, HasSubstr(R"("version":"0.5.0","commit":"abc123")"));
  info.set_writable(false);
  info.set_storage_format(0);
  EXPECT_THAT(Run({"status"}).out, HasSubstr("writable   no: "));
  EXPECT_THAT(Run({"status"}).out, HasSubstr("format     -\n"));
}

}  // namespace
}  // namespace strata::cli
