#include "schemas/versioning/document_view.h"

#include <utility>

#include "schemas/base/status_macros.h"
#include "schemas/versioning/document_errors.h"

namespace strata::versioning {

absl::Status DocumentView::Open(const DocumentName& name, const CollectionReader& reader,
                                std::optional<DocumentView>& view) {
  const Collection& collection = reader.collection();
  store::DocumentKey document{collection.incarnation, name.id};
  absl::StatusOr<std::optional<Head>> head =
      collection.strategy->ReadHead(reader.context(), document);
  if (!head.ok()) return std::move(head).status();
  if (!*head) return DocumentNotFound(name);
  view.emplace(name, reader, std::move(document), **std::move(head));
  return absl::OkStatus();
}

DocumentView::DocumentView(const DocumentName& name, const CollectionReader& reader,
                           store::DocumentKey&& document, Head&& head)
    : name_(name),
      strategy_(*reader.collection().strategy),
      context_(reader.context()),
      document_(std::move(document)),
      head_(std::move(head)) {}

absl::StatusOr<StoredVersion> DocumentView::Read(int64_t version, Part part) const {
  if (version < 1 || version > newest()) return VersionNotFound(name_, version, newest());
  return strategy_.ReadVersion(context_, document_, head_, version, part);
}

// Neither times nor positions ever go back from version to version, so a binary search finds it.
absl::StatusOr<int64_t> DocumentView::VersionAsOf(const AsOf& as_of) const {
  if (as_of.Covers(head_.version)) return newest();
  if (context_.limits != nullptr && !context_.limits->searches) return TakesLong();
  int64_t low = 0;          // there by then
  int64_t high = newest();  // later
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    ASSIGN_OR_RETURN(const StoredVersion version, Read(middle, Part::kHeader));
    (as_of.Covers(version) ? low : high) = middle;
  }
  return low;
}

absl::StatusOr<std::optional<StoredVersion>> DocumentView::TakeWrittenBy(const AsOf& as_of) {
  ASSIGN_OR_RETURN(const int64_t number, VersionAsOf(as_of));
  if (number == 0) return std::nullopt;
  if (number == newest()) return TakeNewest();
  return Read(number, Part::kContent);
}

absl::StatusOr<std::optional<StoredVersion>> DocumentView::TakeAsOf(const AsOf& as_of) {
  ASSIGN_OR_RETURN(const int64_t number, VersionAsOf(as_of));
  if (number == 0) return std::nullopt;
  if (number == newest()) {
    ASSIGN_OR_RETURN(const bool visible, ShowVisible());
    if (!visible) return std::nullopt;
    return TakeNewest();
  }
  ASSIGN_OR_RETURN(StoredVersion version, Read(number, Part::kContent));
  if (version.header.mark != VersionMark::kApplied) return version;
  ASSIGN_OR_RETURN(const StoredVersion next, Read(number + 1, Part::kHeader));
  if (!IsUndoneBy(version.header, next.header)) return version;
  if (number == 1) return std::nullopt;
  return Read(number - 1, Part::kContent);
}

const document::Content& ContentOrEmpty(const StoredVersion& version) {
  static const auto* const empty = new document::Content();
  return version.content ? *version.content : *empty;
}

absl::StatusOr<bool> Matches(const std::optional<document::Filter>& filter,
                             const StoredVersion& version, const StopCheck& stopped) {
  if (!filter || filter->empty()) return true;
  if (!version.content) return false;
  return filter->Matches(*version.content, stopped);
}

}  // namespace strata::versioning
