#include "schemas/versioning/version.h"

#include "schemas/base/error.h"
#include "schemas/base/names.h"
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

// The numbers are part of the chain hash.
constexpr char kFingerprintHash = 1;
constexpr char kTransactionId = 2;
constexpr char kMark = 3;

// What versions may have beyond the parts that all have.
std::string MoreOf(const VersionHeader& header) {
  std::string more;
  if (header.fingerprint_chained) {
    const document::Hash hash =
        document::PartHasher().Add(header.salt).Add(header.request_fingerprint).Finish();
    more += kFingerprintHash;
    more += document::HashBytes(hash);
  }
  if (header.mark != VersionMark::kNone) {
    more += kMark;
    more += static_cast<char>(header.mark);
  }
  if (!header.transaction_id.empty()) {
    more += kTransactionId;
    more += header.transaction_id;
  }
  return more;
}

}  // namespace

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

document::Hash ContentHashOf(std::string_view salt,
                             const std::optional<document::Content>& content) {
  if (content) return document::ContentHash(salt, *content);
  return document::PartHasher().Add(salt).Finish();
}

document::Hash ChainStart(std::string_view collection, std::string_view id) {
  return document::PartHasher().Add(collection).Add(id).Finish();
}

document::Hash ChainHash(const document::Hash& previous, const VersionHeader& header) {
  const std::string more = MoreOf(header);
  document::PartHasher hasher;
  hasher.Add(document::HashBytes(previous))
      .Add(header.version)
      .Add(static_cast<int64_t>(header.kind))
      .Add(header.commit_time)
      .Add(header.change.actor)
      .Add(header.change.on_behalf_of)
      .Add(header.change.reason)
      .Add(header.request_id);
  for (const auto& [name, value] : header.change.labels) hasher.Add(name).Add(value);
  hasher.Add(document::HashBytes(header.content_hash));
  if (!more.empty()) hasher.Add(more);
  return hasher.Finish();
}

}  // namespace strata::versioning
