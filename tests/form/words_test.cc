// The words that readers stumble over, and how often each may still stand: counts that only fall.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "schemas/base/strings.h"
#include "tests/form/source_tree.h"

namespace strata::form {
namespace {

// The texts that users read.
enum Area {
  kProtos,    // the .proto files
  kMessages,  // string literals of the product: errors, --help, the log
  kHeaders,   // comments of the product's headers
  kClients,   // Python, Node and the explorer, as a whole
  kDocs,      // Markdown for users, without generated pages and notes
  kAreaCount
};
constexpr std::array<std::string_view, kAreaCount> kAreaNames = {"protos", "messages", "headers",
                                                                 "clients", "docs"};

constexpr int kAny = -1;  // right there in another sense, so not counted

// Alternatives with "|" between them, in lower case: whole words, also over the end of a line. The
// table "Words" of .github/CONTRIBUTING.md says what to write instead.
struct Row {
  std::string_view words;
  std::array<int, kAreaCount> allowed;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.words; }

// clang-format off
constexpr Row kRows[] = {
    //                                        protos, messages, headers, clients, docs
    // Spatial use only: it never means "after" or "later".
    {"behind",                                            {   0,    0,    0,    1,    1}},
    // A pronoun that hides the subject.
    {"whoever|whomever",                                  {   0,    0,   57,    4,    0}},
    {"whatever|whichever|whyever|wherever|however",       {   0,    0,   60,    5,    0}},
    {"nobody",                                            {   0,    0,   74,    4,    0}},
    {"somebody|anybody|everybody",                        {   0,    0,   38,    6,    0}},
    // Old turns of speech.
    {"so many",                                           {   0,    0,   36,    3,    0}},
    {"any more",                                          {   0,    0,   26,    1,    0}},
    {"but for",                                           {   0,    0,   18,    3,    1}},
    {"tell|tells|told",                                   {   0,    0,  103,   38,    5}},
    {"gone on with",                                      {   0,    0,    1,    1,    0}},
    {"port for people",                                   {   0,    0,    0,    0,    0}},
    // One word for one idea: the column "not" of the table of words.
    {"revision|revisions",                                {   0,    0,    0,    0,    0}},
    {"offset|offsets",                                    {   0,    0,    3,    3,    0}},
    {"lsn|lsns",                                          {   0,    0,    0,    0,    0}},
    {"dao|daos|backend|backends",                         {   0,    0,    0,    0,    0}},
    {"oplog|event bus",                                   {   0,    0,    0,    0,    0}},
    {"mutex|mutexes",                                     {   0,    0,    7,    0,    0}},
    {"place|places",                                      {   3,    5,  106, kAny,    5}},
    {"hint|hints",                                        {   0,    2,   47, kAny,    0}},
};
// clang-format on

bool IsProduct(const std::string& path) {
  return absl::StartsWith(path, "proto/") || absl::StartsWith(path, "schemas/") ||
         absl::StartsWith(path, "service/") || absl::StartsWith(path, "clients/");
}

bool IsCode(const SourceFile& file) {
  return file.extension() == ".h" || file.extension() == ".cc" || file.extension() == ".def";
}

// Without the files that generate.py and generate.mjs make beside them: a tree without git has
// them.
bool IsOfClients(const std::string& path) {
  for (const char* const made : {"/gen/", "/aio.py", "/reasons.py", "/types.py"}) {
    if (absl::StrContains(path, made)) return false;
  }
  return (absl::StartsWith(path, "clients/python/strata_documents/") &&
          absl::EndsWith(path, ".py")) ||
         (absl::StartsWith(path, "clients/node/src/") && absl::EndsWith(path, ".ts")) ||
         absl::StartsWith(path, "service/http/explorer/");
}

bool IsDoc(const std::string& path) {
  return absl::EndsWith(path, ".md") && path != "service/docs/api.md" &&
         !absl::StartsWith(path, ".github/") && !absl::StartsWith(path, "bench/notes/");
}

// The texts between the quotes of a line of code, and its comment.
struct CodeLine {
  std::string literals;
  std::string comment;
};

// Takes a file's lines, first to last.
class CodeReader {
 public:
  CodeLine Read(const std::string& line) {
    CodeLine parts;
    size_t i = 0;
    if (!raw_end_.empty()) i = ReadRaw(line, 0, parts);
    if (i == 0 && absl::StartsWith(line, "#")) return parts;
    char quote = 0;
    for (; i < line.size(); ++i) {
      const char c = line[i];
      if (quote != 0) {
        if (c == quote) {
          quote = 0;
          continue;
        }
        if (c == '\\') ++i;
        if (quote != '"' || i == line.size()) continue;
        parts.literals += c == '\\' && line[i] == 'n' ? ' ' : line[i];  // "\n" parts two words
      } else if (c == 'R' && absl::StartsWith(ToAbsl(line).substr(i), "R\"")) {
        const size_t open = line.find('(', i);
        raw_end_ = ")" + line.substr(i + 2, open - i - 2) + "\"";
        i = ReadRaw(line, open + 1, parts) - 1;
      } else if (c == '"' || (c == '\'' && !IsDigitBefore(line, i))) {
        quote = c;
      } else if (c == '/' && absl::StartsWith(ToAbsl(line).substr(i), "//")) {
        parts.comment = line.substr(i + 2);
        break;
      }
    }
    return parts;
  }

