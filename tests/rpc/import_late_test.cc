// `strata import` into the real server over a store that loses outcomes and goes on: every line is
// one version, in order, however late its first call takes effect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "clients/cli/commands.h"
#include "service/engines/engines.h"
#include "tests/rpc/test_server.h"
#include "tests/support/late_store.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"

namespace strata::rpc_test {
namespace {

class LateImport : public testing::Test {
 protected:
  static constexpr int kDocuments = 16;
  static constexpr int kVersions = 3;

  struct Ended {
    int status = -1;
    std::string out;
    std::string err;
  };

  LateImport() {
    auto late = std::make_unique<test_support::LateStore>(
        *engines::OpenEngine("memory", engines::OpenOptions()), seed_, 0.1);
    late_ = late.get();
    server_ = std::make_unique<TestServer>(TestOptions(), std::move(late));
  }

  Ended Run(std::vector<std::string> arguments, const std::string& in = "") {
    arguments.insert(arguments.end(),
                     {"--server", "127.0.0.1:" + std::to_string(server_->server().port())});
    std::istringstream input(in);
    std::ostringstream out;
    std::ostringstream err;
    Ended ended;
    ended.status = cli::RunStrata(
        arguments, {.in = input, .out = out, .err = err, .out_is_terminal = false, .color = false});
    ended.out = out.str();
    ended.err = err.str();
    return ended;
  }

  // Of each document some versions, deletions among them, in any order of the documents.
  std::string Lines() {
    std::vector<int> versions(kDocuments, 0);
    std::string lines;
    for (int line = 0; line < kDocuments * kVersions; ++line) {
      size_t document = random_() % kDocuments;
      while (versions[document] == kVersions) document = (document + 1) % kDocuments;
      const int version = ++versions[document];
      lines += R"({"collection":"books","id":"d)" + std::to_string(document) +
               R"(","time":"2026-01-31T12:00:00Z","actor":"ann",)";
      lines += version == 2 ? R"("deleted":true})"
                            : R"("content":{"n":)" + std::to_string(version) + "}}";
      lines += "\n";
    }
    return lines;
  }

  const uint64_t seed_ = test_support::TestSeed();
  std::mt19937_64 random_{seed_};
  test_support::LateStore* late_ = nullptr;
  std::unique_ptr<TestServer> server_;
};

// The lines of each document, in order.
std::map<std::string, std::vector<std::string>> ByDocument(const std::string& text) {
  std::map<std::string, std::vector<std::string>> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const size_t id = line.find(R"("id":")");
    lines[line.substr(id, line.find(',', id) - id)].push_back(line);
  }
  return lines;
}

TEST_F(LateImport, EveryLineIsOneVersion) {
  STRATA_TRACE_SEED(seed_);
  const std::string lines = Lines();
  const Ended imported = Run({"import", "-", "--in-flight", "16", "--json"}, lines);
  ASSERT_EQ(imported.status, 0) << imported.err;
  EXPECT_GT(late_->unknown(), 0u);
  // All of it again, of which nothing is written a second time.
  const Ended again = Run({"import", "-", "--json"}, lines);
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.out, testing::HasSubstr(R"("written":0,"replayed":48,)"));
  late_->StopLosing();
  late_->Settle();
  const Ended exported = Run({"export", "books"});
  ASSERT_EQ(exported.status, 0) << exported.err;
  EXPECT_EQ(ByDocument(exported.out), ByDocument(lines));
  const Ended verified = Run({"verify", "books"});
  EXPECT_EQ(verified.status, 0) << verified.out << verified.err;
}

}  // namespace
}  // namespace strata::rpc_test
