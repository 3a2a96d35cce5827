// Claims about each command, from its arguments to the exit status.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "clients/cli/arguments.h"
#include "clients/cpp/extended_json.h"
#include "google/protobuf/util/json_util.h"
#include "tests/cli/command_line.h"
#include "tests/cli/status_of.h"

namespace strata::cli {
namespace {

using testing::HasSubstr;
using testing::Test;

std::string TextProto(const google::protobuf::Message& message) {
  return message.ShortDebugString();
}

TEST_F(CommandLine, CreateGetUpdateDeleteRestore) {
  Outcome outcome = Run({"create", "books", "moby", R"({"title":"Moby Dick","stock":3})"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_EQ(outcome.out, "created books moby, version 1\n");
  EXPECT_EQ(Run({"update", "books", "moby", R"({"stock":2,"price":1.0})", "--if-version", "1"}).out,
            "updated books moby, version 2\n");
  EXPECT_EQ(Run({"get", "books", "moby"}).out, "{\n  \"stock\": 2,\n  \"price\": 1.0\n}\n");
  EXPECT_EQ(Run({"get", "books", "moby", "--version", "1"}).out,
            "{\n  \"title\": \"Moby Dick\",\n  \"stock\": 3\n}\n");
  EXPECT_EQ(Run({"delete", "books", "moby"}).out, "deleted books moby, version 3\n");
  EXPECT_EQ(Run({"restore", "books", "moby", "--version", "1", "--show"}).out,
            "restored books moby, version 4\n{\n  \"title\": \"Moby Dick\",\n  \"stock\": 3\n}\n");
}

TEST_F(CommandLine, ContentIsSentAsExactBson) {
  const std::string json = R"({"b":1,"a":2.0,"c":{"$numberLong":"5"}})";
  EXPECT_EQ(Run({"create", "books", "moby", json}).status, kExitOk);
  EXPECT_EQ(server_.last_create.content().bson(), client::BsonFromJson(json).value());
  EXPECT_EQ(Run({"create", "books", "emma", "-"}, json + "\n").status, kExitOk);
  EXPECT_EQ(server_.last_create.content().bson(), client::BsonFromJson(json).value());
  const std::string file = testing::TempDir() + "strata_cli_content.json";
  std::ofstream(file) << json;
  EXPECT_EQ(Run({"create", "books", "walden", "@" + file}).status, kExitOk);
  EXPECT_EQ(server_.last_create.content().bson(), client::BsonFromJson(json).value());
  std::filesystem::remove(file);
}

TEST_F(CommandLine, CreateWithoutAnIdPrintsTheOneMade) {
  EXPECT_EQ(Run({"create", "books", "{}"}).out, "created books made-here, version 1\n");
}

// strata create books "$ID" '{}', where nobody set ID.
TEST_F(CommandLine, AnIdIsMadeOnlyWhereNoneIsGiven) {
  const Outcome outcome = Run({"create", "books", "", "{}"});
  EXPECT_EQ(outcome.status, kExitUsage);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("ID is empty"));
  EXPECT_EQ(server_.last_create.collection(), "");
  EXPECT_EQ(Run({"create", "books", "moby", ""}).status, kExitUsage);
  EXPECT_EQ(Run({"create", "books", ""}).status, kExitUsage);
  EXPECT_EQ(server_.last_create.collection(), "");
}

TEST_F(CommandLine, WhatIsPrintedCanBeFedBack) {
  Run({"create", "books", "moby",
       R"({"b":9007199254740993,"a":0.1,"d":{"$date":"2026-01-31T12:00:00Z"}})"});
  const std::string sent = server_.last_create.content().bson();
  Run({"update", "books", "moby", "-"}, Run({"get", "books", "moby"}).out);
  EXPECT_EQ(server_.last_update.replace().bson(), sent);
}

TEST_F(CommandLine, WhoAndWhyGoWithEachWrite) {
  const std::vector<std::string> who = {"--actor",  "ann", "--on-behalf-of", "bob",
                                        "--reason", "",    "--label",        "a=1",
                                        "--label",  "b=2", "--request-id",   "r1"};
  const auto with_who = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), who.begin(), who.end());
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  };
  with_who({"create", "books", "moby", "{}"});
  EXPECT_EQ(server_.last_create.request_id(), "r1");
  EXPECT_EQ(server_.last_create.change().actor(), "ann");
  EXPECT_EQ(server_.last_create.change().on_behalf_of(), "bob");
  EXPECT_EQ(server_.last_create.change().labels().at("b"), "2");
  Run({"create", "books", "emma", "{}"});
  with_who({"update", "books", "emma", "{}", "--validate-only"});
  EXPECT_EQ(server_.last_update.change().labels().at("a"), "1");
  EXPECT_TRUE(server_.last_update.validate_only());
  with_who({"restore", "books", "emma", "--version", "1", "--validate-only"});
  EXPECT_EQ(server_.last_restore.change().actor(), "ann");
  with_who({"delete", "books", "emma"});
  EXPECT_EQ(server_.last_delete.change().actor(), "ann");
}

