// Claims about edit: what the editor gets, what is written, and that no text is lost.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "clients/cli/draft.h"
#include "clients/cpp/extended_json.h"
#include "tests/cli/command_line.h"
#include "tests/cli/status_of.h"
#include "tests/fault/child_process.h"
#include "tests/support/environment_variable.h"
#include "tests/support/places.h"
#include "tests/support/temporary_directory.h"

namespace strata::cli {
namespace {

using test_support::EnvironmentVariable;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kMoby[] = R"({"title":"Moby Dick","stock":3,"n":{"$numberLong":"5"},"d":1.0})";

class EditCommand : public CommandLine {
 protected:
  EditCommand() { std::filesystem::create_directory(drafts_); }

  // As in a shell: $1 is the file.
  Outcome Edit(const std::string& script, std::vector<std::string> more = {},
               const std::string& id = "moby") {
    std::ofstream(editor_) << script;
    const EnvironmentVariable editor("EDITOR", "sh " + ShellWord(editor_));
    const EnvironmentVariable terminal("TERM", "dumb");
    const EnvironmentVariable folder("TMPDIR", drafts_);
    std::vector<std::string> arguments = {"edit", "books", id};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(arguments);
  }

  std::vector<std::string> Drafts() const {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(drafts_)) {
      paths.push_back(entry.path().string());
    }
    return paths;
  }

  const test_support::TemporaryDirectory directory_;
  const std::string drafts_ = directory_.Join("dra fts");
  const std::string editor_ = directory_.Join("my editor's");
};

TEST_F(EditCommand, WritesWhatTheEditorChanged) {
  Run({"create", "books", "moby", kMoby});
  const Outcome outcome = Edit("sed -i 's/\"stock\": 3/\"stock\": 4/' \"$1\"",
                               {"--reason", "counted", "--actor", "ann"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_EQ(outcome.out, "updated books moby, version 2\n");
  const v1::UpdateRequest& sent = server_.last_update;
  // Nothing else has changed its type.
  EXPECT_EQ(
      sent.replace().bson(),
      client::BsonFromJson(R"({"title":"Moby Dick","stock":4,"n":{"$numberLong":"5"},"d":1.0})")
          .value());
  EXPECT_EQ(sent.precondition().version(), 1);
  EXPECT_FALSE(sent.allow_missing());
  EXPECT_FALSE(sent.request_id().empty());
  EXPECT_EQ(sent.change().reason(), "counted");
  EXPECT_EQ(sent.change().actor(), "ann");
  EXPECT_THAT(Drafts(), IsEmpty());
}

TEST_F(EditCommand, NobodyElseCanReadTheDraft) {
  Run({"create", "books", "moby", kMoby});
  const std::string modes = directory_.Join("modes");
  Edit("stat -c %a \"$1\" > " + ShellWord(modes));
  EXPECT_EQ(fault::ReadFile(modes), "600\n");
}

TEST_F(EditCommand, WhatIsUnchangedIsNotWritten) {
  Run({"create", "books", "moby", kMoby});
  for (const std::string script : {"true", "touch \"$1\"", "sed -i 's/^ *//' \"$1\""}) {
    const Outcome outcome = Edit(script);
    EXPECT_EQ(outcome.status, kExitOk) << script;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, "unchanged books moby, version 1\n");
  }
  EXPECT_FALSE(server_.last_update.has_replace());
  EXPECT_THAT(Drafts(), IsEmpty());
}

TEST_F(EditCommand, ATextThatIsNoJsonIsKept) {
  Run({"create", "books", "moby", kMoby});
  const Outcome outcome = Edit("echo '{\"stock\": }' > \"$1\"", {"--reason", "it's"});
  EXPECT_EQ(outcome.status, kExitRefused);
  ASSERT_THAT(Drafts(), SizeIs(1));
  const std::string draft = Drafts()[0];
  EXPECT_EQ(fault::ReadFile(draft), "{\"stock\": }\n");
  EXPECT_THAT(outcome.err, HasSubstr(draft + " is not a JSON object: "));
  EXPECT_THAT(outcome.err, HasSubstr("\n  strata update books moby " + ShellWord("@" + draft) +
                                     " --if-version 1 --reason 'it'\\''s' --server "));
  EXPECT_FALSE(server_.last_update.has_replace());
  std::filesystem::remove(draft);
}

TEST_F(EditCommand, AConflictKeepsTheTextAndSaysHowToGoOn) {
  Run({"create", "books", "moby", kMoby});
  const Outcome outcome = Edit(ShellWord(test_support::CommandLineProgram()) +
                               " update books moby '{\"stock\": 9}' --server " + server_.address() +
                               " > /dev/null && echo '{\"stock\": 2}' > \"$1\"");
  EXPECT_EQ(outcome.status, kExitRefused);
  ASSERT_THAT(Drafts(), SizeIs(1));
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("VERSION_CONFLICT: "), HasSubstr(Drafts()[0]),
                                 HasSubstr("\n  strata diff books moby 1 2 --server ")));
  // The command that is named does it.
  const std::string marker = "\n  strata update ";
  const size_t at = outcome.err.find(marker);
  ASSERT_NE(at, std::string::npos) << outcome.err;
  const std::string command = outcome.err.substr(at + marker.size());
  const fault::Finished forced = fault::RunToEnd(
      {"/bin/sh", "-c", ShellWord(test_support::CommandLineProgram()) + " update " + command},
      directory_.Join("errors"));
  EXPECT_EQ(forced.status, 0) << fault::ReadFile(directory_.Join("errors"));
  EXPECT_EQ(forced.output, "updated books moby, version 3\n");
  EXPECT_EQ(server_.last_update.replace().bson(), client::BsonFromJson("{\"stock\":2}").value());
  EXPECT_EQ(server_.last_update.precondition().version(), 2);
}

