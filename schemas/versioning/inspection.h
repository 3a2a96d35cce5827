// Inspecting records: what the strategies share. Internal to this folder.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/store/key_codec.h"
#include "schemas/store/store.h"
#include "schemas/versioning/record_codec.h"
#include "schemas/versioning/strategy.h"

namespace strata::versioning {

// Walks the records of versions `first` to `last` upward, whichever are there. Where scans may be
// stale, each is a point read.
//
//   RecordWalk walk(context, document, first, last);
//   while (walk.Next()) …
//   RETURN_IF_ERROR(walk.status());
class RecordWalk {
 public:
  // The context's reader and the document must outlive the walk.
  RecordWalk(const ReadContext& context, const store::DocumentKey& document, int64_t first,
             int64_t last);

  // Moves to the next record, or to the next run of versions that have none; false at the end or
  // after an error.
  bool Next();

  // What was moved to. An engine that cannot read a record ends the walk there, with the finding.
  int64_t first() const { return first_; }
  int64_t last() const { return last_; }
  const store::Record* record() const { return record_ ? &*record_ : nullptr; }
  // With the finding of what has no record.
  InspectedVersions inspected() const;

  absl::Status status() const { return status_; }

 private:
  bool NextFromCursor();
  bool NextFromPointRead();
  bool Miss(int64_t last);
  bool Fail(const absl::Status& status);

  const store::Reader& reader_;
  const store::DocumentKey& document_;
  const bool fresh_;
  const int64_t end_;
  std::unique_ptr<store::Cursor> cursor_;
  int64_t next_;
  int64_t first_ = 0;
  int64_t last_ = 0;
  std::optional<store::Record> record_;
  bool unreadable_ = false;
  absl::Status status_;
};

// A run of versions that are not stored.
InspectedVersions MissingVersions(int64_t first, int64_t last);

// Decodes the record of `version` (0: of any). Nothing, and the finding, if it is none.
std::optional<VersionRecord> InspectRecord(const store::Record& record, int64_t version,
                                           std::vector<Finding>& findings);

// Adds the finding of a version whose content is not what its header says.
void InspectContent(const StoredVersion& version, std::vector<Finding>& findings);

// Both, for a record that holds the whole version.
std::optional<VersionRecord> InspectWhole(const store::Record& record, int64_t version,
                                          std::vector<Finding>& findings);

// The greatest version that has a record in the versions keyspace; 0 for none.
absl::StatusOr<int64_t> GreatestRecord(const ReadContext& context,
                                       const store::DocumentKey& document);

// Of a strategy with heads records: the last version below the head. Where the head's record cannot
// be read, the greatest that has a record; where there is no head at all, 0: what is stored of it
// is no version.
absl::StatusOr<int64_t> LastBelowHead(const ReadContext& context,
                                      const store::DocumentKey& document, const Head* head);

// Adds the finding of records in the versions keyspace above `version`, or under keys that are no
// version's: they belong to none. (One finding for all of them; two seeks.)
absl::Status InspectOrphans(const ReadContext& context, const store::DocumentKey& document,
                            int64_t version, std::string_view problem,
                            std::vector<Finding>& findings);

// Adds the finding of a record in the heads keyspace that does not hold a head: `problem` says why.
absl::Status InspectHeadRecord(const ReadContext& context, const store::DocumentKey& document,
                               FindingKind kind, std::string_view problem,
                               std::vector<Finding>& findings);

// Adds the finding of a copy of the head in the versions keyspace; `right`: what the next plan
// would ensure there (empty: the head is damaged, nobody can say).
absl::Status InspectCopy(const ReadContext& context, const store::DocumentKey& document,
                         const Head& head, std::string right, std::vector<Finding>& findings);

// What a strategy looks at besides, in a record that could be decoded.
using RecordInspector = std::function<void(const VersionRecord& found, store::Stamp stamp,
                                           std::vector<Finding>& findings)>;

// Inspect of a strategy whose every version is one whole record of the versions keyspace.
std::unique_ptr<InspectionCursor> InspectGreatestVersions(const ReadContext& context,
                                                          const store::DocumentKey& document,
                                                          const Head* head, int64_t first,
                                                          RecordInspector also);

// Inspect of a strategy with heads records: the versions below the head, the head, and what belongs
// to no version.
class HeadedInspection : public InspectionCursor {
 public:
  HeadedInspection(const ReadContext& context, const store::DocumentKey& document, const Head* head,
                   int64_t first)
      : context_(context), document_(document), head_(head), first_(first) {}

 protected:
  const ReadContext& context() const { return context_; }
  const store::DocumentKey& document() const { return document_; }
  int64_t first() const { return first_; }
  // Whether the last item was below the head.
  bool below_head() const { return stage_ == Stage::kBelowHead; }

 private:
  enum class Stage : uint8_t { kBegin, kBelowHead, kHead, kWhole };

  absl::StatusOr<std::optional<InspectedVersions>> Produce() final;
  absl::StatusOr<std::optional<InspectedVersions>> ProduceHead();
  absl::StatusOr<std::optional<InspectedVersions>> ProduceWhole();

  // Called first; `last`: the last version below the head.
  virtual absl::Status Begin(int64_t /*last*/) { return absl::OkStatus(); }
  // The record of a version below the head, upward, and a run of versions that have none.
  virtual void InspectBelow(const store::Record& record, InspectedVersions& inspected) = 0;
  virtual void SkipMissing() {}
  // What the next plan is to store of the head; empty, and the findings, if nobody can say.
  virtual absl::StatusOr<std::string> InspectHead(const Head& head,
                                                  std::vector<Finding>& findings) = 0;

  const ReadContext context_;
  const store::DocumentKey& document_;
  const Head* const head_;
  const int64_t first_;
  Stage stage_ = Stage::kBegin;
  std::optional<RecordWalk> walk_;
};

// The end of an inspection: the findings of the document as a whole, if there are any.
std::optional<InspectedVersions> WholeDocument(std::vector<Finding> findings);

}  // namespace strata::versioning
