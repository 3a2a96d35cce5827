#include "service/http/explorer.h"

#include <google/protobuf/descriptor.pb.h>
#include <strata/v1/error_reason.pb.h>
#include <strata/v1/options.pb.h>

#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "schemas/base/sha256.h"
#include "schemas/base/strings.h"
#include "service/http/json.h"

namespace strata::http {
namespace {

constexpr std::string_view kReasonPrefix = "ERROR_REASON_";

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

ExplorerFile AdviceFile() {
  static const auto& text = *new std::string([] {
    std::string table = "export const ADVICE = {\n";
    const auto& reasons = *v1::ErrorReason_descriptor();
    for (int i = 0; i < reasons.value_count(); ++i) {
      const std::string& advice = reasons.value(i)->options().GetExtension(v1::explorer_advice);
      if (advice.empty()) continue;
      table += reasons.value(i)->name().substr(kReasonPrefix.size()) + ": ";
      AppendJsonText(advice, table);
      table += ",\n";
    }
    return table + "};\n";
  }());
  return {"/advice.js", text};
}

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
