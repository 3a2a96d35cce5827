// How an error about content names the member that is at fault.
#include "schemas/document/content_error.h"

#include "absl/strings/str_cat.h"
#include "schemas/base/strings.h"
#include "schemas/base/utf8.h"
#include "schemas/document/path.h"

namespace strata::document {

std::string ShownPath(std::string_view pointer) {
  const std::string_view shown = CutUtf8(pointer, kShownPathMax);
  std::string text(shown);
  if (shown.size() < pointer.size()) text += "…";
  return text;
}

// False once the pointer is complete.
bool Trail::AppendPointer(const Level* level, std::string& pointer) {
  if (level == nullptr) return true;
  if (!AppendPointer(level->parent_, pointer)) return false;
  switch (level->place_) {
    case Level::Place::kSelf:
      return true;
    case Level::Place::kElement:
      absl::StrAppend(&pointer, "/", level->index_);
      break;
    case Level::Place::kMember:
      if (!IsUtf8(level->name_)) return false;
      AppendSegment(level->name_, pointer);
  }
  return pointer.size() <= kShownPathMax;
}

std::string Trail::Pointer() const {
  std::string pointer;
  AppendPointer(innermost_, pointer);
  return ShownPath(pointer);
}

Error ContentError(std::string_view pointer, std::string_view problem, std::string_view advice,
                   std::string_view whole) {
  std::string message;
  if (pointer.empty()) {
    absl::StrAppend(&message, ToAbsl(whole), " ");
  } else {
    absl::StrAppend(&message, "member \"", ToAbsl(pointer), "\" ");
  }
  absl::StrAppend(&message, ToAbsl(problem));
  if (!advice.empty()) absl::StrAppend(&message, "; ", ToAbsl(advice));
  return Error(ErrorReason::kInvalidContent, message)
      .With("path", pointer)
      .With("problem", problem);
}

Error TooLargeError(std::string_view encoding, size_t actual, size_t limit) {
  return Error(ErrorReason::kDocumentTooLarge,
               absl::StrCat("the content has ", actual, " bytes as ", ToAbsl(encoding),
                            ", and the limit is ", limit,
                            "; split the document, or keep its large parts elsewhere and store "
                            "references to them"))
      .With("size", static_cast<int64_t>(actual))
      .With("limit", static_cast<int64_t>(limit));
}

}  // namespace strata::document
