// What names and ids may be. The domain checks them, once, where a request enters it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace strata {

struct DocumentName {
  std::string collection;
  std::string id;

  friend bool operator==(const DocumentName&, const DocumentName&) = default;
};

inline constexpr size_t kNameBytesMax = 256;
inline constexpr size_t kReasonBytesMax = 1024;
inline constexpr size_t kLabelsMax = 32;
inline constexpr size_t kLabelNameBytesMax = 128;
inline constexpr size_t kRequestIdBytesMax = 128;
// A request's id, what distinguishes its caller ("@" and 16 digits), and what distinguishes its
// later attempts: "/2", "/3", …
inline constexpr size_t kTransactionIdBytesMax = kRequestIdBytesMax + 17 + 12;

// INVALID_NAME or INVALID_FIELD, whose metadata "field" says which part of the request is wrong.

// Of a collection, a document or a class: 1 to kNameBytesMax bytes of UTF-8 without control
// characters.
absl::Status ValidateName(std::string_view field, std::string_view name);
// `collection` and `id`.
absl::Status ValidateName(const DocumentName& name);

// Up to kRequestIdBytesMax bytes of printable ASCII without spaces; empty: there is none.
absl::Status ValidateRequestId(std::string_view request_id);
// The same of up to kTransactionIdBytesMax bytes.
absl::Status ValidateTransactionId(std::string_view transaction_id);

}  // namespace strata
