// Reading versions out of the versions and heads keyspaces: what the strategies share. Internal to
// this folder.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/store/key_codec.h"
#include "schemas/store/store.h"
#include "schemas/versioning/record_codec.h"
#include "schemas/versioning/strategy.h"
#include "schemas/versioning/version.h"

namespace strata::versioning {

// RECORD_CORRUPT about one version; `problem` as in "version 7 is missing".
absl::Status CorruptVersion(int64_t version, std::string_view problem);

// DecodeVersion of the record that must hold `version`: RECORD_CORRUPT if it holds another.
absl::StatusOr<VersionRecord> DecodeExpected(std::string_view bytes,
                                             store::CommitPosition record_position, Part part,
                                             int64_t version);

// DecodeExpected for the layouts whose records hold the whole version: RECORD_CORRUPT besides for a
// version without content that is no deletion, or the other way round (where content is read).
absl::StatusOr<StoredVersion> DecodeWhole(std::string_view bytes,
                                          store::CommitPosition record_position, Part part,
                                          int64_t version);
// The same of a whole record, whose bytes the content shares.
absl::StatusOr<StoredVersion> DecodeWhole(const store::Record& record, Part part, int64_t version);

// The head's version, or its header.
StoredVersion AnswerFromHead(const Head& head, Part part);

// Walks the records of versions that must all be there, in either direction: a cursor over the
// versions keyspace, and a point read for each version that it skips, because a scan may be stale.
//
//   VersionWalk walk(context, document, range);
//   while (walk.Next()) …
//   return walk.status();
class VersionWalk {
 public:
  enum class Source : uint8_t { kCursor, kPointReads };  // the latter for walks of one or two moves

  // The context's reader and the document must outlive the walk. A range whose first is greater
  // than its last is empty. Reads nothing before the first Next.
  VersionWalk(const ReadContext& context, const store::DocumentKey& document,
              const VersionRange& range, Source source = Source::kCursor);

  // Moves to the next version; false at the end of the range, or after an error (see status()).
  bool Next();

  // Of the record moved to; the bytes live until Next.
  int64_t version() const { return version_; }
  std::string_view bytes() const { return bytes_; }
  store::CommitPosition position() const { return position_; }

  // That record, out of the walk.
  store::Record TakeRecord();

  // RECORD_CORRUPT if a version is missing; what the reader failed with.
  absl::Status status() const { return status_; }

 private:
  void Begin();
  bool NextFromCursor();
  bool NextFromPointRead();

  const store::Reader& reader_;
  const store::DocumentKey& document_;
  const VersionRange range_;
  bool begun_;  // or there is no cursor to make
  int64_t version_;
  std::string key_;
  std::unique_ptr<store::Cursor> cursor_;  // null: point reads only
  bool cursor_used_ = false;               // the bytes are the cursor's; it moves on at Next
  std::optional<store::Record> record_;    // the bytes' owner otherwise
  std::string_view bytes_;
  store::CommitPosition position_ = 0;
  absl::Status status_;
};

// The parts of a strategy whose every version is one whole record of the versions keyspace
// (FULL_COPIES, CURRENT_FLAG): the head is the greatest version, found by scan and, where scans may
// be stale, confirmed upward by point reads until one finds nothing.
absl::StatusOr<std::optional<Head>> ReadGreatestVersion(const ReadContext& context,
                                                        const store::DocumentKey& document);
std::unique_ptr<HeadCursor> ScanGreatestVersions(const ReadContext& context, int64_t incarnation,
                                                 std::string_view id_prefix,
                                                 std::string_view after_id, Part part);

// Reads the version of a record of the heads keyspace into `version`.
using HeadDecoder = absl::Status (*)(const store::Record& record, Part part,
                                     StoredVersion& version);

// The parts of a strategy that keeps one record for each document in the heads keyspace.
absl::StatusOr<std::optional<Head>> ReadHeadRecord(const ReadContext& context,
                                                   const store::DocumentKey& document,
                                                   HeadDecoder decode);
std::unique_ptr<HeadCursor> ScanHeadRecords(const ReadContext& context, int64_t incarnation,
                                            std::string_view id_prefix, std::string_view after_id,
                                            Part part, HeadDecoder decode);

// Writes a record of what a version told as long as it was the current one: the version itself, or
// that its request made it. Where batches are not atomic, a late writer may come long after
// that: what is there says the same, or is newer, and is left. Where they are, a late writer's
// batch is refused as a whole, so nobody asks what is there: a search for a key that is absent asks
// a filter of each file, and an update would cost the more the more versions are stored.
store::Write& SetAside(store::Keyspace keyspace, std::string key, std::string record,
                       store::Capabilities capabilities, store::WriteBatch& batch);

// Writes the head's record, over `head` (null: as the document's first), as the commit point.
void WriteHead(const store::DocumentKey& document, const Head* head, std::string record,
               store::WriteBatch& batch);

// The parts of Strategy::Confirm: there is no version after the head's; the head's record is the
// one that was read.
void ConfirmNoNextVersion(const store::DocumentKey& document, const Head* head,
                          store::WriteBatch& batch);
void ConfirmHeadRecord(const store::DocumentKey& document, const Head* head,
                       store::WriteBatch& batch);

// Of heads whose record is a whole version.
absl::Status DecodeWholeHead(const store::Record& record, Part part, StoredVersion& version);

// The parts of a strategy whose superseded versions are whole records of the versions keyspace.
absl::StatusOr<StoredVersion> ReadWholeVersion(const ReadContext& context,
                                               const store::DocumentKey& document, const Head& head,
                                               int64_t version, Part part);
std::unique_ptr<VersionCursor> ScanWholeVersions(const ReadContext& context,
                                                 const store::DocumentKey& document,
                                                 const Head& head, const VersionRange& range,
                                                 Part part);

// The versions of `range`: the head's version is taken from the head, those below it from where the
// strategy keeps them.
class VersionsAndHead : public VersionCursor {
 protected:
  VersionsAndHead(const Head& head, const VersionRange& range, Part part);

  const Head& head() const { return head_; }
  Part part() const { return part_; }
  // That of `range` which lies below the head; may be empty.
  const VersionRange& below() const { return below_; }

 private:
  absl::StatusOr<std::optional<StoredVersion>> Produce() final;
  // The next of below(), in its direction, never nothing. Called once for each of them.
  virtual absl::StatusOr<std::optional<StoredVersion>> ProduceBelow() = 0;

  const Head& head_;
  const Part part_;
  VersionRange below_;
  int64_t left_below_;
  bool head_left_;
};

}  // namespace strata::versioning
