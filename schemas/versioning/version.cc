#include "schemas/versioning/version.h"

#include "schemas/base/field_checks.h"
#include "schemas/base/names.h"
#include "schemas/base/status_macros.h"
#include "schemas/versioning/newer.h"

namespace strata::versioning {
namespace {

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
  const std::string labels = "change.labels";
  RETURN_IF_ERROR(CheckText("change.actor", change.actor, kNameBytesMax));
  RETURN_IF_ERROR(CheckText("change.on_behalf_of", change.on_behalf_of, kNameBytesMax));
  RETURN_IF_ERROR(CheckText("change.reason", change.reason, kReasonBytesMax));
  RETURN_IF_ERROR(CheckCount(labels, change.labels.size(), kLabelsMax, "entries"));
  for (const auto& [name, value] : change.labels) {
    if (name.empty()) return FieldError(labels, "has an entry without a name");
    RETURN_IF_ERROR(CheckText(labels, name, kLabelNameBytesMax, "a name in change.labels"));
    if (name.starts_with(kNewerLabelPrefix)) {
      return FieldError(labels, "has \"" + name + "\"; names that begin with \"" +
                                    std::string(kNewerLabelPrefix) +
                                    "\" are those of the server's own labels");
    }
    RETURN_IF_ERROR(CheckText(labels, value, kNameBytesMax, labels + "[\"" + name + "\"]"));
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
