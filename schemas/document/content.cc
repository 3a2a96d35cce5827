// The content of a document: validation, limits, equality of meaning.
#include "schemas/document/content.h"

#include "schemas/base/status_macros.h"
#include "schemas/document/bson_check.h"
#include "schemas/document/bson_view.h"
#include "schemas/document/content_error.h"
#include "schemas/document/meaning.h"

namespace strata::document {
Content::Content() : bytes_(kEmptyDocument) {}

absl::StatusOr<Content> Content::FromBson(std::string bytes, const Limits& limits) {
  if (bytes.size() > limits.bytes_max) {
    return TooLargeError("BSON", bytes.size(), limits.bytes_max);
  }
  RETURN_IF_ERROR(CheckBson(bytes, limits));
  Content content = FromTrusted(std::move(bytes));
  RETURN_IF_ERROR(CheckSizes(content, limits));
  return content;
}

Content Content::FromTrusted(std::string bytes) {
  Bytes whole(std::move(bytes));
  const std::string_view part = whole;
  return {std::move(whole), part};
}

Content Content::FromTrusted(Bytes whole, std::string_view part) {
  return {std::move(whole), part};
}

absl::Status CheckLimits(const Content& content, const Limits& limits) {
  RETURN_IF_ERROR(CheckSizes(content, limits));
  return CheckBson(content.bytes(), limits);
}

bool SameMeaning(const Content& a, const Content& b) {
  if (a == b) return true;
  return SameMeaning(kBsonObject, a.bytes(), kBsonObject, b.bytes());
}

}  // namespace strata::document
