// The form of the code, checked as any other claim: names, openings, lengths, registrations.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "schemas/base/strings.h"
#include "tests/form/source_tree.h"
#include "tests/support/places.h"

namespace strata::form {
namespace {

namespace fs = std::filesystem;

constexpr size_t kSourceColumns = 100;
constexpr size_t kOtherColumns = 140;  // protos, CMake files and scripts, which nothing reflows

// Characters, not bytes: sentences may hold "…" and "±".
size_t Columns(const std::string& line) {
  return static_cast<size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

bool IsScript(const std::string& path) {
  const SourceFile file = ReadSource(path);
  return !file.lines.empty() && absl::StartsWith(file.lines[0], "#!") &&
         absl::StrContains(file.lines[0], "sh");
}

// "BatchGet" -> "batch_get".
std::string SnakeCase(const std::string& name) {
  std::string snake;
  for (const char c : name) {
    if (std::isupper(static_cast<unsigned char>(c)) && !snake.empty()) snake += '_';
    snake += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return snake;
}

bool Exists(const std::string& path) { return fs::exists(AbsolutePath(path)); }

std::string HeaderOf(const SourceFile& file) {
  return fs::path(file.path).replace_extension(".h").string();
}

TEST(Form, TheTopLevelIsClosed) {
  const std::set<std::string> allowed = {
      "proto",         "schemas", "service",    "clients",        "bench",         "tests",
      ".ci",           ".github", ".gitignore", ".gitattributes", ".clang-format", ".clang-tidy",
      ".editorconfig", "LICENSE", "README.md",  "CMakeLists.txt"};
  for (const std::string& path : ProjectFiles()) {
    const std::string top = path.substr(0, path.find('/'));
    EXPECT_TRUE(allowed.contains(top)) << path;
  }
}

TEST(Form, NamesAreSnakeCase) {
  for (const SourceFile& file : Sources()) {
    for (const char c : file.path) {
      EXPECT_TRUE(std::islower(static_cast<unsigned char>(c)) ||
                  std::isdigit(static_cast<unsigned char>(c)) ||
                  absl::StrContains("_/.", ToAbsl({&c, 1})))
          << file.path;
    }
  }
}

// What a file is, its header says if it has one; what an RPC's handler is, the .proto.
TEST(Form, AFileOpensWithASentence) {
  for (const SourceFile& file : Sources()) {
    if (file.extension() == ".cc" && Exists(HeaderOf(file))) continue;
    if (absl::StartsWith(file.path, "service/rpc/handlers/") && file.extension() == ".cc") continue;
    std::string comment;
    for (const std::string& line : file.lines) {
      if (!absl::StartsWith(line, "//")) break;
      comment += line;
    }
    EXPECT_TRUE(absl::StartsWith(comment, "// ") && absl::StrContains(comment, ".")) << file.path;
  }
}

TEST(Form, AHeaderIsIncludedOnce) {
  for (const SourceFile& file : Sources()) {
    if (file.extension() != ".h") continue;
    EXPECT_EQ(std::count(file.lines.begin(), file.lines.end(), "#pragma once"), 1) << file.path;
  }
}

// So its own .cc shows that a header compiles alone; a header that has none gets a generated file
// (CMakeLists.txt here).
TEST(Form, ASourceIncludesItsOwnHeaderFirst) {
  for (const SourceFile& file : Sources()) {
    if (file.extension() != ".cc") continue;
    const std::string header = HeaderOf(file);
    if (!Exists(header)) continue;
    const auto includes = IncludesOf(file);
    ASSERT_FALSE(includes.empty()) << file.path;
    EXPECT_EQ(includes[0].header, header) << file.path;
  }
}

TEST(Form, LinesAreShort) {
  for (const SourceFile& file : Sources()) {
    const bool reflowed = file.extension() == ".h" || file.extension() == ".cc";
    const size_t limit = reflowed ? kSourceColumns : kOtherColumns;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string& line = file.lines[i];
      if (absl::StrContains(line, "R\"") || absl::StrContains(line, "://")) continue;
      EXPECT_LE(Columns(line), limit) << file.path << ":" << i + 1;
    }
  }
}

TEST(Form, NoTabsAndNothingBehindTheLastCharacter) {
  for (const SourceFile& file : Sources()) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string& line = file.lines[i];
      EXPECT_FALSE(absl::StrContains(line, "\t")) << file.path << ":" << i + 1;
      EXPECT_FALSE(absl::EndsWith(line, " ") || absl::EndsWith(line, "\r"))
          << file.path << ":" << i + 1;
    }
  }
}

// A mark of unfinished work says what is missing and why it can wait.
TEST(Form, AnUnfinishedPlaceSaysWhyItCanWait) {
  const std::string mark = std::string("TO") + "DO";
  for (const SourceFile& file : Sources()) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      EXPECT_FALSE(absl::StrContains(file.lines[i], std::string("FIX") + "ME"))
          << file.path << ":" << i + 1;
      if (!absl::StrContains(file.lines[i], mark)) continue;
      std::string text;
      for (size_t j = i; j < file.lines.size() && absl::StrContains(file.lines[j], "//"); ++j) {
        text += file.lines[j];
      }
      EXPECT_TRUE(absl::StrContains(text, mark + ": ")) << file.path << ":" << i + 1;
      EXPECT_TRUE(absl::StrContains(text, "because") || absl::StrContains(text, "wait"))
          << file.path << ":" << i + 1;
    }
  }
}

