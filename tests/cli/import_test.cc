// Claims about import and export: order, exactly once, what stops them, and that one undoes the
// other.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "tests/cli/command_line.h"
#include "tests/cli/status_of.h"

namespace strata::cli {
namespace {

std::string Line(const std::string& id, int n) {
  return R"({"collection":"books","id":")" + id +
         R"(","time":"2026-01-31T12:00:00Z","actor":"ann","reason":"r","content":{"b":)" +
         std::to_string(n) + R"(,"a":1.0}})" + "\n";
}

// 20 documents with 20 versions each, one of which is a deletion, interleaved.
std::string ManyVersions() {
  std::string lines;
  for (int n = 1; n <= 20; ++n) {
    for (int document = 0; document < 20; ++document) {
      const std::string id = "d/" + std::to_string(document);
      lines += n == 10 ? R"({"collection":"books","id":")" + id +
                             R"(","time":"t","deleted":true})" + "\n"
                       : Line(id, n);
    }
  }
  return lines;
}

std::string Sorted(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) {
    return a.substr(0, a.find("time")) < b.substr(0, b.find("time"));
  });
  std::string sorted;
  for (const std::string& line : lines) sorted += line + "\n";
  return sorted;
}

TEST_F(CommandLine, ImportWritesTheVersionsOfADocumentInOrder) {
  const Outcome outcome = Run({"import", "-", "--in-flight", "8"}, ManyVersions());
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_TRUE(
      outcome.out.starts_with("400 lines: 400 versions written, 0 replayed, 0 unchanged, in "))
      << outcome.out;
  EXPECT_FALSE(server_.overlapped);
  EXPECT_LE(server_.max_in_flight, 8);
  EXPECT_TRUE(server_.last_update.allow_missing());
  EXPECT_TRUE(server_.last_update.keep_unchanged());
  EXPECT_EQ(Run({"export", "books"}).out, Sorted(ManyVersions()));
}

TEST_F(CommandLine, ARepeatedImportWritesNothing) {
  Run({"import", "-"}, ManyVersions());
  const Outcome outcome = Run({"import", "-", "--json"}, ManyVersions());
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with(
      R"({"lines":400,"written":0,"replayed":400,"unchanged":0,"retries":0,"seconds":)"))
      << outcome.out;
}

