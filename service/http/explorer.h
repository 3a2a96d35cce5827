// The page for people, as it is linked into the program: every file of explorer/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace strata::http {

struct ExplorerFile {
  std::string_view path;  // "/views/audit.js"
  std::string_view content;
};

// As embed_explorer.cmake found them, and advice.js.
const std::vector<ExplorerFile>& ExplorerFiles();

// advice.js, which is made of error_reason.proto: what a person does next, by the reason.
ExplorerFile AdviceFile();

// By the end of its name; "application/octet-stream" for what no page has.
std::string_view ContentTypeOf(std::string_view path);

// The quoted ETag of these bytes.
std::string EntityTagOf(std::string_view content);

}  // namespace strata::http
