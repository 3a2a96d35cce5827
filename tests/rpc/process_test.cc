// The program stratad, as an operator runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <thread>

#include "tests/fault/server_process.h"
#include "tests/rpc/test_server.h"
#include "tests/support/places.h"
#include "tests/support/temporary_directory.h"

namespace strata::rpc_test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

constexpr std::chrono::seconds kPatience{60};

class Process : public testing::Test {
 protected:
  std::vector<std::string> Command(const std::vector<std::string>& flags) const {
    std::vector<std::string> command = {test_support::ServerProgram()};
    command.insert(command.end(), flags.begin(), flags.end());
    return command;
  }
  fault::Finished Run(const std::vector<std::string>& flags) const {
    return fault::RunToEnd(Command(flags), errors_);
  }

  test_support::TemporaryDirectory directory_;
  const std::string errors_ = directory_.Join("errors");
  const std::string data_ = directory_.Join("data");
};

// Says where it serves, serves there, stops at SIGTERM, and has kept all at the next start.
TEST_F(Process, ServesUntilItIsAskedToStop) {
  for (int64_t version = 1; version <= 2; ++version) {
    fault::ChildProcess server(Command({"--listen=127.0.0.1:0", "--data", data_}), errors_);
    const std::string line = server.ReadLine(kPatience).value_or("");
    ASSERT_THAT(line, MatchesRegex("stratad: serving strata.v1 on 127.0.0.1:[0-9]+ "
                                   "\\(engine rocksdb, data .*\\)"));
    const std::string address = line.substr(30, line.find(" (") - 30);
    const auto stub = v1::DocumentService::NewStub(
        grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    v1::UpdateResponse response;
    const grpc::Status status = stub->Update(
        &context, Parse<v1::UpdateRequest>(R"({"collection": "c", "id": "x", "allow_missing": true,
                         "patch": {"operations": [{"path": "/n", "increment": 1}]}})"),
        &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.document().version(), version);
    server.Signal(version == 1 ? SIGTERM : SIGINT);
    EXPECT_EQ(server.Wait(), 0);
  }
}

TEST_F(Process, ASecondOneOnTheSameDataSaysSo) {
  fault::ChildProcess first(Command({"--listen=127.0.0.1:0", "--data", data_}),
                            directory_.Join("first"));
  ASSERT_TRUE(first.ReadLine(kPatience));
  const fault::Finished second = Run({"--listen=127.0.0.1:0", "--data", data_});
  EXPECT_EQ(second.status, 1);
  EXPECT_EQ(second.output, "");
  EXPECT_THAT(fault::ReadFile(errors_), HasSubstr("stratad: "));
  EXPECT_THAT(fault::ReadFile(errors_), HasSubstr("use"));
}

TEST_F(Process, ASecondOneOnTheSamePortSaysSo) {
  fault::ChildProcess first(Command({"--listen=127.0.0.1:0", "--engine=memory"}),
                            directory_.Join("first"));
  const std::string line = first.ReadLine(kPatience).value_or("");
  const std::string address = line.substr(30, line.find(" (") - 30);
  const fault::Finished second = Run({"--engine=memory", "--listen", address});
  EXPECT_EQ(second.status, 1);
  EXPECT_THAT(fault::ReadFile(errors_), HasSubstr("stratad: cannot listen on " + address));
}

