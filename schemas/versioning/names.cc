#include "schemas/versioning/names.h"

#include <algorithm>
#include <cstdint>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/utf8.h"
#include "schemas/versioning/newer.h"

namespace strata::versioning {
namespace {

// `subject` is what an error says of the text, if it is not the field itself.
absl::Status ValidateText(std::string_view field, std::string_view text, size_t bytes_max,
                          std::string_view subject = {}) {
  if (subject.empty()) subject = field;
  if (text.size() > bytes_max) {
    return Error(ErrorReason::kInvalidField, std::string(subject) + " has " +
                                                 std::to_string(text.size()) + " bytes, at most " +
                                                 std::to_string(bytes_max) + " are allowed")
        .With("field", field)
        .With("limit", static_cast<int64_t>(bytes_max));
  }
  if (!IsUtf8(text) || text.find('\0') != text.npos) {
    return Error(ErrorReason::kInvalidField,
                 std::string(subject) + " is not UTF-8, or holds a zero byte")
        .With("field", field);
  }
  return absl::OkStatus();
}

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

absl::Status ValidateChange(const ChangeInfo& change) {
  RETURN_IF_ERROR(ValidateText("change.actor", change.actor, kNameBytesMax));
  RETURN_IF_ERROR(ValidateText("change.on_behalf_of", change.on_behalf_of, kNameBytesMax));
  RETURN_IF_ERROR(ValidateText("change.reason", change.reason, kReasonBytesMax));
  if (change.labels.size() > kLabelsMax) {
    return Error(ErrorReason::kInvalidField,
                 "change.labels has " + std::to_string(change.labels.size()) +
                     " entries, at most " + std::to_string(kLabelsMax) + " are allowed")
        .With("field", "change.labels")
        .With("limit", static_cast<int64_t>(kLabelsMax));
  }
  for (const auto& [name, value] : change.labels) {
    if (name.empty()) {
      return Error(ErrorReason::kInvalidField, "change.labels has an entry without a name")
          .With("field", "change.labels");
    }
    RETURN_IF_ERROR(
        ValidateText("change.labels", name, kLabelNameBytesMax, "a name in change.labels"));
    if (name.starts_with(kNewerLabelPrefix)) {
      return Error(ErrorReason::kInvalidField,
                   "change.labels has \"" + name + "\"; names that begin with \"" +
                       std::string(kNewerLabelPrefix) + "\" are those of the server's own labels")
          .With("field", "change.labels");
    }
    RETURN_IF_ERROR(
        ValidateText("change.labels", value, kNameBytesMax, "change.labels[\"" + name + "\"]"));
  }
  return absl::OkStatus();
}

absl::Status ValidateRequestId(std::string_view request_id) {
  return ValidateToken("request_id", request_id, kRequestIdBytesMax);
}

absl::Status ValidateTransactionId(std::string_view transaction_id) {
  return ValidateToken("transaction_id", transaction_id, kTransactionIdBytesMax);
}

}  // namespace strata::versioning