TEST_F(EditCommand, AnUnknownOutcomeIsRepeatedUnderItsRequestId) {
  Run({"create", "books", "moby", kMoby});
  server_.failures = {StatusOf(grpc::StatusCode::UNAVAILABLE, "OUTCOME_UNKNOWN", "", {}, 1)};
  EXPECT_EQ(Edit("echo '{}' > \"$1\"").out, "updated books moby, version 2\n");
  server_.failures = {grpc::Status(grpc::StatusCode::UNKNOWN, "gone")};
  const Outcome outcome = Edit("echo '{\"a\":1}' > \"$1\"");
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("It may or may not be written."),
                                 HasSubstr(" --request-id " + server_.last_update.request_id())));
  EXPECT_THAT(Drafts(), SizeIs(1));
}

TEST_F(EditCommand, AnEditorThatFailsWritesNothing) {
  Run({"create", "books", "moby", kMoby});
  Outcome outcome = Edit("exit 3");
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_THAT(outcome.err, HasSubstr("exit status 3; nothing was written\n"));
  EXPECT_THAT(Drafts(), IsEmpty());
  outcome = Edit("kill -INT $$");
  EXPECT_EQ(outcome.status, 130);
  outcome = Edit("rm \"$1\"");
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_THAT(outcome.err, HasSubstr("cannot read"));
  outcome = Edit(": > \"$1\"");
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_THAT(outcome.err, HasSubstr("the text is empty"));
  EXPECT_THAT(Drafts(), IsEmpty());
  outcome = Edit("echo '{\"a\":1}' > \"$1\"; exit 1");
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_THAT(outcome.err, HasSubstr("Your text is kept"));
  EXPECT_THAT(Drafts(), SizeIs(1));
  EXPECT_FALSE(server_.last_update.has_replace());
}

TEST_F(EditCommand, AnEditorThatIsNotThereIsNamedAsTheTrouble) {
  Run({"create", "books", "moby", kMoby});
  const EnvironmentVariable folder("TMPDIR", drafts_);
  const EnvironmentVariable terminal("TERM", "xterm");
  const EnvironmentVariable visual("VISUAL", "/nonexistent/editor --wait");
  const Outcome outcome = Run({"edit", "books", "moby"});
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_THAT(outcome.err, HasSubstr("$EDITOR"));
  EXPECT_THAT(Drafts(), IsEmpty());
}

TEST_F(EditCommand, AFolderThatCannotBeWrittenIsSaid) {
  Run({"create", "books", "moby", kMoby});
  const EnvironmentVariable folder("TMPDIR", directory_.Join("none"));
  const Outcome outcome = Run({"edit", "books", "moby"});
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_THAT(outcome.err, HasSubstr("TMPDIR may name another folder"));
}

TEST_F(EditCommand, AMissingDocumentIsBegunOnlyIfAskedFor) {
  Outcome outcome = Edit("echo '{\"a\":1}' > \"$1\"");
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_THAT(outcome.err, HasSubstr("--create"));
  EXPECT_THAT(Drafts(), IsEmpty());
  outcome = Edit("grep -q '^{}$' \"$1\" && echo '{\"a\":1}' > \"$1\"", {"--create"});
  EXPECT_EQ(outcome.out, "created books moby, version 1\n") << outcome.err;
  EXPECT_TRUE(server_.last_update.allow_missing());
  EXPECT_TRUE(server_.last_update.precondition().has_version());
  EXPECT_EQ(server_.last_update.precondition().version(), 0);
  Run({"delete", "books", "moby"});
  outcome = Edit("echo '{\"a\":2}' > \"$1\"", {"--create"});
  EXPECT_EQ(outcome.out, "created books moby, version 3\n") << outcome.err;
  EXPECT_EQ(server_.last_update.precondition().version(), 2);
}

TEST_F(EditCommand, ALargeDocumentPassesWhole) {
  const std::string text(900'000, 'x');
  Run({"create", "books", "moby", "{\"text\":\"" + text + "\",\"n\":1}"});
  EXPECT_EQ(Edit("sed -i 's/\"n\": 1/\"n\": 2/' \"$1\"").out, "updated books moby, version 2\n");
  EXPECT_EQ(server_.last_update.replace().bson(),
            client::BsonFromJson("{\"text\":\"" + text + "\",\"n\":2}").value());
}

TEST(ShellWord, IsOneWordForAShell) {
  for (const std::string word : {"plain-1", "it's", "two words", "$HOME", "", "a\"b\\c", "*"}) {
    const fault::Finished finished =
        fault::RunToEnd({"/bin/sh", "-c", "printf '%s|' " + ShellWord(word)}, "/dev/null");
    EXPECT_EQ(finished.output, word + "|");
  }
}

}  // namespace
}  // namespace strata::cli
