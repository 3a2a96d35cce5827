// The real server killed during `strata import` of the sample set: nothing lost, nothing twice.
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "strata/v1/document_service.grpc.pb.h"
#include "tests/fault/server_process.h"
#include "tests/fault/version_lines.h"
#include "tests/support/places.h"
#include "tests/support/temporary_directory.h"

namespace strata::fault {
namespace {

std::string SamplePath() { return test_support::SourcePath("tests/data/compat-small.ndjson.zst"); }

// Returns when the ledger has that many entries; fails if it does not within a minute.
void AwaitVersions(const ServerProcess& server, int64_t wanted) {
  const auto documents = v1::DocumentService::NewStub(server.Connect());
  v1::AuditRequest request;
  request.set_page_size(1000);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  for (int64_t seen = 0; seen < wanted;) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "the import does not go on";
    v1::AuditResponse response;
    grpc::ClientContext context;
    const grpc::Status status = documents->Audit(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    if (response.next_page_token().empty()) {
      if (seen + response.entries_size() >= wanted) return;
    } else {
      seen += response.entries_size();
      request.set_page_token(response.next_page_token());
    }
  }
}

class ImportKillTest : public testing::TestWithParam<std::string> {
 protected:
  ImportKillTest()
      : input_(ReadVersionLines(SamplePath())),
        versions_(static_cast<int64_t>(CountVersions(input_))) {}

  std::vector<std::string> ImportCommand(const ServerProcess& server) const {
    return {StrataBinary(), "import",   SamplePath(),     "--strategy",
            GetParam(),     "--server", server.address(), "--json"};
  }

  void ExpectTheSample(const ServerProcess& server) {
    const std::string file = directory_.Join("export.ndjson");
    const Finished exported =
        RunToEnd({StrataBinary(), "export", "compat", "-o", file, "--server", server.address()},
                 settings_.log);
    ASSERT_EQ(exported.status, 0) << ReadFile(settings_.log);
    EXPECT_EQ(FirstDifference(input_, ReadVersionLines(file)), "");
  }

  test_support::TemporaryDirectory directory_;
  ServerSettings settings_{directory_.Join("data"), directory_.Join("log"), "127.0.0.1:0", {}};
  const Histories input_;
  const int64_t versions_;
};

TEST_P(ImportKillTest, ImportedAgainNothingIsLostAndNothingIsThereTwice) {
  int64_t written = 0;
  int killed_in_the_midst = 0;
  for (const int64_t kill_after : {versions_ / 10, versions_ / 2, versions_ * 9 / 10}) {
    ServerProcess server(settings_);
    std::vector<std::string> command = ImportCommand(server);
    // Few in flight, so that a fast disk does not finish before the kill.
    command.insert(command.end(), {"--retry-for", "1ms", "--in-flight", "4"});
    ChildProcess import(command, settings_.log);
    AwaitVersions(server, kill_after);
    ASSERT_FALSE(HasFatalFailure()) << ReadFile(settings_.log);
    server.Kill();
    const std::string report = import.ReadAll();
    const int status = import.Wait();
    written = NumberIn(report, "written") + NumberIn(report, "replayed");
    EXPECT_EQ(status, written < versions_ ? 1 : 0) << report << ReadFile(settings_.log);
    if (status == 1) ++killed_in_the_midst;
  }
  EXPECT_GE(killed_in_the_midst, 1);
  ServerProcess server(settings_);
  const Finished import = RunToEnd(ImportCommand(server), settings_.log);
  ASSERT_EQ(import.status, 0) << ReadFile(settings_.log);
  EXPECT_GE(NumberIn(import.output, "replayed"), written);
  EXPECT_EQ(NumberIn(import.output, "written") + NumberIn(import.output, "replayed"), versions_);
  ExpectTheSample(server);
  const Finished repeated = RunToEnd(ImportCommand(server), settings_.log);
  EXPECT_EQ(NumberIn(repeated.output, "replayed"), versions_);
  ExpectTheSample(server);
  EXPECT_EQ(server.Stop(), 0);
}

// The import waits for the server to come back and goes on by itself.
TEST_P(ImportKillTest, AnImportUnderWayOutlivesTheServer) {
  auto server = std::make_unique<ServerProcess>(settings_);
  settings_.listen = server->address();
  ChildProcess import(ImportCommand(*server), settings_.log);
  AwaitVersions(*server, versions_ / 2);
  ASSERT_FALSE(HasFatalFailure()) << ReadFile(settings_.log);
  server->Kill();
  server = std::make_unique<ServerProcess>(settings_);
  const std::string report = import.ReadAll();
  ASSERT_EQ(import.Wait(), 0) << report << ReadFile(settings_.log);
  ExpectTheSample(*server);
  EXPECT_EQ(server->Stop(), 0);
}

std::string TestName(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Strategies, ImportKillTest,
                         testing::Values("full-copies", "current-flag", "embedded-history",
                                         "shadow-collection", "deltas"),
                         TestName);

}  // namespace
}  // namespace strata::fault