TEST_F(CommandLine, ChangesOfMembersKeepTheirOrder) {
  Run({"create", "books", "moby", "{}"});
  const Outcome outcome = Run({"update",
                               "books",
                               "moby",
                               "--set",
                               "/title=Moby Dick",
                               "--increment",
                               "/stock=-1",
                               "--set",
                               "/n=2",
                               "--unset",
                               "/old",
                               "--append",
                               "/tags=[1]",
                               "--append-missing",
                               "/tags=whale",
                               "--remove-all",
                               "/tags=null",
                               "--merge",
                               R"({"z":1,"a":null})",
                               "--max-attempts",
                               "5"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  v1::Patch expected;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(
                  R"({"operations":[{"path":"/title","set":"Moby Dick"},
                      {"path":"/stock","increment":-1},{"path":"/n","set":2},
                      {"path":"/old","unset":true},{"path":"/tags","append":[[1]]},
                      {"path":"/tags","appendMissing":["whale"]},
                      {"path":"/tags","removeAll":[null]}]})",
                  &expected)
                  .ok());
  expected.mutable_merge()->set_bson(client::BsonFromJson(R"({"z":1,"a":null})").value());
  EXPECT_EQ(TextProto(server_.last_update.patch()), TextProto(expected));
  EXPECT_EQ(server_.last_update.max_attempts(), 5);
}

TEST_F(CommandLine, PreconditionsAreSent) {
  Run({"create", "books", "moby", "{}"});
  Run({"update", "books", "moby", "{}", "--if-exists"});
  EXPECT_TRUE(server_.last_update.precondition().exists());
  Run({"update", "books", "new", "{}", "--if-missing", "--allow-missing"});
  EXPECT_TRUE(server_.last_update.precondition().has_exists());
  EXPECT_FALSE(server_.last_update.precondition().exists());
  Run({"update", "books", "newer", "{}", "--if-version", "0", "--allow-missing"});
  EXPECT_TRUE(server_.last_update.precondition().has_version());
  Run({"update", "books", "newer", "{}"});
  EXPECT_FALSE(server_.last_update.has_precondition());
  Run({"update", "books", "moby", "--increment", "/stock=-1", "--if", "stock>0"});
  EXPECT_EQ(TextProto(server_.last_update.precondition().filter()),
            TextProto(FilterProto("stock>0").value()));
  Run({"delete", "books", "moby", "--if", "stock=0", "--if", "!reserved"});
  const auto& all = server_.last_delete.precondition().filter().fields().at("$and").list_value();
  EXPECT_EQ(TextProto(all.values(1).struct_value()), TextProto(FilterProto("!reserved").value()));
}

