#include "schemas/transaction/moment.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/field_checks.h"
#include "schemas/base/names.h"
#include "schemas/base/status_macros.h"
#include "schemas/versioning/one_moment.h"
#include "schemas/versioning/undecided.h"

namespace strata::transaction {
namespace {

using versioning::Head;
using versioning::StoredVersion;
using versioning::VersionMark;

// As much as goes into an answer; so no request has the server hold more.
constexpr size_t kContentBytesMax = size_t{3} << 20;

// What is seen of one document: no two of its states have the same.
struct Seen {
  int64_t incarnation = 0;
  int64_t version = 0;  // 0: none
  bool found = false;   // a version with content

  friend bool operator==(const Seen&, const Seen&) = default;
};

// One look at all documents.
//
// The position of what a snapshot shows is the greatest of: where the store stood before it was
// taken, and the commits of all that it shows. It shows these, so also all before them; and of the
// documents asked for nothing was committed between that and the snapshot's own moment, or it would
// show that.
class Look {
 public:
  // What is found goes into `found`, which is empty, in the order of the names and without them.
  Look(store::Store& store, versioning::Documents& documents, const versioning::ReadLimits& limits,
       ReadDocuments& found)
      : documents_(documents), limits_(limits), found_(found) {
    found_.position = store.LastPosition();
    reader_ = store.Snapshot();
    context_.emplace(versioning::ReadContext{*reader_, documents.capabilities(), &limits});
  }

  absl::StatusOr<std::vector<Seen>> At(const std::vector<DocumentName>& names) {
    std::vector<Seen> seen;
    seen.reserve(names.size());
    found_.documents.reserve(names.size());
    RETURN_IF_ERROR(Prefetch(names));
    for (const DocumentName& name : names) {
      if (Stopped(limits_.stopped)) return StoppedError();
      ASSIGN_OR_RETURN(seen.emplace_back(), Read(name));
      if (content_bytes_ > limits_.document_bytes_max) return versioning::TakesLong();
      if (content_bytes_ > kContentBytesMax) return TooMuch();
    }
    return seen;
  }

 private:
  void Saw(store::CommitPosition position) {
    found_.position = std::max(found_.position, position);
  }

  // Of what strategies read first of a document, where they keep heads.
  absl::Status Prefetch(const std::vector<DocumentName>& names) {
    std::vector<std::string> keys;
    std::vector<store::RecordKey> places;
    keys.reserve(names.size());
    places.reserve(names.size());
    for (const DocumentName& name : names) {
      RETURN_IF_ERROR(Find(name.collection));
      if (!collection_) continue;
      places.push_back({store::Keyspace::kHeads,
                        keys.emplace_back(store::HeadKey(collection_->incarnation, name.id))});
    }
    reader_->Prefetch(places);
    return absl::OkStatus();
  }

  absl::StatusOr<Seen> Read(const DocumentName& name) {
    RETURN_IF_ERROR(Find(name.collection));
    if (!collection_) return Seen{};
    const store::DocumentKey document{collection_->incarnation, name.id};
    absl::StatusOr<std::optional<Head>> read = collection_->strategy->ReadHead(*context_, document);
    if (!read.ok()) return std::move(read).status();
    std::optional<Head>& head = *read;
    ASSIGN_OR_RETURN(const bool visible, head ? Show(document, *head) : false);
    if (!visible) return Seen{document.incarnation};
    const Seen seen{document.incarnation, head->version.header.version, !head->version.deleted()};
    if (seen.found) Add(std::move(head->version));
    return seen;
  }

  // From now on the head's version is what readers are to see; false if there is none.
  absl::StatusOr<bool> Show(const store::DocumentKey& document, Head& head) {
    const versioning::VersionHeader& current = head.version.header;
    if (current.mark == VersionMark::kApplied) {
      // That it counts, or does not any more, has a position of its own.
      ASSIGN_OR_RETURN(const std::optional<TransactionRecord> record,
                       versioning::ReadTransaction(*reader_, current.transaction_id));
      if (record && !record->undecided()) Saw(record->position);
    }
    ASSIGN_OR_RETURN(const bool visible,
                     versioning::ShowVisible(*context_, *collection_->strategy, document, head));
    if (visible) Saw(head.version.position);
    return visible;
  }

  void Add(StoredVersion&& version) {
    content_bytes_ += version.content->size();
    ReadDocuments::Found& found = found_.documents.emplace_back();
    found.version = std::move(version);
    found.pending_transaction_id = found.version.pending_transaction_id;
  }

  // Neighbours are often of one collection, which this look reads once.
  absl::Status Find(const std::string& name) {
    if (collection_ && collection_->name == name) return absl::OkStatus();
    ASSIGN_OR_RETURN(collection_, documents_.collections().Find(*reader_, name));
    if (collection_) return absl::OkStatus();
    // If it was deleted, that has a position too.
    ASSIGN_OR_RETURN(const std::optional<store::Record> record,
                     reader_->Get(store::Keyspace::kCollections, name));
    if (record) Saw(record->position);
    return absl::OkStatus();
  }

  static absl::Status TooMuch() {
    return Error(ErrorReason::kLayoutLimit, "the documents have over " +
                                                std::to_string(kContentBytesMax) +
                                                " bytes together; ask for fewer of them")
        .With("limit", static_cast<int64_t>(kContentBytesMax));
  }

  versioning::Documents& documents_;
  const versioning::ReadLimits& limits_;
  ReadDocuments& found_;
  std::unique_ptr<store::Reader> reader_;
  std::optional<versioning::ReadContext> context_;
  versioning::CollectionPtr collection_;  // the last one; null: there was none
  size_t content_bytes_ = 0;
};

absl::Status CheckNames(const std::vector<DocumentName>& names) {
  for (size_t i = 0; i < names.size(); ++i) {
    const bool of_the_last = i > 0 && names[i].collection == names[i - 1].collection;
    const absl::Status valid =
        of_the_last ? ValidateName("id", names[i].id) : ValidateName(names[i]);
    if (!valid.ok()) return InField(valid, Element("documents", i));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ReadDocuments> ReadMoment(store::Store& store, versioning::Documents& documents,
                                         std::vector<DocumentName> names,
                                         const versioning::ReadLimits& limits) {
  RETURN_IF_ERROR(CheckNames(names));
  ReadDocuments read;
  const auto collect = [&]() -> absl::StatusOr<std::vector<Seen>> {
    read = ReadDocuments();
    return Look(store, documents, limits, read).At(names);
  };
  absl::StatusOr<std::vector<Seen>> seen =
      documents.capabilities().snapshots
          ? collect()
          : versioning::CollectOneMoment(collect, std::equal_to<Seen>());
  RETURN_IF_ERROR(seen.status());
  if (!documents.capabilities().commit_positions) read.position = 0;
  auto next = read.documents.begin();
  for (size_t i = 0; i < names.size(); ++i) {
    if ((*seen)[i].found) {
      next++->name = std::move(names[i]);
    } else {
      read.missing.push_back({std::move(names[i]), (*seen)[i].version});
    }
  }
  return read;
}

}  // namespace strata::transaction