TEST_F(CommandLine, ImportRepeatsWhatMayHelp) {
  server_.failures = {StatusOf(grpc::StatusCode::UNAVAILABLE, "OUTCOME_UNKNOWN", "", {}, 1),
                      StatusOf(grpc::StatusCode::ABORTED, "RETRIES_EXHAUSTED", "", {}, 1),
                      StatusOf(grpc::StatusCode::RESOURCE_EXHAUSTED, "OVERLOADED", "", {}, 1),
                      StatusOf(grpc::StatusCode::RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED", "", {}, 1)};
  const Outcome outcome = Run({"import", "-"}, ManyVersions());
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_NE(outcome.out.find("4 calls repeated"), std::string::npos) << outcome.out;
  EXPECT_EQ(Run({"export", "books"}).out, Sorted(ManyVersions()));
}

TEST_F(CommandLine, ImportGivesUpAfterAWhile) {
  for (int i = 0; i < 1000; ++i) {
    server_.failures.push_back(StatusOf(grpc::StatusCode::UNAVAILABLE, "DRAINING", "draining"));
  }
  const Outcome outcome = Run({"import", "-", "--retry-for", "200ms"}, Line("a", 1));
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_TRUE(outcome.err.starts_with("stdin:1: DRAINING: draining\n")) << outcome.err;
}

TEST_F(CommandLine, AnyOtherRefusalStopsTheImportAndNamesTheLine) {
  const std::string file = testing::TempDir() + "strata_cli_import.ndjson";
  std::ofstream(file) << Line("a", 1) << R"({"collection":"books","id":"b","deleted":true})"
                      << "\n"
                      << Line("a", 2);
  const Outcome outcome = Run({"import", file});
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_TRUE(outcome.err.starts_with(file + ":2: DOCUMENT_NOT_FOUND: ")) << outcome.err;
  std::filesystem::remove(file);
}

TEST_F(CommandLine, ALineThatIsNotUnderstoodStopsTheImport) {
  const Outcome outcome = Run({"import", "-"}, Line("a", 1) + "{\"id\":\"b\"}\n");
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_TRUE(outcome.err.starts_with("stdin:2: INVALID_ARGUMENT: needs either")) << outcome.err;
  EXPECT_EQ(Run({"import", "-"}, R"({"id":"b","content":{}})").status, kExitRefused);
  EXPECT_EQ(Run({"import", "-", "--collection", "c"}, R"({"id":"b","content":{}})").status,
            kExitOk);
  EXPECT_EQ(server_.last_update.collection(), "c");
}

TEST_F(CommandLine, ImportMakesCollectionsWithTheStrategy) {
  EXPECT_EQ(Run({"import", "-", "--strategy", "full-copies"}, Line("a", 1)).status, kExitOk);
  EXPECT_EQ(server_.last_create_collection.strategy(), v1::STRATEGY_FULL_COPIES);
  EXPECT_EQ(Run({"import", "-", "--strategy", "full-copies"}, Line("a", 2)).status, kExitOk);
  const Outcome other = Run({"import", "-", "--strategy", "deltas"}, Line("a", 3));
  EXPECT_EQ(other.status, kExitRefused);
  EXPECT_NE(other.err.find("has the strategy full-copies, not deltas"), std::string::npos)
      << other.err;
}

TEST_F(CommandLine, AnExportToAFileIsCompressedAndWhole) {
  Run({"import", "-"}, ManyVersions());
  const std::string file = testing::TempDir() + "strata_cli_export.ndjson.zst";
  EXPECT_EQ(Run({"export", "books", "-o", file}).status, kExitOk);
  EXPECT_FALSE(std::filesystem::exists(file + ".part"));
  EXPECT_EQ(Run({"import", file, "--collection", "copy"}).status, kExitOk);
  std::string copy = Run({"export", "copy"}).out;
  for (size_t at = 0; (at = copy.find("\"copy\"", at)) != std::string::npos;) {
    copy.replace(at, 6, "\"books\"");
  }
  EXPECT_EQ(copy, Run({"export", "books"}).out);
  EXPECT_EQ(Run({"export", "none", "-o", file}).status, kExitRefused);
  EXPECT_FALSE(std::filesystem::exists(file + ".part"));
  std::filesystem::remove(file);
}

// The server makes the label of the precondition, and takes it from nobody.
TEST_F(CommandLine, ADeletionThatKeepsANumberIsImportedWithIt) {
  Run({"delete", "books", "moby", "--newer", "/version=7", "--label", "ticket=12"});
  const std::string exported = Run({"export", "books"}).out;
  EXPECT_THAT(exported, testing::HasSubstr(R"("newer:/version":"7")"));
  EXPECT_EQ(Run({"import", "-", "--collection", "copy"}, exported).status, kExitOk);
  const v1::DeleteRequest& sent = server_.last_delete;
  EXPECT_EQ(sent.precondition().newer().path(), "/version");
  EXPECT_EQ(sent.precondition().newer().value(), 7);
  EXPECT_EQ(sent.change().labels().count("newer:/version"), 0u);
  EXPECT_EQ(sent.change().labels().at("ticket"), "12");
}

TEST_F(CommandLine, ExportKeepsLabelsAndTimes) {
  Run({"create", "books", "moby", "{}", "--label", "ticket=12", "--on-behalf-of", "bob"});
  EXPECT_EQ(Run({"export", "books"}).out,
            R"({"collection":"books","id":"moby","time":"1970-01-01T00:00:01Z",)"
            R"("on_behalf_of":"bob","labels":{"ticket":"12"},"content":{}})"
            "\n");
}

}  // namespace
}  // namespace strata::cli