TEST_F(CommandLine, ANumberThatHasToGrowIsAskedForAndToldOfIfItDoesNot) {
  EXPECT_EQ(
      Run({"update", "books", "moby", "{}", "--allow-missing", "--newer", "/at/version=7"}).out,
      "updated books moby, version 1\n");
  EXPECT_EQ(server_.last_update.precondition().newer().path(), "/at/version");
  EXPECT_EQ(server_.last_update.precondition().newer().value(), 7);
  EXPECT_EQ(Run({"delete", "books", "moby", "--newer", "/n=-9223372036854775808"}).out,
            "deleted books moby, version 2\n");
  EXPECT_EQ(server_.last_delete.precondition().newer().value(),
            std::numeric_limits<int64_t>::min());
  server_.finds_stale = true;
  EXPECT_EQ(Run({"update", "books", "moby", "{}", "--newer", "/n=1"}).out,
            "stale books moby, version 2\n");
  const Outcome stale = Run({"delete", "books", "moby", "--newer", "/n=1", "--validate-only"});
  EXPECT_EQ(stale.status, kExitOk);
  EXPECT_EQ(stale.out, "stale books moby, version 2\n");
}

TEST_F(CommandLine, ARefusalSaysWhyAndWhatToDo) {
  Run({"create", "books", "moby", "{}"});
  const Outcome outcome = Run({"update", "books", "moby", "--set", "/a=1", "--if-version", "3"});
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(outcome.err.starts_with(
      "VERSION_CONFLICT: version is 1, not 3 (actual=1 expected=3)\nAnother writer was faster"))
      << outcome.err;
  EXPECT_EQ(Run({"update", "books", "moby", "{}", "--if-version", "3", "--json"}).err,
            R"({"error":{"code":"ABORTED","reason":"VERSION_CONFLICT","message":"version is 1, )"
            R"(not 3","metadata":{"actual":"1","expected":"3"}}})"
            "\n");
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"get", "books", "none"},
        {"get", "books", "moby", "--version", "9"},
        {"create", "books", "moby", "{}"},
        {"update", "books", "none", "{}"},
        {"delete", "books", "none"},
        {"restore", "books", "moby", "--version", "9"},
        {"history", "books", "none"},
        {"list", "none"},
        {"export", "none"},
        {"collections", "show", "none"},
        {"collections", "delete", "none"}}) {
    EXPECT_EQ(Run(arguments).status, kExitRefused) << arguments[0];
  }
}

TEST_F(CommandLine, AnUnreachableServerIsARefusal) {
  const Outcome outcome =
      RunBare({"get", "books", "moby", "--server", "127.0.0.1:1", "--timeout", "5s"});
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_TRUE(outcome.err.starts_with("UNAVAILABLE: ")) << outcome.err;
  EXPECT_NE(outcome.err.find("--server HOST:PORT"), std::string::npos);
}

TEST_F(CommandLine, TheServerMayStandInTheEnvironment) {
  setenv("STRATA_SERVER", server_.address().c_str(), 1);
  EXPECT_EQ(RunBare({"create", "books", "moby", "{}"}).status, kExitOk);
  unsetenv("STRATA_SERVER");
}