 private:
  // 1'000.
  static bool IsDigitBefore(const std::string& line, size_t i) {
    return i > 0 && std::isalnum(static_cast<unsigned char>(line[i - 1]));
  }

  // What a raw string holds from `begin` on; answers where the line goes on after it.
  size_t ReadRaw(const std::string& line, size_t begin, CodeLine& parts) {
    const size_t end = line.find(raw_end_, begin);
    parts.literals += line.substr(begin, end == std::string::npos ? end : end - begin);
    if (end == std::string::npos) return line.size();
    const size_t after = end + raw_end_.size();
    raw_end_.clear();
    return after;
  }

  std::string raw_end_;  // of the raw string that the line before began; else empty
};

struct Word {
  std::string text;  // in lower case; empty: no phrase goes on over it
  const SourceFile* file;
  size_t line;  // from 1
};

void AddWords(const SourceFile& file, size_t line, std::string_view text,
              std::vector<Word>& words) {
  std::string word;
  const auto flush = [&] {
    if (!word.empty()) words.push_back({word, &file, line});
    word.clear();
  };
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      continue;
    }
    flush();
    if (absl::StrContains(".,;:!?()|\"`", ToAbsl({&c, 1}))) words.push_back({"", &file, line});
  }
  flush();
}

std::vector<Word> WordsOf(Area area) {
  static auto* const others = new std::vector<std::vector<SourceFile>>(kAreaCount);
  std::vector<Word> words;
  if (area == kClients || area == kDocs) {
    std::vector<SourceFile>& files = (*others)[area];
    for (const std::string& path : ProjectFiles()) {
      if (area == kClients ? IsOfClients(path) : IsDoc(path)) files.push_back(ReadSource(path));
    }
    for (const SourceFile& file : files) {
      for (size_t i = 0; i < file.lines.size(); ++i) AddWords(file, i + 1, file.lines[i], words);
      words.push_back({"", &file, file.lines.size()});
    }
    return words;
  }
  for (const SourceFile& file : Sources()) {
    const bool counts = area == kProtos     ? file.extension() == ".proto" && IsProduct(file.path)
                        : area == kMessages ? IsCode(file) && IsProduct(file.path)
                                            : file.extension() == ".h" && IsProduct(file.path);
    if (!counts) continue;
    CodeReader code;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      if (area == kProtos) {
        AddWords(file, i + 1, file.lines[i], words);
        continue;
      }
      const CodeLine parts = code.Read(file.lines[i]);
      const std::string& text = area == kMessages ? parts.literals : parts.comment;
      if (text.empty()) words.push_back({"", &file, i + 1});
      AddWords(file, i + 1, text, words);
    }
    words.push_back({"", &file, file.lines.size()});
  }
  return words;
}