TEST_F(Process, ExplainsItself) {
  const fault::Finished help = Run({"--help"});
  EXPECT_EQ(help.status, 0);
  for (const char* word : {"--data", "--listen", "127.0.0.1:50051", "Storage", "Network",
                           "--default-strategy", "STRATA_"}) {
    EXPECT_THAT(help.output, HasSubstr(word));
  }
  EXPECT_EQ(Run({"--version"}).status, 0);
  const fault::Finished wrong = Run({"--no-such-flag"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(fault::ReadFile(errors_), HasSubstr("--no-such-flag"));
}

// An operator who mistypes must not serve something else.
TEST_F(Process, RefusesAConfigurationThatItDoesNotUnderstand) {
  const std::string file = directory_.Join("stratad.conf");
  for (const auto& [text, where] : std::map<std::string, std::string>{
           {"dta = \"" + data_ + "\"\n", ":1: there is no flag dta"},
           {"# the shop's\n[server]\ndata = \"" + data_ + "\"\n", ":2: sections"},
           {"\n\ngrace = \"soon\"\n", ":3: --grace"},
           {"engine = memory\nblock-cache-mib = 8\n", ":2: --block-cache-mib: engine memory"}}) {
    std::ofstream(file) << text;
    const fault::Finished refused = Run({"--config", file, "--listen=127.0.0.1:0"});
    EXPECT_EQ(refused.status, 2) << text;
    EXPECT_EQ(refused.output, "") << text;
    EXPECT_THAT(fault::ReadFile(errors_), HasSubstr("stratad: " + file + where));
  }
}

TEST_F(Process, TakesAFlagThenTheEnvironmentThenTheFile) {
  const std::string file = directory_.Join("stratad.conf");
  std::ofstream(file) << "listen = 10.0.0.1:1\n";
  Run({"--config", file});
  EXPECT_THAT(fault::ReadFile(errors_), HasSubstr(file + ":1: --listen: 10.0.0.1:1 is reachable"));
  setenv("STRATA_LISTEN", "10.0.0.2:1", 1);
  Run({"--config", file});
  EXPECT_THAT(fault::ReadFile(errors_), HasSubstr("STRATA_LISTEN: --listen: 10.0.0.2:1"));
  Run({"--config", file, "--listen=10.0.0.3:1"});
  EXPECT_THAT(fault::ReadFile(errors_), HasSubstr("stratad: --listen: 10.0.0.3:1"));
  unsetenv("STRATA_LISTEN");
}

TEST_F(Process, MakesNoCollectionWhereTheEnvironmentForbidsIt) {
  setenv("STRATA_NO_CREATE_COLLECTIONS", "1", 1);
  fault::ChildProcess server(Command({"--listen=127.0.0.1:0", "--engine=memory"}), errors_);
  unsetenv("STRATA_NO_CREATE_COLLECTIONS");
  const std::string line = server.ReadLine(kPatience).value_or("");
  const auto stub = v1::DocumentService::NewStub(grpc::CreateChannel(
      line.substr(30, line.find(" (") - 30), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  v1::CreateResponse response;
  const grpc::Status status = stub->Create(
      &context, Parse<v1::CreateRequest>(R"({"collection": "c", "content": {"json": {}}})"),
      &response);
  EXPECT_EQ(DetailsOf(status).reason, "COLLECTION_NOT_FOUND") << status.error_message();
}

// Logs say what happened to whom it may concern, never what is in a document or its id.
TEST_F(Process, LogsAsJsonWithoutContent) {
  fault::ChildProcess server(Command({"--listen=127.0.0.1:0", "--engine=memory",
                                      "--log-level=debug", "--log-format=json"}),
                             errors_);
  const std::string line = server.ReadLine(kPatience).value_or("");
  const std::string address = line.substr(30, line.find(" (") - 30);
  const auto stub = v1::DocumentService::NewStub(
      grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  for (int i = 0; i < 2; ++i) {
    grpc::ClientContext context;
    v1::CreateResponse response;
    stub->Create(&context, Parse<v1::CreateRequest>(R"({"collection": "c", "id": "secret-id",
                     "content": {"json": {"secret-name": "secret-value"}}})"),
                 &response);
  }
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
  const std::string log = fault::ReadFile(errors_);
  EXPECT_THAT(log, HasSubstr(R"("method":"strata.v1.DocumentService/Create","code":"OK")"));
  EXPECT_THAT(log, HasSubstr(R"("reason":"DOCUMENT_EXISTS")"));
  EXPECT_THAT(log, Not(HasSubstr("secret")));
}

// The command of a shell that starts the server with its descriptors changed.
std::vector<std::string> InShell(const std::vector<std::string>& command,
                                 const std::string& redirections) {
  std::string line = "exec";
  for (const std::string& word : command) line += " '" + word + "'";
  return {"/bin/sh", "-c", line + " " + redirections};
}

constexpr std::string_view kOpening = "stratad: serving strata.v1 on ";

std::string AwaitAddress(fault::ChildProcess& server) {
  while (const std::optional<std::string> line = server.ReadLine(kPatience)) {
    if (!line->starts_with(kOpening)) continue;
    return line->substr(kOpening.size(), line->find(" (") - kOpening.size());
  }
  return "";
}

// How many of so many writes were answered, up to the first that was not.
int64_t WriteTimes(const std::string& address, int64_t times) {
  grpc::ChannelArguments own;
  own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto stub = v1::DocumentService::NewStub(
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), own));
  const auto request = Parse<v1::UpdateRequest>(R"({"collection": "c", "id": "x",
      "allow_missing": true, "patch": {"operations": [{"path": "/n", "increment": 1}]}})");
  for (int64_t answered = 0; answered < times; ++answered) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    v1::UpdateResponse response;
    if (!stub->Update(&context, request, &response).ok()) return answered;
  }
  return times;
}