TEST_F(CommandLine, WrongUsageIsStatusTwo) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{},
        {"frobnicate"},
        {"get", "books"},
        {"get", "books", "moby", "--version", "0"},
        {"get", "books", "moby", "--version", "1", "--at", "2026-01-31"},
        {"get", "books", "moby", "--at", "yesterday"},
        {"get", "books", "moby", "emma", "--version", "1"},
        {"create", "books", "moby"},
        {"create", "books", "moby", "[1]"},
        {"create", "books", "moby", "@/nonexistent"},
        {"create", "books", "moby", "{}", "--label", "x"},
        {"update", "books", "moby"},
        {"update", "books", "moby", "{}", "--set", "/a=1"},
        {"update", "books", "moby", "--set", "a=1"},
        {"update", "books", "moby", "--increment", "/a=x"},
        {"update", "books", "moby", "--merge", "1"},
        {"update", "books", "moby", "{}", "--if-version", "1", "--if-exists"},
        {"update", "books", "moby", "{}", "--if-missing", "--if-exists"},
        {"update", "books", "moby", "{}", "--max-attempts", "101"},
        {"update", "books", "moby", "{}", "--newer", "/version"},
        {"update", "books", "moby", "{}", "--newer", "version=1"},
        {"update", "books", "moby", "{}", "--newer", "/version=x"},
        {"update", "books", "moby", "{}", "--newer", "/version=1.0"},
        {"update", "books", "moby", "{}", "--newer", "/version=9223372036854775808"},
        {"update", "books", "moby", "{}", "--newer", "/version=1", "--if-version", "1"},
        {"update", "books", "moby", "{}", "--newer", "/version=1", "--if-missing"},
        {"delete", "books", "moby", "--newer", "/version=1", "--if", "a"},
        {"restore", "books", "moby", "--version", "1", "--newer", "/version=1"},
        {"restore", "books", "moby"},
        {"diff", "books", "moby"},
        {"diff", "books", "moby", "x"},
        {"audit", "--kind", "erased"},
        {"list", "books", "--limit", "0"},
        {"list", "books", "--where", ">1"},
        {"list", "books", "--filter", "{"},
        {"list", "books", "--at", "soon"},
        {"history", "books", "moby", "--where", "!a=1"},
        {"update", "books", "moby", "{}", "--if", "a!1"},
        {"update", "books", "moby", "{}", "--if", "a", "--if-exists"},
        {"collections", "create", "books", "--strategy", "fast"},
        {"collections", "create", "books", "--keyframe-interval", "0"},
        {"collections", "delete", "books", "--incarnation", "0"},
        {"collections", "delete", "books", "--incarnation", "-1"},
        {"collections", "create"},
        {"import", "/nonexistent"},
        {"import", "/"},
        {"import", "-", "--keyframe-interval", "3"},
        {"export"},
        {"export", "books", "-o", "/nonexistent/file"},
        {"get", "books", "moby", "--timeout", "soon"}}) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.status, kExitUsage) << testing::PrintToString(arguments);
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err, "");
  }
}

TEST_F(CommandLine, HelpGoesToStandardOutput) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--help"},
                                                    {"update", "--help"},
                                                    {"collections", "create", "-h"}}) {
    const Outcome outcome = RunBare(arguments);
    EXPECT_EQ(outcome.status, kExitOk);
    EXPECT_NE(outcome.out.find("Usage:"), std::string::npos);
    EXPECT_EQ(outcome.err, "");
  }
}

TEST_F(CommandLine, TimesBecomeTimestamps) {
  Run({"create", "books", "moby", "{}"});
  EXPECT_EQ(Run({"get", "books", "moby", "--at", "2026-01-31T12:00"}).status, kExitOk);
  EXPECT_EQ(server_.last_get.at_time().seconds(), 1769860800);
  EXPECT_EQ(Run({"get", "books", "moby", "--at-position", "17"}).status, kExitOk);
  EXPECT_EQ(server_.last_get.at_position(), 17);
  Run({"list", "books", "--at-position", "17"});
  EXPECT_EQ(server_.last_list.at_position(), 17);
  for (const std::vector<std::string>& both :
       {std::vector<std::string>{"get", "books", "moby", "--version", "1"},
        {"get", "books", "moby", "emma"},
        {"get", "books", "moby", "--at", "2026-01-31"},
        {"list", "books", "--at", "2026-01-31"}}) {
    std::vector<std::string> arguments = both;
    arguments.insert(arguments.end(), {"--at-position", "17"});
    EXPECT_EQ(Run(arguments).status, kExitUsage) << arguments.back();
  }
  Run({"history", "books", "moby", "--from", "2026-01-31", "--to-version", "7"});
  EXPECT_EQ(server_.last_history.from_time().seconds(), 1769817600);
  EXPECT_EQ(server_.last_history.to_version(), 7);
  EXPECT_FALSE(server_.last_history.has_filter());
  Run({"history", "books", "moby", "--where", "stock=0"});
  EXPECT_EQ(TextProto(server_.last_history.filter()), TextProto(FilterProto("stock=0").value()));
}

