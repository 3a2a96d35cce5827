// The project's own files, as the form tests read them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace strata::form {

struct SourceFile {
  std::string path;  // from the project's folder, such as "schemas/base/error.h"
  std::vector<std::string> lines;

  std::string folder() const { return path.substr(0, path.find_last_of('/')); }
  std::string extension() const;  // ".h"; empty if there is none
};

// An #include line of a source file.
struct Include {
  std::string header;
  size_t line;  // from 1
};

// Paths of all files that git knows or would add; without git, all but builds, data and what npm
// installed. Sorted.
const std::vector<std::string>& ProjectFiles();

// The .h, .cc, .def and .proto files among them.
const std::vector<SourceFile>& Sources();

// The absolute path of one of them.
std::string AbsolutePath(std::string_view path);

SourceFile ReadSource(const std::string& path);

std::vector<Include> IncludesOf(const SourceFile& file);

// The arguments of each `MACRO(a, b, …)` that opens a line: the entries of a .def file.
std::vector<std::vector<std::string>> EntriesOf(const SourceFile& file, std::string_view macro);

}  // namespace strata::form
