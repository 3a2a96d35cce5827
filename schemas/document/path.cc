// JSON Pointers: parsing and printing.
#include "schemas/document/path.h"

#include <charconv>

#include "absl/strings/str_cat.h"
#include "schemas/base/error.h"
#include "schemas/base/strings.h"
#include "schemas/base/utf8.h"
#include "schemas/document/content_error.h"

namespace strata::document {
namespace {

absl::Status PathError(std::string_view text, std::string_view problem) {
  const bool printable = IsUtf8(text) && text.find('\0') == std::string_view::npos;
  const std::string shown = printable ? ShownPath(text) : std::string();
  std::string message = "the path ";
  if (printable) absl::StrAppend(&message, "\"", shown, "\" ");
  absl::StrAppend(&message, ToAbsl(problem));
  return Error(ErrorReason::kInvalidPath, message).With("path", shown);
}

}  // namespace

absl::StatusOr<Path> Path::Parse(std::string_view text) {
  if (!IsUtf8(text)) return PathError(text, "is not UTF-8; a path is JSON Pointer text in UTF-8");
  if (text.find('\0') != std::string_view::npos) {
    return PathError(text, "contains a zero byte, which no member name can");
  }
  Path path;
  if (text.empty()) return path;
  if (text[0] != '/') {
    return PathError(text,
                     "does not begin with \"/\"; paths are JSON Pointers (RFC 6901), such as "
                     "\"/address/city\" or \"/tags/0\"");
  }
  std::string segment;
  for (size_t i = 1; i <= text.size(); ++i) {
    if (i == text.size() || text[i] == '/') {
      if (path.segments_.size() == kSegmentsMax) {
        return PathError(text, absl::StrCat("has more than ", kSegmentsMax,
                                            " segments; documents are not that deep"));
      }
      path.segments_.push_back(std::move(segment));
      segment.clear();
    } else if (text[i] != '~') {
      segment.push_back(text[i]);
    } else if (i + 1 < text.size() && (text[i + 1] == '0' || text[i + 1] == '1')) {
      segment.push_back(text[++i] == '0' ? '~' : '/');
    } else {
      return PathError(text,
                       "has a \"~\" that is not part of \"~0\" (which stands for \"~\") or "
                       "\"~1\" (which stands for \"/\")");
    }
  }
  return path;
}

std::string Path::ToString() const {
  std::string text;
  for (const std::string& segment : segments_) AppendSegment(segment, text);
  return text;
}

int ArrayIndex(std::string_view segment) {
  if (segment.empty() || segment[0] < '0' || segment[0] > '9') return -1;
  if (segment.size() > 1 && segment[0] == '0') return -1;
  int index = 0;
  const char* const end = segment.data() + segment.size();
  const std::from_chars_result result = std::from_chars(segment.data(), end, index);
  return result.ec == std::errc() && result.ptr == end ? index : -1;
}

void AppendSegment(std::string_view segment, std::string& pointer) {
  pointer.push_back('/');
  for (const char c : segment) {
    if (c == '~') {
      pointer += "~0";
    } else if (c == '/') {
      pointer += "~1";
    } else {
      pointer.push_back(c);
    }
  }
}

}  // namespace strata::document