// Each release lays out some lines in another way.
TEST(Form, ClangFormatChangesNothing) {
  if (std::system("clang-format --version 2>/dev/null | grep -q ' version 14\\.'") != 0) {
    GTEST_SKIP() << "the code has the form of Debian 12's clang-format 14, which is not installed";
  }
  std::string command =
      "cd '" + test_support::SourcePath("") + "' && clang-format --dry-run --Werror";
  for (const SourceFile& file : Sources()) {
    if (file.extension() == ".h" || file.extension() == ".cc") command += " '" + file.path + "'";
  }
  EXPECT_EQ(std::system(command.c_str()), 0) << "run clang-format -i on the files named above";
}

TEST(Form, ScriptsParseAndStopAtErrors) {
  for (const std::string& path : ProjectFiles()) {
    if (!IsScript(path)) continue;
    const SourceFile file = ReadSource(path);
    EXPECT_NE(std::find(file.lines.begin(), file.lines.end(), "set -euo pipefail"),
              file.lines.end())
        << path;
    EXPECT_EQ(std::system(("bash -n '" + AbsolutePath(path) + "'").c_str()), 0) << path;
    EXPECT_NE(fs::status(AbsolutePath(path)).permissions() & fs::perms::owner_exec, fs::perms::none)
        << path;
  }
}

TEST(Registration, EachStrategyIsAFileOfItsOwn) {
  const auto entries = EntriesOf(ReadSource("schemas/versioning/strategies.def"), "STRATEGY");
  ASSERT_FALSE(entries.empty());
  std::map<std::string, std::string> strategy_of_file;
  for (const auto& entry : entries) {
    ASSERT_EQ(entry.size(), 3u);
    const std::string definition = " " + entry[2] + "(";
    std::vector<std::string> files;
    for (const SourceFile& file : Sources()) {
      if (file.folder() != "schemas/versioning" || file.extension() != ".cc") continue;
      // At the left margin: where the function is defined, not called.
      const bool defines = std::any_of(file.lines.begin(), file.lines.end(), [&](const auto& line) {
        return absl::StrContains(line, definition) && !absl::StartsWith(line, " ") &&
               !absl::StartsWith(line, "#");
      });
      if (defines) files.push_back(file.path);
    }
    ASSERT_EQ(files.size(), 1u) << entry[1] << ": " << absl::StrJoin(files, " ");
    EXPECT_TRUE(strategy_of_file.emplace(files[0], entry[1]).second) << files[0];
  }
}

TEST(Registration, EachEngineIsAFolder) {
  const auto entries = EntriesOf(ReadSource("service/engines/engines.def"), "ENGINE");
  std::set<std::string> registered;
  for (const auto& entry : entries) registered.insert("service/engines/" + entry.at(0));
  std::set<std::string> folders;
  for (const SourceFile& file : Sources()) {
    if (absl::StartsWith(file.folder(), "service/engines/")) folders.insert(file.folder());
  }
  EXPECT_EQ(registered, folders);
}

// Whoever tells keyspaces apart asks for their traits, so that a new one is a line of the list.
TEST(Registration, NoCodeChoosesByKeyspace) {
  EXPECT_FALSE(EntriesOf(ReadSource("schemas/store/keyspaces.def"), "KEYSPACE").empty());
  for (const SourceFile& file : Sources()) {
    for (const std::string& line : file.lines) {
      for (const std::string name : {"Keyspace::", "store::Keyspace::"}) {
        EXPECT_FALSE(absl::StrContains(line, "case " + name)) << file.path << ": " << line;
      }
    }
  }
}

// The names of the handlers in the rows of a service's table: `rows.Add(Get);`,
// `rows.AddScan(OpenVerify);`.
std::vector<std::string> MethodsIn(const SourceFile& table) {
  std::vector<std::string> names;
  for (const std::string& line : table.lines) {
    const absl::string_view row = absl::StripLeadingAsciiWhitespace(ToAbsl(line));
    if (!absl::StartsWith(row, "rows.Add")) continue;
    const absl::string_view handler = row.substr(row.find_last_of("( ") + 1);
    names.emplace_back(absl::StripPrefix(absl::StripSuffix(handler, ");"), "Open"));
  }
  return names;
}

// And each file a method, but for what several of them use, which has a header.
TEST(Registration, EachMethodIsAFile) {
  std::set<std::string> registered;
  std::set<std::string> files;
  for (const SourceFile& file : Sources()) {
    if (!absl::StartsWith(file.path, "service/rpc/handlers/")) continue;
    if (file.extension() != ".cc") continue;
    if (Exists(HeaderOf(file))) continue;
    if (!absl::EndsWith(file.path, "/methods.cc")) {
      files.insert(file.path);
      continue;
    }
    for (const std::string& name : MethodsIn(file)) {
      registered.insert(file.folder() + "/" + SnakeCase(name) + ".cc");
    }
  }
  EXPECT_EQ(registered, files);
}

// handlers/document/ is document_service in the list of services.
TEST(Registration, EachServiceIsAFolder) {
  std::set<std::string> registered;
  for (const std::string& line : ReadSource("service/rpc/registry.cc").lines) {
    const size_t end = line.find("_service::Methods");
    if (end == std::string::npos) continue;
    registered.insert("service/rpc/handlers/" + line.substr(line.find_last_of(' ', end) + 1,
                                                            end - line.find_last_of(' ', end) - 1));
  }
  std::set<std::string> folders;
  for (const SourceFile& file : Sources()) {
    if (absl::StartsWith(file.folder(), "service/rpc/handlers/")) folders.insert(file.folder());
  }
  EXPECT_EQ(registered, folders);
}

}  // namespace
}  // namespace strata::form
