#include "schemas/feed/contents.h"

#include <algorithm>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"

namespace strata::feed {
namespace {

using versioning::StoredVersion;

// A scan that would pass over more versions than this begins anew behind them.
constexpr int64_t kPassedMax = 8;

}  // namespace

Contents::Contents(store::Store& store, versioning::Collections& collections, StopCheck stopped,
                   bool with_before)
    : store_(store),
      collections_(collections),
      limits_{std::move(stopped)},
      with_before_(with_before) {}

void Contents::Expect(const Entry& entry) {
  Expected& document = documents_[Key{entry.incarnation, entry.id}];
  document.last = entry.header.version;
  ++document.expected;
}

absl::StatusOr<std::optional<Contents::Pair>> Contents::Read(const Entry& entry) {
  const auto found = documents_.find(Key{entry.incarnation, entry.id});
  Expected& document = found->second;
  absl::StatusOr<std::optional<Pair>> pair = ReadOf(entry, document);
  if (!pair.ok()) {
    if (!IsSwept(entry, pair.status())) return pair;
    // What is asked for next of the document is looked for anew, and finds nothing either.
    document.versions.reset();
    document.newest.reset();
    document.head.reset();
    pair = std::nullopt;
  }
  if (--document.expected == 0) documents_.erase(found);
  return pair;
}

absl::StatusOr<std::optional<Contents::Pair>> Contents::ReadOf(const Entry& entry,
                                                               Expected& document) {
  ASSIGN_OR_RETURN(const bool there, Open(entry, document));
  if (!there) return std::nullopt;
  const int64_t version = entry.header.version;
  Pair pair;
  if (with_before_ && version > 1) {
    RETURN_IF_ERROR(MoveTo(version - 1, document));
    pair.before = document.newest->content;
  }
  RETURN_IF_ERROR(MoveTo(version, document));
  pair.version = *document.newest;
  return pair;
}

// Without snapshots records may be missing because their collection was deleted after it was found,
// and is being swept.
bool Contents::IsSwept(const Entry& entry, const absl::Status& failure) {
  const bool may_be =
      failure.code() == absl::StatusCode::kDataLoss && !store_.capabilities().snapshots;
  if (!may_be) return false;
  const auto now = collections_.Find(store_, entry.collection);
  return now.ok() && (!*now || (*now)->incarnation != entry.incarnation);
}

// Finds the collection and the head, if that has not been done; false if they are gone.
absl::StatusOr<bool> Contents::Open(const Entry& entry, Expected& document) {
  if (document.head) return true;
  if (reader_ == nullptr) {
    reader_ = store_.Snapshot();
    context_.emplace(versioning::ReadContext{*reader_, store_.capabilities(), &limits_});
  }
  ASSIGN_OR_RETURN(document.collection, collections_.Find(*reader_, entry.collection));
  if (!document.collection || document.collection->incarnation != entry.incarnation) return false;
  document.key = {entry.incarnation, entry.id};
  ASSIGN_OR_RETURN(document.head, document.collection->strategy->ReadHead(*context_, document.key));
  if (!document.head || document.head->version.header.version < document.last) {
    return Error(ErrorReason::kRecordCorrupt, "the ledger names a version that is not stored")
        .With("collection", entry.collection)
        .With("id", entry.id)
        .With("version", document.last);
  }
  return true;
}

absl::Status Contents::MoveTo(int64_t version, Expected& document) {
  const int64_t at = document.newest ? document.newest->header.version : 0;
  if (at == version) return absl::OkStatus();
  if (document.versions == nullptr || version - at > kPassedMax) {
    document.versions = document.collection->strategy->ScanVersions(
        *context_, document.key, *document.head, {version, document.last, false, 0},
        versioning::Part::kContent);
  }
  do {
    if (!document.versions->Next()) {
      RETURN_IF_ERROR(document.versions->status());
      return Error(ErrorReason::kRecordCorrupt, "the ledger names a version that is not stored")
          .With("id", document.key.id)
          .With("version", version);
    }
    document.newest = std::move(document.versions->item());
  } while (document.newest->header.version < version);
  return absl::OkStatus();
}

}  // namespace strata::feed
