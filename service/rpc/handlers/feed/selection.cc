#include "service/rpc/handlers/feed/selection.h"

#include <algorithm>

#include "schemas/base/status_macros.h"
#include "service/rpc/resources.h"

namespace strata::rpc::feed_service {
namespace {

using Names = google::protobuf::RepeatedPtrField<std::string>;

constexpr size_t kIdBytesMax = 256;

absl::Status CheckCollections(const Names& collections) {
  RETURN_IF_ERROR(CheckLength("collections", collections, kWatchedCollectionsMax));
  for (int i = 0; i < collections.size(); ++i) {
    RETURN_IF_ERROR(ValidateName(Element("collections", static_cast<size_t>(i)), collections[i]));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<feed::Selection> ToSelection(const Names& collections, const std::string& id_prefix,
                                            const google::protobuf::RepeatedField<int>& kinds) {
  RETURN_IF_ERROR(CheckCollections(collections));
  feed::Selection selection;
  auto& wanted = selection.collections;
  wanted.assign(collections.begin(), collections.end());
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  if (!id_prefix.empty() && wanted.size() != 1) {
    return FieldError("id_prefix", "needs exactly one collection, and " +
                                       std::to_string(wanted.size()) + " are named");
  }
  if (id_prefix.size() > kIdBytesMax) {
    return FieldError("id_prefix", "has " + std::to_string(id_prefix.size()) +
                                       " bytes, and ids have at most 256");
  }
  selection.id_prefix = id_prefix;
  constexpr int kKinds = wire::VersionKind_ARRAYSIZE - 1;
  RETURN_IF_ERROR(CheckLength("kinds", kinds, kKinds));
  for (int i = 0; i < kinds.size(); ++i) {
    if (kinds[i] == wire::VERSION_KIND_UNSPECIFIED || !wire::VersionKind_IsValid(kinds[i])) {
      return FieldError(Element("kinds", static_cast<size_t>(i)),
                        "is no kind of version; leave kinds out for all of them");
    }
    selection.kinds.push_back(static_cast<versioning::VersionKind>(kinds[i]));
  }
  std::sort(selection.kinds.begin(), selection.kinds.end());
  selection.kinds.erase(std::unique(selection.kinds.begin(), selection.kinds.end()),
                        selection.kinds.end());
  return selection;
}

absl::Status CheckPosition(std::string_view field, int64_t position) {
  if (position >= 0) return absl::OkStatus();
  return FieldError(field, "is " + std::to_string(position) + ", but has to be 0 or more");
}

}  // namespace strata::rpc::feed_service