TEST_F(CommandLine, ManyDocumentsAtOnce) {
  for (const std::string id : {"a", "b", "c", "d"}) Run({"create", "books", id, "{}"});
  const Outcome outcome = Run({"get", "books", "a", "x", "b", "c", "d"});
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_EQ(outcome.err, "missing: books x\n");
  EXPECT_EQ(outcome.out,
            "# books a, version 1 of 1970-01-01 00:00:01.000000\n{}\n"
            "# books b, version 1 of 1970-01-01 00:00:02.000000\n{}\n"
            "# books c, version 1 of 1970-01-01 00:00:03.000000\n{}\n"
            "# books d, version 1 of 1970-01-01 00:00:04.000000\n{}\n");
  EXPECT_EQ(Run({"get", "books", "a", "d", "--json"}).out,
            R"({"collection":"books","id":"a","version":"1","content":{"json":{}},)"
            R"("update_time":"1970-01-01T00:00:01Z","pending_transaction_id":""})"
            "\n"
            R"({"collection":"books","id":"d","version":"1","content":{"json":{}},)"
            R"("update_time":"1970-01-01T00:00:04Z","pending_transaction_id":""})"
            "\n");
}

TEST_F(CommandLine, APersonSeesWhichVersionItIs) {
  Run({"create", "books", "moby", "{}"});
  EXPECT_EQ(Run({"get", "books", "moby"}, "", true).out,
            "# books moby, version 1 of 1970-01-01 00:00:01.000000\n{}\n");
}

TEST_F(CommandLine, HistoryFollowsThePages) {
  Run({"create", "books", "moby", "{}", "--reason", "catalogue", "--actor", "ann"});
  for (int i = 2; i <= 10; ++i) {
    Run({"update", "books", "moby", "{}", "--actor", "ann", "--on-behalf-of", "bob"});
  }
  const std::string out = Run({"history", "books", "moby"}).out;
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 11);
  EXPECT_TRUE(
      out.starts_with("VERSION  KIND     TIME                        ACTOR        REASON\n"
                      "     10  updated  1970-01-01 00:00:10.000000  ann for bob\n"))
      << out;
  EXPECT_TRUE(out.ends_with("1  created  1970-01-01 00:00:01.000000  ann          catalogue\n"))
      << out;
  EXPECT_EQ(
      Run({"history", "books", "moby", "--oldest-first", "--limit", "1", "--changes", "--content"})
          .out,
      "VERSION  KIND     TIME                        ACTOR  REASON\n"
      "      1  created  1970-01-01 00:00:01.000000  ann    catalogue\n"
      "    + /stock 1\n"
      "    {}\n");
  const std::string lines = Run({"history", "books", "moby", "--limit", "5", "--json"}).out;
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 5);
}

TEST_F(CommandLine, DiffPrintsALineAChange) {
  EXPECT_EQ(Run({"diff", "books", "moby", "1", "2"}).out, "~ /stock 3 -> 2\n");
  EXPECT_EQ(Run({"diff", "books", "moby", "1"}).out, "~ /stock 3 -> 2\n");
  const Outcome same = Run({"diff", "books", "moby", "1", "1"});
  EXPECT_EQ(same.out, "");
  EXPECT_EQ(same.err, "versions 1 and 1 are the same\n");
  EXPECT_EQ(same.status, kExitOk);
  EXPECT_EQ(Run({"diff", "books", "moby", "1", "2", "--json"}).out,
            R"({"from_version":"1","to_version":"2","changes":[{"path":"/stock",)"
            R"("type":"CHANGE_TYPE_CHANGED","before":3,"after":2,"values_omitted":false}],)"
            R"("next_page_token":""})"
            "\n");
}

TEST_F(CommandLine, DiffFollowsThePages) {
  server_.diff_changes = 10;
  const std::string lines = Run({"diff", "books", "moby", "1", "2"}).out;
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 10);
  const std::string json = Run({"diff", "books", "moby", "1", "2", "--json"}).out;
  EXPECT_EQ(std::count(json.begin(), json.end(), '\n'), 1);
  EXPECT_THAT(json, testing::HasSubstr(R"("next_page_token":""})"));
  size_t changes = 0;
  for (size_t at = 0; (at = json.find("/stock", at)) != std::string::npos; ++at) ++changes;
  EXPECT_EQ(changes, 10u);
}

