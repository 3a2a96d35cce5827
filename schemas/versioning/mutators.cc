#include "schemas/versioning/mutators.h"

#include <optional>
#include <utility>

#include "schemas/base/status_macros.h"
#include "schemas/versioning/document_errors.h"
#include "schemas/versioning/read_limits.h"

namespace strata::versioning {
namespace {

// The document as it stands.
Mutation StaleMutation(const CurrentState& current) {
  Mutation mutation{current.live() ? VersionKind::kUpdated : VersionKind::kDeleted,
                    current.version->content};
  mutation.stale = true;
  return mutation;
}

}  // namespace

Mutator CreateMutator(DocumentName name, document::Content content) {
  return [name = std::move(name),
          content = std::move(content)](const CurrentState& current) -> absl::StatusOr<Mutation> {
    if (current.live()) return DocumentExists(name, current.version->header.version);
    return Mutation{VersionKind::kCreated, content};
  };
}

Mutator UpdateMutator(DocumentName name, NewContent new_content, bool allow_missing,
                      const document::Limits& limits) {
  return [name = std::move(name), new_content = std::move(new_content), allow_missing,
          limits](const CurrentState& current) -> absl::StatusOr<Mutation> {
    if (!current.live() && !allow_missing) return NotLive(name, current.version);
    const VersionKind kind = current.live() ? VersionKind::kUpdated : VersionKind::kCreated;
    if (const auto* const content = std::get_if<document::Content>(&new_content)) {
      return Mutation{kind, *content};
    }
    const auto& patch = std::get<document::Patch>(new_content);
    const auto base = current.live() ? *current.version->content : document::Content();
    if (current.brief && WorkBytes(patch, base.size()) > kBriefPatchBytesMax) return TakesLong();
    ASSIGN_OR_RETURN(document::Content patched, ApplyPatch(base, patch, limits));
    return Mutation{kind, std::move(patched)};
  };
}

Mutator DeleteMutator(DocumentName name) {
  return [name = std::move(name)](const CurrentState& current) -> absl::StatusOr<Mutation> {
    if (!current.live()) return NotLive(name, current.version);
    return Mutation{VersionKind::kDeleted, std::nullopt};
  };
}

Mutator NewerUpdateMutator(DocumentName name, Newer newer, Mutator update,
                           const document::Limits& limits) {
  return [name = std::move(name), newer = std::move(newer), update = std::move(update),
          limits](const CurrentState& current) -> absl::StatusOr<Mutation> {
    ASSIGN_OR_RETURN(const bool stale, IsStale(name, newer, current));
    if (stale) return StaleMutation(current);
    ASSIGN_OR_RETURN(Mutation mutation, update(current));
    if (current.brief && mutation.content->size() > kBriefDocumentBytesMax) return TakesLong();
    ASSIGN_OR_RETURN(mutation.content, WithNumber(*mutation.content, newer, limits));
    return mutation;
  };
}

Mutator NewerDeleteMutator(DocumentName name, Newer newer) {
  return [name = std::move(name),
          newer = std::move(newer)](const CurrentState& current) -> absl::StatusOr<Mutation> {
    ASSIGN_OR_RETURN(const bool stale, IsStale(name, newer, current));
    if (stale) return StaleMutation(current);
    Mutation deletion{VersionKind::kDeleted, std::nullopt};
    deletion.labels.emplace(newer.Label(), newer.LabelValue());
    return deletion;
  };
}

Mutator RestoreMutator(DocumentName name, int64_t version) {
  return
      [name = std::move(name), version](const CurrentState& current) -> absl::StatusOr<Mutation> {
        if (current.version == nullptr) return DocumentNotFound(name);
        const int64_t newest = current.version->header.version;
        if (version < 1 || version > newest) return VersionNotFound(name, version, newest);
        ASSIGN_OR_RETURN(StoredVersion old, current.read(version));
        if (old.deleted()) return DocumentDeleted(name, version);
        return Mutation{VersionKind::kRestored, std::move(old.content)};
      };
}

}  // namespace strata::versioning
