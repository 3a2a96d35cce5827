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
      outcome.err.starts_with("400 lines: 400 versions written, 0 replayed, 0 unchanged, in "))
      << outcome.err;
  EXPECT_EQ(outcome.out, "");
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
      R"({"lines":400,"written":0,"replayed":400,"unchanged":0,"skipped":0,"retries":0,)"))
      << outcome.out;
}

TEST_F(CommandLine, ImportRepeatsWhatMayHelp) {
  server_.failures = {StatusOf(grpc::StatusCode::UNAVAILABLE, "OUTCOME_UNKNOWN", "", {}, 1),
                      StatusOf(grpc::StatusCode::ABORTED, "RETRIES_EXHAUSTED", "", {}, 1),
                      StatusOf(grpc::StatusCode::RESOURCE_EXHAUSTED, "OVERLOADED", "", {}, 1),
                      StatusOf(grpc::StatusCode::RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED", "", {}, 1)};
  const Outcome outcome = Run({"import", "-"}, ManyVersions());
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_NE(outcome.err.find("4 calls repeated"), std::string::npos) << outcome.err;
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
  EXPECT_EQ(Run({"import", "-", "--strategy", "full-copies"}, Line("b", 2)).status, kExitOk);
  const Outcome other = Run({"import", "-", "--strategy", "deltas"}, Line("c", 3));
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

// Other lines before, the lines of documents mixed otherwise, other blanks: the same versions.
TEST_F(CommandLine, LinesThatMovedAreNotWrittenTwice) {
  ASSERT_EQ(Run({"import", "-"}, ManyVersions()).status, kExitOk);
  std::string moved = Line("new", 1) + "\n" + Sorted(ManyVersions());
  for (size_t at = 0; (at = moved.find("\"content\":", at)) != std::string::npos; at += 11) {
    moved.insert(at + 10, "  ");
  }
  const std::string json = Run({"import", "-", "--json"}, moved).out;
  EXPECT_THAT(json, testing::HasSubstr(R"("written":1,"replayed":400,)"));
  EXPECT_EQ(Run({"export", "books"}).out, Sorted(Line("new", 1) + ManyVersions()));
}

// The server has forgotten the request ids; the versions still have them.
TEST_F(CommandLine, AnImportGoesOnHoweverLateItIsRepeated) {
  ASSERT_EQ(Run({"import", "-"}, Sorted(ManyVersions()).substr(0, 20'000)).status, kExitRefused);
  server_.forgets_requests = true;
  for (const std::string what : {"fail", "skip", "append"}) {
    const Outcome outcome = Run({"import", "-", "--on-existing", what}, ManyVersions());
    EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
    EXPECT_EQ(Run({"export", "books"}).out, Sorted(ManyVersions())) << what;
  }
}

TEST_F(CommandLine, ADocumentThatIsThereAlreadyStopsTheImport) {
  Run({"create", "books", "b", R"({"mine":1})"});
  const std::string lines = Line("b", 1) + Line("b", 2);
  const Outcome outcome = Run({"import", "-"}, lines);
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_TRUE(
      outcome.err.starts_with("stdin:1: ALREADY_EXISTS: books b is there already, at "
                              "version 1, and not from this file\n"))
      << outcome.err;
  EXPECT_THAT(outcome.err, testing::HasSubstr("--on-existing skip"));
  EXPECT_EQ(Run({"get", "books", "b"}).out, "{\n  \"mine\": 1\n}\n");
  // A deleted one is there too: it has a history.
  Run({"delete", "books", "b"});
  EXPECT_EQ(Run({"import", "-"}, lines).status, kExitRefused);
}

TEST_F(CommandLine, ADocumentThatIsThereAlreadyMayBeLeftAsItIs) {
  Run({"create", "books", "b", R"({"mine":1})"});
  const std::string lines = Line("b", 1) + Line("a", 1) + Line("b", 2) + Line("a", 2);
  const Outcome outcome = Run({"import", "-", "--on-existing", "skip"}, lines);
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.err, testing::HasSubstr(
                               "4 lines: 2 versions written, 0 replayed, 0 unchanged, 2 skipped"));
  EXPECT_EQ(Run({"get", "books", "b"}).out, "{\n  \"mine\": 1\n}\n");
}

TEST_F(CommandLine, ADocumentThatIsThereAlreadyMayBeWrittenOnTopOf) {
  Run({"create", "books", "b", R"({"mine":1})"});
  const std::string lines = Line("b", 1) + Line("b", 2) + Line("b", 2);
  EXPECT_THAT(Run({"import", "-", "--on-existing", "append"}, lines).err,
              testing::HasSubstr("3 versions written"));
  EXPECT_THAT(Run({"get", "books", "b"}).out, testing::HasSubstr("\"b\": 2"));
  // And once only, also when the server has forgotten.
  for (const bool forgets : {false, true}) {
    server_.forgets_requests = forgets;
    EXPECT_THAT(Run({"import", "-", "--on-existing", "append"}, lines).err,
                testing::HasSubstr("0 versions written, 3 replayed"));
  }
  const std::string history = Run({"history", "books", "b"}).out;
  EXPECT_EQ(std::count(history.begin(), history.end(), '\n'), 5) << history;
}

// Somebody else writes between two runs.
TEST_F(CommandLine, AnImportDoesNotGoOnOverOthersChanges) {
  ASSERT_EQ(Run({"import", "-"}, Line("b", 1)).status, kExitOk);
  Run({"update", "books", "b", R"({"mine":1})"});
  const Outcome outcome = Run({"import", "-"}, Line("b", 1) + Line("b", 2));
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_TRUE(
      outcome.err.starts_with("stdin:2: ALREADY_EXISTS: books b is at version 2, and this "
                              "line would follow version 1: "))
      << outcome.err;
}

TEST_F(CommandLine, AFullExportIsEvidenceAndIsImportedLikeAnyOther) {
  Run({"create", "books", "moby", R"({"stock":3})", "--request-id", "r1"});
  const std::string full = Run({"export", "books", "--full"}).out;
  EXPECT_EQ(full, R"({"collection":"books","id":"moby","time":"1970-01-01T00:00:01Z","evidence":)"
                  R"({"version":1,"kind":"created","commit_time":"1970-01-01T00:00:01Z",)"
                  R"("request_id":"r1","content_hash":"01ab","chain_hash":"02cd"},)"
                  R"("content":{"stock":3}})"
                  "\n");
  EXPECT_EQ(Run({"import", "-", "--collection", "copy"}, full).status, kExitOk);
  EXPECT_THAT(Run({"import", "-", "--collection", "copy"}, Run({"export", "books"}).out).err,
              testing::HasSubstr("0 versions written, 1 replayed"));
}

TEST_F(CommandLine, SummariesGoToStandardError) {
  Run({"create", "books", "moby", "{}"});
  EXPECT_THAT(Run({"export", "books"}).err, testing::StartsWith("1 documents, 1 versions in "));
  EXPECT_THAT(Run({"export", "books", "--json"}).err,
              testing::StartsWith(R"({"summary":{"documents":1,"versions":1,)"));
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
