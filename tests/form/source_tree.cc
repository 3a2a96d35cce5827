// Lists files through git, which knows what belongs to the project, or else by walking the tree.
#include "tests/form/source_tree.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "schemas/base/strings.h"
#include "tests/support/places.h"

namespace strata::form {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> FilesOfGit() {
  const std::string command = "git -C '" + test_support::SourcePath("") +
                              "' ls-files --cached --others --exclude-standard 2>/dev/null";
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  std::string output;
  std::array<char, 4096> buffer;
  while (const size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.append(buffer.data(), count);
  }
  if (pclose(pipe) != 0) return {};
  std::vector<std::string> files = absl::StrSplit(output, '\n', absl::SkipEmpty());
  // Deleted, but not yet for git.
  std::erase_if(files, [](const std::string& path) { return !fs::exists(AbsolutePath(path)); });
  return files;
}

std::vector<std::string> FilesOfTree() {
  std::vector<std::string> files;
  fs::recursive_directory_iterator at(test_support::SourcePath(""));
  for (; at != fs::recursive_directory_iterator(); ++at) {
    const std::string name = at->path().filename().string();
    const bool top = at.depth() == 0;
    if (name == ".git" || name == "node_modules" ||
        (top && (name == "data" || name.starts_with("build")))) {
      at.disable_recursion_pending();
    } else if (at->is_regular_file()) {
      files.push_back(fs::relative(at->path(), test_support::SourcePath("")).string());
    }
  }
  return files;
}

}  // namespace

std::string SourceFile::extension() const { return fs::path(path).extension().string(); }

const std::vector<std::string>& ProjectFiles() {
  static const std::vector<std::string> files = [] {
    std::vector<std::string> found = FilesOfGit();
    if (found.empty()) found = FilesOfTree();
    std::sort(found.begin(), found.end());
    return found;
  }();
  return files;
}

const std::vector<SourceFile>& Sources() {
  static const std::vector<SourceFile> sources = [] {
    std::vector<SourceFile> read;
    for (const std::string& path : ProjectFiles()) {
      const std::string extension = fs::path(path).extension().string();
      if (extension == ".h" || extension == ".cc" || extension == ".def" || extension == ".proto") {
        read.push_back(ReadSource(path));
      }
    }
    return read;
  }();
  return sources;
}

std::string AbsolutePath(std::string_view path) {
  return (fs::path(test_support::SourcePath("")) / path).string();
}

SourceFile ReadSource(const std::string& path) {
  SourceFile file{path, {}};
  std::ifstream in(AbsolutePath(path));
  for (std::string line; std::getline(in, line);) file.lines.push_back(line);
  return file;
}

std::vector<Include> IncludesOf(const SourceFile& file) {
  std::vector<Include> includes;
  for (size_t i = 0; i < file.lines.size(); ++i) {
    absl::string_view text = file.lines[i];
    if (!absl::ConsumePrefix(&text, "#include ")) continue;
    text.remove_prefix(1);
    includes.push_back({std::string(text.substr(0, text.find_first_of(">\""))), i + 1});
  }
  return includes;
}

std::vector<std::vector<std::string>> EntriesOf(const SourceFile& file, std::string_view macro) {
  const std::string opening = std::string(macro) + "(";
  std::vector<std::vector<std::string>> entries;
  for (const std::string& line : file.lines) {
    if (!line.starts_with(opening)) continue;
    absl::string_view inside = ToAbsl(line).substr(opening.size());
    inside = inside.substr(0, inside.rfind(')'));
    std::vector<std::string> arguments;
    for (absl::string_view argument : absl::StrSplit(inside, ',')) {
      argument = absl::StripAsciiWhitespace(argument);
      if (absl::ConsumePrefix(&argument, "\"")) absl::ConsumeSuffix(&argument, "\"");
      arguments.emplace_back(argument);
    }
    entries.push_back(std::move(arguments));
  }
  return entries;
}

}  // namespace strata::form
