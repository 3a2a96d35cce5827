// One document as one reader sees it. Internal to this folder.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/names.h"
#include "schemas/document/content.h"
#include "schemas/document/filter.h"
#include "schemas/store/key_codec.h"
#include "schemas/versioning/as_of.h"
#include "schemas/versioning/collection_walk.h"
#include "schemas/versioning/strategy.h"
#include "schemas/versioning/undecided.h"

namespace strata::versioning {

// A document and its current version. What is read through stays open as long as the view lives.
class DocumentView {
 public:
  // Reads the head into `view`. The name and what the reader has open must outlive it.
  // DOCUMENT_NOT_FOUND.
  static absl::Status Open(const DocumentName& name, const CollectionReader& reader,
                           std::optional<DocumentView>& view);

  DocumentView(const DocumentName& name, const CollectionReader& reader,
               store::DocumentKey&& document, Head&& head);

  const ReadContext& context() const { return context_; }
  const Strategy& strategy() const { return strategy_; }
  const store::DocumentKey& document() const { return document_; }
  const Head& head() const { return head_; }
  int64_t newest() const { return head_.version.header.version; }
  // The current version, out of the view, as it was written.
  StoredVersion TakeNewest() { return std::move(head_.version); }
  // From now on what readers are to see as current is what TakeNewest gives, and nothing else is
  // read; false, and all is as it was, if there is none.
  absl::StatusOr<bool> ShowVisible() {
    return versioning::ShowVisible(context_, strategy_, document_, head_);
  }

  // VERSION_NOT_FOUND.
  absl::StatusOr<StoredVersion> Read(int64_t version, Part part) const;

  // The version that was current then; 0 if the document was not there yet.
  absl::StatusOr<int64_t> VersionAsOf(const AsOf& as_of) const;
  // That version, as it was written. Nothing if the document was not there. Nothing else is read
  // after one was given.
  absl::StatusOr<std::optional<StoredVersion>> TakeWrittenBy(const AsOf& as_of);
  // That version as readers are to see it: one that was undone right after it never counted, and an
  // undecided one does not yet. Nothing if the document was not there. Nothing else is read
  // after one was given.
  absl::StatusOr<std::optional<StoredVersion>> TakeAsOf(const AsOf& as_of);

 private:
  const DocumentName& name_;
  const Strategy& strategy_;
  const ReadContext& context_;
  const store::DocumentKey document_;
  Head head_;
};

// The empty content for a deletion.
const document::Content& ContentOrEmpty(const StoredVersion& version);

// A deletion has nothing that a condition could be about: it matches only the empty filter.
// CANCELLED if it is stopped.
absl::StatusOr<bool> Matches(const std::optional<document::Filter>& filter,
                             const StoredVersion& version, const StopCheck& stopped);

}  // namespace strata::versioning