TEST_F(CommandLine, ChangesThatAreCutSayWhereTheRestIs) {
  server_.truncates_changes = true;
  Run({"create", "books", "moby", "{}"});
  for (const std::string command : {"history", "audit"}) {
    const std::string out = Run({command, "books", "moby", "--changes"}).out;
    EXPECT_THAT(out, testing::EndsWith("    (and more: strata diff shows all of them)\n"));
  }
}

TEST_F(CommandLine, AuditSendsItsFiltersAndFollowsThePages) {
  for (const std::string id : {"a", "b", "c", "d"}) Run({"create", "books", id, "{}"});
  Run({"delete", "books", "a", "--reason", "lost", "--actor", "ann"});
  const std::string out = Run({"audit"}).out;
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 6);
  EXPECT_TRUE(out.ends_with(
      "     5  1970-01-01 00:00:05.000000  books       a         2  deleted  ann    lost\n"))
      << out;
  server_.page_max = 100;
  Run({"audit", "books", "a", "--actor", "ann", "--kind", "deleted", "--kind", "created", "--from",
       "2026-01-31", "--before", "2026-02-01", "--request-id", "r", "--transaction", "t",
       "--changes"});
  EXPECT_EQ(TextProto(server_.last_audit),
            "collection: \"books\" id: \"a\" actor: \"ann\" kinds: VERSION_KIND_DELETED kinds: "
            "VERSION_KIND_CREATED start_time { seconds: 1769817600 } end_time { seconds: "
            "1769904000 } request_id: \"r\" page_size: 200 include_changes: true transaction_id: "
            "\"t\"");
}

TEST_F(CommandLine, AuditBeginsWithTheNewestIfAskedTo) {
  for (const std::string id : {"a", "b", "c", "d", "e"}) Run({"create", "books", id, "{}"});
  const std::string out = Run({"audit", "--newest-first", "--limit", "4"}).out;
  EXPECT_TRUE(server_.last_audit.newest_first());
  EXPECT_EQ(out.find("books       a "), std::string::npos) << out;
  EXPECT_LT(out.find("books       e "), out.find("books       d ")) << out;
  EXPECT_LT(out.find("books       c "), out.find("books       b ")) << out;
}

TEST_F(CommandLine, AVersionOfATransactionNamesIt) {
  Run({"create", "books", "moby", "{}"});
  for (const std::string command : {"history", "audit"}) {
    EXPECT_THAT(Run({command, "books", "moby"}).out,
                testing::Not(testing::HasSubstr("transaction")));
  }
  server_.transaction_id = "transfer-7";
  for (const std::string command : {"history", "audit"}) {
    EXPECT_THAT(Run({command, "books", "moby"}).out,
                testing::EndsWith("\n    in transaction transfer-7\n"));
  }
}

TEST_F(CommandLine, ListPrintsWhatWasAskedFor) {
  for (const std::string id : {"a", "b", "ba", "c"}) Run({"create", "books", id, R"({"n":1})"});
  Run({"delete", "books", "c"});
  EXPECT_EQ(Run({"list", "books"}).out,
            "ID  VERSION  TIME\n"
            "a         1  1970-01-01 00:00:01.000000\n"
            "b         1  1970-01-01 00:00:02.000000\n"
            "ba        1  1970-01-01 00:00:03.000000\n");
  EXPECT_EQ(Run({"list", "books", "--prefix", "b", "--limit", "1", "--field", "/n"}).out,
            "ID  VERSION  TIME                        CONTENT\n"
            "b         1  1970-01-01 00:00:02.000000  {\"n\":1}\n");
  EXPECT_EQ(TextProto(server_.last_list),
            "collection: \"books\" id_prefix: \"b\" fields: \"/n\" page_size: 1 encoding: "
            "ENCODING_BSON");
  EXPECT_TRUE(Run({"list", "books", "--deleted"})
                  .out.ends_with("c         2  1970-01-01 00:00:05.000000  deleted\n"));
  Run({"list", "books", "--where", "n>0", "--filter", R"({"n": {"$lt": 9}})", "--at",
       "2026-01-31T12:00"});
  EXPECT_EQ(server_.last_list.at_time().seconds(), 1769860800);
  const auto& all = server_.last_list.filter().fields().at("$and").list_value();
  ASSERT_EQ(all.values_size(), 2);
  EXPECT_EQ(TextProto(all.values(0).struct_value()), TextProto(FilterProto("n>0").value()));
  EXPECT_EQ(TextProto(all.values(1).struct_value()),
            TextProto(FilterProto(R"({"n": {"$lt": 9}})").value()));
  const std::string lines = Run({"list", "books", "--json"}).out;
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 3);
}