const std::vector<Word>& WordsIn(Area area) {
  static const auto* const all = [] {
    auto* const made = new std::vector<std::vector<Word>>;
    for (int i = 0; i < kAreaCount; ++i) made->push_back(WordsOf(static_cast<Area>(i)));
    return made;
  }();
  return (*all)[area];
}

// "file:line" of each place of one of the alternatives.
std::vector<std::string> PlacesOf(std::string_view alternatives, const std::vector<Word>& words) {
  std::vector<std::vector<std::string>> phrases;
  for (const absl::string_view phrase : absl::StrSplit(ToAbsl(alternatives), '|')) {
    phrases.push_back(absl::StrSplit(phrase, ' '));
  }
  std::vector<std::string> places;
  for (size_t i = 0; i < words.size(); ++i) {
    for (const std::vector<std::string>& phrase : phrases) {
      if (words.size() - i < phrase.size()) continue;
      size_t met = 0;
      while (met < phrase.size() && words[i + met].text == phrase[met]) ++met;
      if (met < phrase.size()) continue;
      places.push_back(words[i].file->path + ":" + std::to_string(words[i].line));
      break;
    }
  }
  return places;
}

std::string Shown(std::vector<std::string> places) {
  constexpr size_t kShownMax = 30;
  const size_t more = places.size() - std::min(places.size(), kShownMax);
  places.resize(places.size() - more);
  return "\n  " + absl::StrJoin(places, "\n  ") +
         (more > 0 ? "\n  and " + std::to_string(more) + " more" : "");
}

class Words : public testing::TestWithParam<Row> {};

TEST_P(Words, StandNoMoreOftenThanTheTableAllows) {
  const Row& row = GetParam();
  for (int i = 0; i < kAreaCount; ++i) {
    const int allowed = row.allowed[static_cast<size_t>(i)];
    if (allowed == kAny) continue;
    const auto places = PlacesOf(row.words, WordsIn(static_cast<Area>(i)));
    const int count = static_cast<int>(places.size());
    EXPECT_LE(count, allowed) << row.words << " in " << kAreaNames[static_cast<size_t>(i)]
                              << ": write another word (\"Words\" in CONTRIBUTING.md)"
                              << Shown(places);
    EXPECT_GE(count, allowed) << row.words << " in " << kAreaNames[static_cast<size_t>(i)]
                              << ": lower the number in the table to " << count;
  }
}

INSTANTIATE_TEST_SUITE_P(Table, Words, testing::ValuesIn(kRows), [](const auto& row) {
  std::string name(row.param.words.substr(0, row.param.words.find('|')));
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

// That the counting counts: each kind of text, with what is beside it.
TEST(WordsOfAText, AreFoundInTheirArea) {
  const SourceFile file{"schemas/x.h", {}};
  std::vector<Word> words;
  const auto places = [&](std::string_view phrase) { return PlacesOf(phrase, words).size(); };
  AddWords(file, 1, "Behind it, so", words);
  AddWords(file, 2, "many; behindhand so. Many", words);
  EXPECT_EQ(places("behind"), 1u);
  EXPECT_EQ(places("so many"), 1u);
  EXPECT_EQ(places("hand|it"), 1u);

  CodeReader code;
  CodeLine line = code.Read(R"x(  Say("nobody\n\"told\"", '"', 1'000);  // "whoever" reads)x");
  EXPECT_EQ(line.literals, "nobody \"told\"");
  EXPECT_EQ(line.comment, " \"whoever\" reads");
  EXPECT_EQ(code.Read(R"x(#include "told.h")x").literals, "");
  EXPECT_EQ(code.Read("const char kHelp[] = R\"(so").literals, "so");
  EXPECT_EQ(code.Read("# many").literals, "# many");
  line = code.Read("words)\";  // any more");
  EXPECT_EQ(line.literals, "words");
  EXPECT_EQ(line.comment, " any more");
}

TEST(WordsOfAText, AreThereInEveryArea) {
  for (int i = 0; i < kAreaCount; ++i) {
    EXPECT_GT(WordsIn(static_cast<Area>(i)).size(), 1000u) << kAreaNames[static_cast<size_t>(i)];
  }
}

}  // namespace
}  // namespace strata::form
