#include "schemas/versioning/version.h"

namespace strata::versioning {

document::Hash ContentHashOf(std::string_view salt,
                             const std::optional<document::Content>& content) {
  if (content) return document::ContentHash(salt, *content);
  return document::PartHasher().Add(salt).Finish();
}

document::Hash ChainStart(std::string_view collection, std::string_view id) {
  return document::PartHasher().Add(collection).Add(id).Finish();
}

document::Hash ChainHash(const document::Hash& previous, const VersionHeader& header) {
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
  return hasher.Finish();
}

}  // namespace strata::versioning
