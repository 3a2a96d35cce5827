#include "schemas/base/names.h"

#include <algorithm>
#include <cstdint>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/utf8.h"

namespace strata {
namespace {

absl::Status ValidateToken(const std::string& field, std::string_view token, size_t bytes_max) {
  const bool printable =
      std::all_of(token.begin(), token.end(), [](char byte) { return byte > 0x20 && byte < 0x7F; });
  if (printable && token.size() <= bytes_max) return absl::OkStatus();
  return Error(ErrorReason::kInvalidField, field + " must be 1 to " + std::to_string(bytes_max) +
                                               " bytes of printable ASCII without spaces")
      .With("field", field)
      .With("limit", static_cast<int64_t>(bytes_max));
}

// As most names are: of ASCII, and nothing that has to be looked at closer.
bool IsPlain(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char byte) { return byte >= 0x20 && byte < 0x7F; });
}

}  // namespace

absl::Status ValidateName(std::string_view field, std::string_view name) {
  const auto invalid = [&](const std::string& problem) {
    return Error(ErrorReason::kInvalidName, std::string(field) + problem)
        .With("field", field)
        .With("limit", static_cast<int64_t>(kNameBytesMax))
        .ToStatus();
  };
  if (name.empty()) {
    return invalid(" is empty, but has to have 1 to " + std::to_string(kNameBytesMax) + " bytes");
  }
  if (name.size() > kNameBytesMax) {
    return invalid(" has " + std::to_string(name.size()) + " bytes, at most " +
                   std::to_string(kNameBytesMax) + " are allowed");
  }
  if (IsPlain(name)) return absl::OkStatus();
  if (!IsUtf8(name)) {
    return invalid(" is not UTF-8");
  }
  for (size_t i = 0; i < name.size(); ++i) {
    const auto byte = static_cast<uint8_t>(name[i]);
    const bool c1 = byte == 0xC2 && i + 1 < name.size() && static_cast<uint8_t>(name[i + 1]) < 0xA0;
    if (byte < 0x20 || byte == 0x7F || c1) {
      return invalid(" holds a control character at byte " + std::to_string(i) +
                     "; names are UTF-8 without any");
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateName(const DocumentName& name) {
  RETURN_IF_ERROR(ValidateName("collection", name.collection));
  return ValidateName("id", name.id);
}

absl::Status ValidateRequestId(std::string_view request_id) {
  return ValidateToken("request_id", request_id, kRequestIdBytesMax);
}

absl::Status ValidateTransactionId(std::string_view transaction_id) {
  return ValidateToken("transaction_id", transaction_id, kTransactionIdBytesMax);
}

}  // namespace strata