TEST_F(CommandLine, CollectionsAreMadeShownAndDeleted) {
  EXPECT_EQ(
      Run({"collections", "create", "books", "--strategy", "deltas", "--keyframe-interval", "32"})
          .status,
      kExitOk);
  EXPECT_EQ(server_.last_create_collection.options().keyframe_interval(), 32);
  EXPECT_EQ(Run({"collections", "create", "films", "--keyframe-interval", "8"}).status, kExitOk);
  EXPECT_EQ(server_.last_create_collection.strategy(), v1::STRATEGY_UNSPECIFIED);
  EXPECT_EQ(server_.last_create_collection.options().keyframe_interval(), 8);
  for (const std::string name : {"a", "b", "c"}) Run({"collections", "create", name});
  const std::string out = Run({"collections"}).out;
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 6);
  EXPECT_NE(out.find("books  deltas    keyframe-interval=32  -"), std::string::npos) << out;
  const Outcome shown = Run({"collections", "show", "books"});
  EXPECT_NE(shown.out.find("1,234 documents"), std::string::npos);
  EXPECT_NE(shown.out.find("heads           0  1,000,000"), std::string::npos) << shown.out;
  Run({"create", "books", "moby", "{}"});
  EXPECT_EQ(Run({"collections", "delete", "books"}).status, kExitRefused);
  EXPECT_EQ(Run({"collections", "delete", "books", "--force"}).out, "deleted collection books\n");
}

TEST_F(CommandLine, DeletingACollectionTwiceSparesItsSuccessor) {
  Run({"collections", "create", "books"});
  EXPECT_THAT(Run({"collections"}).out, HasSubstr("INCARNATION"));
  const std::string json = Run({"collections", "show", "books", "--json"}).out;
  EXPECT_THAT(json, HasSubstr(R"("incarnation")")) << json;
  const std::vector<std::string> command = {"collections", "delete",        "books", "--request-id",
                                            "once",        "--incarnation", "1",     "--force"};
  EXPECT_EQ(Run(command).out, "deleted collection books\n");
  EXPECT_EQ(TextProto(server_.last_delete_collection),
            "name: \"books\" force: true request_id: \"once\" incarnation: 1");
  Run({"collections", "create", "books"});
  EXPECT_EQ(Run(command).out,
            "deleted collection books (by an earlier call with this request id)\n");
  EXPECT_THAT(Run({"collections", "show", "books", "--json"}).out, HasSubstr("2"));
  const Outcome other = Run({"collections", "delete", "books", "--incarnation", "1"});
  EXPECT_EQ(other.status, kExitRefused);
  EXPECT_THAT(other.err, HasSubstr("INCARNATION_MISMATCH"));
  EXPECT_THAT(other.err, HasSubstr("created again"));
}

TEST_F(CommandLine, IdsMayLookLikeAnything) {
  for (const std::string id : {"a/b.c", "[x]", "{}", "é", "with blank", "%%"}) {
    EXPECT_EQ(Run({"create", "books", id, R"({"n":1})"}).status, kExitOk) << id;
    EXPECT_EQ(server_.last_create.id(), id);
    EXPECT_EQ(Run({"get", "books", id}).status, kExitOk) << id;
    EXPECT_EQ(server_.last_get.id(), id);
  }
}

}  // namespace
}  // namespace strata::cli
