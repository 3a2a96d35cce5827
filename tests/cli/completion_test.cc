// Claims about what shells offer, and about the manual.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "clients/cli/draft.h"
#include "tests/cli/command_line.h"
#include "tests/fault/child_process.h"
#include "tests/support/places.h"
#include "tests/support/temporary_directory.h"

namespace strata::cli {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// What is offered for the last word; the meanings left out.
std::vector<std::string> Offered(std::vector<std::string> words) {
  words.insert(words.begin(), "__complete");
  std::istringstream out([&] {
    std::istringstream in;
    std::ostringstream text;
    std::ostringstream err;
    EXPECT_EQ(RunStrata(words, {.in = in, .out = text, .err = err}), kExitOk);
    EXPECT_EQ(err.str(), "");
    return text.str();
  }());
  std::vector<std::string> offered;
  for (std::string line; std::getline(out, line);)
    offered.push_back(line.substr(0, line.find('\t')));
  return offered;
}

TEST(Completion, OffersCommandsOptionsAndValues) {
  EXPECT_THAT(Offered({""}), AllOf(Contains("get"), Contains("edit"), Contains("status"),
                                   Not(Contains("__complete"))));
  EXPECT_THAT(Offered({"hist"}), ElementsAre("history"));
  EXPECT_THAT(Offered({"queue", "cr"}), ElementsAre("create"));
  EXPECT_THAT(Offered({"update", "books", "moby", "--rem"}), ElementsAre("--remove-all"));
  EXPECT_THAT(Offered({"get", "books", "--js"}), ElementsAre("--json"));  // of the whole program
  EXPECT_THAT(Offered({"collections", "create", "books", "--strategy", "del"}),
              ElementsAre("deltas"));
  EXPECT_THAT(Offered({"audit", "--kind", ""}), Contains("restored"));
  EXPECT_THAT(Offered({"import", "--on-existing", ""}), ElementsAre("fail", "skip", "append"));
  EXPECT_THAT(Offered({"completion", ""}), ElementsAre("bash", "zsh", "fish"));
  // As bash takes it apart.
  EXPECT_THAT(Offered({"import", "--on-existing", "=", "sk"}), ElementsAre("skip"));
  EXPECT_THAT(Offered({"import", "--on-existing", "="}), ElementsAre("fail", "skip", "append"));
}

TEST(Completion, KnowsWhereAWordStands) {
  EXPECT_THAT(Offered({"import", ""}), ElementsAre(":files"));
  EXPECT_THAT(Offered({"export", "books", "-o", ""}), ElementsAre(":files"));
  EXPECT_THAT(Offered({"create", "books", "@"}), ElementsAre(":files"));
  EXPECT_THAT(Offered({"--server", "queue", "cre"}), ElementsAre("create"));
  EXPECT_THAT(Offered({"--json", "--timeout", "5s", "queue", "cre"}), ElementsAre("create"));
  EXPECT_THAT(Offered({"get", "books", ""}), IsEmpty());
  EXPECT_THAT(Offered({"get", "queue", "cr"}), IsEmpty());
  EXPECT_THAT(Offered({"get", "books", "--reason"}), IsEmpty());
  EXPECT_THAT(Offered({"delete", "books", "moby", "--reason", "que"}), IsEmpty());
  EXPECT_THAT(Offered({"work", "mails", "--", "--cre"}), IsEmpty());
  EXPECT_THAT(Offered({"get", "\xff", "--nothing-like-it"}), IsEmpty());
  EXPECT_FALSE(Offered({}).empty());
}

// What bash offers for the last word of a command line, as it would at a terminal.
std::string BashOffers(const std::string& words) {
  const test_support::TemporaryDirectory directory;
  const std::string folder =
      std::filesystem::path(test_support::CommandLineProgram()).parent_path().string();
  std::ofstream(directory.Join("a file.ndjson")) << "";
  std::ofstream(directory.Join("script"))
      << "set -eu\nPATH=" << ShellWord(folder) << ":$PATH\ncd " << ShellWord(directory.path())
      << "\nsource <(strata completion bash)\ncompopt() { local IFS=' '; echo \"compopt $*\"; "
         "}\nCOMP_WORDS=("
      << words
      << ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_strata\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n";
  const fault::Finished finished =
      fault::RunToEnd({"/bin/bash", directory.Join("script")}, directory.Join("errors"));
  EXPECT_EQ(finished.status, 0);
  EXPECT_EQ(fault::ReadFile(directory.Join("errors")), "");
  return finished.output;
}

TEST(Completion, BashOffersWhatTheProgramKnows) {
  EXPECT_EQ(BashOffers("strata hist"), "history\n");
  EXPECT_EQ(BashOffers("strata queue up"), "update\n");
  EXPECT_EQ(BashOffers("strata import --on-existing = s"), "skip\n");
  EXPECT_EQ(BashOffers("strata get 'it'\\''s' --fi"), "--field\n");
  EXPECT_EQ(BashOffers("strata import ''"), "compopt -o default -o filenames\n\n");
  EXPECT_EQ(BashOffers("strata nonsense --x"), "\n");
}

TEST(Completion, EachShellHasAScript) {
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const Outcome outcome = [&] {
      std::istringstream in;
      std::ostringstream out;
      std::ostringstream err;
      Outcome made;
      made.status = RunStrata({"completion", shell}, {.in = in, .out = out, .err = err});
      made.out = out.str();
      return made;
    }();
    EXPECT_EQ(outcome.status, kExitOk);
    EXPECT_THAT(outcome.out, HasSubstr("__complete"));
    // Where the shell is there, it understands its script.
    const test_support::TemporaryDirectory directory;
    std::ofstream(directory.Join("script")) << outcome.out;
    const fault::Finished finished = fault::RunToEnd(
        {"/bin/sh", "-c",
         "command -v " + shell + " > /dev/null || exit 0; exec " + shell + " " +
             (shell == "fish" ? "--no-execute " : "-n ") + ShellWord(directory.Join("script"))},
        directory.Join("errors"));
    EXPECT_EQ(finished.status, 0) << shell << fault::ReadFile(directory.Join("errors"));
  }
}

class ManualTest : public CommandLine {};

TEST_F(ManualTest, TellsOfEveryCommandAndOption) {
  const std::string page = RunBare({"man"}).out;
  for (const std::string text :
       {".TH STRATA 1", ".SS \"strata queue create\"", "\\fB\\-\\-on\\-existing\\fR \\fIWHAT\\fR",
        "\\fBSTRATA_TOKEN_FILE\\fR", "\\fBVISUAL\\fR"}) {
    EXPECT_THAT(page, HasSubstr(text));
  }
}

TEST_F(ManualTest, IsShownWithoutComplaint) {
  if (std::system("command -v groff > /dev/null 2>&1") != 0) GTEST_SKIP() << "groff is missing";
  const test_support::TemporaryDirectory directory;
  std::ofstream(directory.Join("strata.1")) << RunBare({"man"}).out;
  const fault::Finished shown = fault::RunToEnd(
      {"/bin/sh", "-c", "groff -man -Tutf8 -ww -P-c " + ShellWord(directory.Join("strata.1"))},
      directory.Join("errors"));
  EXPECT_EQ(shown.status, 0);
  EXPECT_EQ(fault::ReadFile(directory.Join("errors")), "");
  // What is to be typed stands there as it is typed.
  EXPECT_THAT(shown.output, HasSubstr("strata list books --where 'stock>0'"));
  EXPECT_THAT(shown.output, HasSubstr("'author.name~^Mel'"));
}

}  // namespace
}  // namespace strata::cli
