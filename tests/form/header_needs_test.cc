// A header brings along the types that it names: it, or what it includes, declares each of them.
// The compiler sees that only where the header comes first, which is so of few headers in a build
// that joins sources.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "tests/form/source_tree.h"

namespace strata::form {
namespace {

using Names = std::set<std::string, std::less<>>;

// A word of C++, or a character between words.
struct Token {
  std::string text;
  bool opens_line = false;  // stands at the very beginning of one, where a namespace's members do

  bool IsWord() const { return absl::ascii_isalpha(text[0]) || text[0] == '_'; }
};

// Without comments, texts and what the preprocessor reads. No header of ours has a comment over
// several lines or a raw text.
std::vector<Token> TokensOf(const SourceFile& file) {
  std::vector<Token> tokens;
  for (const std::string& line : file.lines) {
    if (line.starts_with('#')) continue;
    for (size_t at = 0; at < line.size();) {
      const size_t begin = at++;
      const char first = line[begin];
      if (absl::ascii_isspace(first)) continue;
      if (first == '/' && at < line.size() && line[at] == '/') break;
      if (first == '"') {
        while (at < line.size() && line[at] != '"') at += line[at] == '\\' ? 2 : 1;
        ++at;
        continue;
      }
      while ((absl::ascii_isalnum(first) || first == '_') && at < line.size() &&
             (absl::ascii_isalnum(line[at]) || line[at] == '_')) {
        ++at;
      }
      tokens.push_back({.text = line.substr(begin, at - begin), .opens_line = begin == 0});
    }
  }
  return tokens;
}

struct Header {
  Names defines;   // types, at the top of a namespace
  Names declares;  // types, anywhere: also only announced, nested, or the parameter of a template
  Names uses;      // what looks like a type: unqualified, or qualified by a namespace
};

// The name that a declaration at `at` gives, past `class` or its like; empty if it gives none.
std::string_view NameGiven(const std::vector<Token>& tokens, size_t& at) {
  static const Names kinds = {"class", "struct", "enum", "union", "using", "concept", "typename"};
  if (!kinds.contains(tokens[at].text)) return "";
  ++at;
  if (at < tokens.size() && tokens[at].text == "class") ++at;
  while (at + 1 < tokens.size() &&
         (tokens[at].text == "[" || tokens[at].text == "]" || tokens[at + 1].text == "]")) {
    ++at;  // [[nodiscard]]
  }
  return at < tokens.size() && tokens[at].IsWord() ? std::string_view(tokens[at].text) : "";
}

Header Read(const SourceFile& file, const Names& namespaces) {
  const std::vector<Token> tokens = TokensOf(file);
  Header header;
  for (size_t at = 0; at < tokens.size(); ++at) {
    const auto is = [&](size_t place, std::string_view text) {
      return place < tokens.size() && tokens[place].text == text;
    };
    const bool top = tokens[at].opens_line;
    if (std::string_view name = NameGiven(tokens, at); !name.empty()) {
      header.declares.insert(std::string(name));
      const size_t next = at + 1;
      if (top && (is(next, "{") || is(next, ":") || is(next, "=") || is(next, "final"))) {
        header.defines.insert(std::string(name));
      }
      continue;
    }
    if (at >= tokens.size() || !absl::ascii_isupper(tokens[at].text[0]) || is(at + 1, "(")) {
      continue;
    }
    const bool member = at > 0 && (is(at - 1, ".") || is(at - 1, ">"));
    const bool qualified = at > 2 && is(at - 1, ":") && is(at - 2, ":");
    if (member || (qualified && !namespaces.contains(tokens[at - 3].text))) continue;
    header.uses.insert(tokens[at].text);
  }
  return header;
}

using Headers = std::map<std::string, Header, std::less<>>;

// All that `path` brings along of ours, itself included.
void Gather(const std::string& path, const std::map<std::string, std::vector<Include>>& includes,
            std::set<std::string>& reached) {
  if (!includes.contains(path) || !reached.insert(path).second) return;
  for (const Include& include : includes.at(path)) {
    Gather(include.header, includes, reached);
    Gather("clients/cpp/include/" + include.header, includes, reached);
  }
}

std::vector<std::string> MissingIn(const std::vector<SourceFile>& files) {
  Names namespaces;
  for (const SourceFile& file : files) {
    const std::vector<Token> tokens = TokensOf(file);
    for (size_t at = 0; at < tokens.size(); ++at) {
      if (tokens[at].text != "namespace") continue;
      std::vector<std::string> names;
      while (++at < tokens.size() && (tokens[at].IsWord() || tokens[at].text == ":")) {
        names.push_back(tokens[at].text);
      }
      // Not another's, in which something is announced, and not another name of one: `namespace
      // wire = …`.
      const bool ours = !names.empty() && names.front() == "strata";
      if (ours && at < tokens.size() && tokens[at].text == "{") {
        namespaces.insert(names.begin(), names.end());
      }
    }
  }
  Headers headers;
  std::map<std::string, std::vector<Include>> includes;
  std::map<std::string, std::vector<std::string>> defined_in;
  for (const SourceFile& file : files) {
    headers[file.path] = Read(file, namespaces);
    includes[file.path] = IncludesOf(file);
    for (const std::string& name : headers[file.path].defines) {
      defined_in[name].push_back(file.path);
    }
  }
  std::vector<std::string> missing;
  for (const auto& [path, header] : headers) {
    std::set<std::string> reached;
    Gather(path, includes, reached);
    for (const std::string& name : header.uses) {
      if (!defined_in.contains(name)) continue;
      bool known = false;
      for (const std::string& other : reached) known |= headers.at(other).declares.contains(name);
      if (!known) {
        missing.push_back(path + " names " + name + " of " +
                          absl::StrJoin(defined_in.at(name), " or "));
      }
    }
  }
  return missing;
}

TEST(HeaderNeeds, EachHeaderBringsTheTypesThatItNames) {
  std::vector<SourceFile> files;
  for (const SourceFile& file : Sources()) {
    const bool product = file.path.starts_with("schemas/") || file.path.starts_with("service/") ||
                         file.path.starts_with("clients/");
    if (product && file.extension() == ".h") files.push_back(file);
  }
  ASSERT_GT(files.size(), 200u);
  for (const std::string& fault : MissingIn(files)) ADD_FAILURE() << fault;
}

// Each of these is seen, and nothing beside it.
TEST(HeaderNeeds, WhatIsMissingIsSeen) {
  const SourceFile shelf = {
      .path = "a/shelf.h",
      .lines = {"namespace strata::a {", "class [[nodiscard]] Shelf final {",
                "  enum class Kind { kLow };", "};", "using Shelves = int;", "}"}};
  const auto missing = [&](std::vector<std::string> lines) {
    lines.insert(lines.begin(), "namespace strata::b {");
    lines.push_back("}");
    return MissingIn({shelf, {.path = "b/book.h", .lines = lines}}).size();
  };
  EXPECT_EQ(missing({"Shelf Find();"}), 1u);
  EXPECT_EQ(missing({"struct Book {", "  a::Shelf* shelf;  // where it stands", "};"}), 1u);
  EXPECT_EQ(missing({"Shelf First(Shelves all);"}), 2u);
  EXPECT_EQ(missing({"#include \"a/shelf.h\"", "Shelf Find();"}), 0u);
  EXPECT_EQ(missing({"class Shelf;", "Shelf Find();"}), 0u);
  EXPECT_EQ(missing({"template <typename Shelf>", "Shelf Find();"}), 0u);
  EXPECT_EQ(missing({"// A Shelf is high.", "void Say(Text text = \"Shelf\");"}), 0u);
  EXPECT_EQ(missing({"grpc::Shelf Find();", "int count = all.Shelf + all->Shelf;"}), 0u);
  EXPECT_EQ(missing({"Kind Of();"}), 0u);  // nested: somebody's own
}

}  // namespace
}  // namespace strata::form