TEST_F(Process, AnswersWhenNobodyReadsItsLog) {
  fault::ChildProcess server(
      InShell(Command({"--listen=127.0.0.1:0", "--engine=memory", "--log-level=debug"}), "2>&1"),
      errors_);
  const std::string address = AwaitAddress(server);
  constexpr int64_t kWrites = 7500;
  std::vector<std::future<int64_t>> writers;
  for (int i = 0; i < 4; ++i) {
    writers.push_back(std::async(std::launch::async, WriteTimes, address, kWrites));
  }
  for (std::future<int64_t>& writer : writers) EXPECT_EQ(writer.get(), kWrites);
  while (server.ReadLine(std::chrono::milliseconds(10))) {
  }
  EXPECT_EQ(WriteTimes(address, 1), 1);
  EXPECT_THAT(server.ReadLine(kPatience).value_or(""),
              ContainsRegex("lines were dropped, as their reader was too slow lines=[0-9]+"));
  WriteTimes(address, 5000);  // it is full again
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
}

void ExpectNoLogIn(const std::string& directory) {
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    ++files;
    const std::string text = fault::ReadFile(entry.path());
    EXPECT_THAT(text, Not(HasSubstr("stratad"))) << entry.path();
    EXPECT_THAT(text, Not(HasSubstr("DocumentService"))) << entry.path();
  }
  EXPECT_GT(files, 3);
}

TEST_F(Process, WithoutAnErrorOutputItKeepsItsLogOutOfTheData) {
  fault::ChildProcess server(
      InShell(Command({"--listen=127.0.0.1:0", "--data", data_, "--log-level=debug"}), "<&- 2>&-"),
      errors_);
  EXPECT_EQ(WriteTimes(AwaitAddress(server), 10), 10);
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
  ExpectNoLogIn(data_);
}

TEST_F(Process, WithoutAnOutputItKeepsWhatItSaysOutOfTheData) {
  fault::ChildProcess server(InShell(Command({"--listen=127.0.0.1:0", "--data", data_}), "<&- >&-"),
                             errors_);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (fault::ReadFile(errors_).find("serving") == std::string::npos) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::yield();
  }
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
  ExpectNoLogIn(data_);
}

TEST_F(Process, GoesOnAtSignalsThatAreNotForIt) {
  fault::ChildProcess server(Command({"--listen=127.0.0.1:0", "--engine=memory"}), errors_);
  const std::string address = AwaitAddress(server);
  for (const int signal : {SIGHUP, SIGUSR1, SIGUSR2}) {
    server.Signal(signal);
    EXPECT_EQ(WriteTimes(address, 1), 1) << signal;
  }
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
}

}  // namespace
}  // namespace strata::rpc_test
