#include "service/http/explorer.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "schemas/base/sha256.h"
#include "schemas/base/strings.h"

namespace strata::http {
namespace {

// Of the hash, in hexadecimal digits: two versions of a file never meet by chance.
constexpr size_t kTagDigits = 32;

constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
    {".html", "text/html; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".svg", "image/svg+xml"},
    {".png", "image/png"},
    {".ico", "image/x-icon"},
    {".json", "application/json"},
    {".woff2", "font/woff2"},
};

}  // namespace

std::string_view ContentTypeOf(std::string_view path) {
  for (const auto& [ending, type] : kTypes) {
    if (path.ends_with(ending)) return type;
  }
  return "application/octet-stream";
}

std::string EntityTagOf(std::string_view content) {
  const Hash hash = Sha256().Update(content).Finish();
  return '"' + absl::BytesToHexString(ToAbsl(HashBytes(hash))).substr(0, kTagDigits) + '"';
}

}  // namespace strata::http
