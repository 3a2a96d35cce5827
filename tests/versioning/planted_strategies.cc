#include "tests/versioning/planted_strategies.h"

#include <optional>
#include <utility>

#include "schemas/base/status_macros.h"
#include "schemas/document/bson_builder.h"
#include "schemas/document/delta.h"
#include "schemas/versioning/version_records.h"

namespace strata::versioning::checks {
namespace {

using store::DocumentKey;
using store::Keyspace;
using store::Write;
using store::WriteBatch;

// Versions that were all read before.
class VersionsRead final : public VersionCursor {
 public:
  explicit VersionsRead(absl::StatusOr<std::vector<StoredVersion>> versions)
      : versions_(std::move(versions)) {}

 private:
  absl::StatusOr<std::optional<StoredVersion>> Produce() override {
    RETURN_IF_ERROR(versions_.status());
    if (next_ == versions_->size()) return std::nullopt;
    return std::move((*versions_)[next_++]);
  }

  absl::StatusOr<std::vector<StoredVersion>> versions_;
  size_t next_ = 0;
};

// A right strategy, whose parts the wrong ones replace.
class Wrapper : public Strategy {
 public:
  explicit Wrapper(std::string_view inner) : inner_(FindStrategy(inner)->make(StrategyOptions())) {}

  absl::StatusOr<std::optional<Head>> ReadHead(const ReadContext& context,
                                               const DocumentKey& document) const override {
    return inner_->ReadHead(context, document);
  }
  absl::Status PrepareToPlan(const ReadContext& context, const DocumentKey& document,
                             Head& head) const override {
    return inner_->PrepareToPlan(context, document, head);
  }
  absl::StatusOr<StoredVersion> ReadVersion(const ReadContext& context, const DocumentKey& document,
                                            const Head& head, int64_t version,
                                            Part part) const override {
    return inner_->ReadVersion(context, document, head, version, part);
  }
  std::unique_ptr<VersionCursor> ScanVersions(const ReadContext& context,
                                              const DocumentKey& document, const Head& head,
                                              const VersionRange& range, Part part) const override {
    return inner_->ScanVersions(context, document, head, range, part);
  }
  std::unique_ptr<HeadCursor> ScanHeads(const ReadContext& context, int64_t incarnation,
                                        std::string_view id_prefix, std::string_view after_id,
                                        Part part) const override {
    return inner_->ScanHeads(context, incarnation, id_prefix, after_id, part);
  }
  absl::Status Plan(const DocumentKey& document, const Head* head,
                    std::span<const StoredVersion> next, store::Capabilities capabilities,
                    WriteBatch& batch) const override {
    return inner_->Plan(document, head, next, capabilities, batch);
  }
  void Confirm(const DocumentKey& document, const Head* head, WriteBatch& batch) const override {
    inner_->Confirm(document, head, batch);
  }
  std::unique_ptr<InspectionCursor> Inspect(const ReadContext& context, const DocumentKey& document,
                                            const Head* head, int64_t first,
                                            StrategyStatePtr state) const override {
    return inner_->Inspect(context, document, head, first, std::move(state));
  }

 protected:
  std::vector<Write> InnerPlan(const DocumentKey& document, const Head* head,
                               std::span<const StoredVersion> next) const {
    WriteBatch batch;
    inner_->Plan(document, head, next, store::Capabilities(), batch).IgnoreError();
    return batch.writes();
  }

  static void Add(const Write& write, WriteBatch& batch) {
    batch.Put(write.keyspace, "", "") = write;
  }

 private:
  const std::unique_ptr<Strategy> inner_;
};

class CurrentFirst final : public Wrapper {
 public:
  CurrentFirst() : Wrapper("shadow-collection") {}
  absl::Status Plan(const DocumentKey& document, const Head* head,
                    std::span<const StoredVersion> next, store::Capabilities /*capabilities*/,
                    WriteBatch& batch) const override {
    const std::vector<Write> writes = InnerPlan(document, head, next);
    Add(writes.back(), batch);
    batch.MarkCommitPoint();
    for (size_t i = 0; i + 1 < writes.size(); ++i) Add(writes[i], batch);
    return absl::OkStatus();
  }
};

// The copies under another guard.
class OtherGuard final : public Wrapper {
 public:
  explicit OtherGuard(store::Guard guard) : Wrapper("shadow-collection"), guard_(guard) {}
  absl::Status Plan(const DocumentKey& document, const Head* head,
                    std::span<const StoredVersion> next, store::Capabilities /*capabilities*/,
                    WriteBatch& batch) const override {
    for (Write write : InnerPlan(document, head, next)) {
      if (write.guard == store::Guard::kEnsure) write.guard = guard_;
      Add(write, batch);
    }
    return absl::OkStatus();
  }

 private:
  const store::Guard guard_;
};

struct Orphan final : StrategyState {
  explicit Orphan(store::Stamp orphan_stamp) : stamp(orphan_stamp) {}
  const store::Stamp stamp;
};

class OrphanCleaner final : public Wrapper {
 public:
  OrphanCleaner() : Wrapper("shadow-collection") {}
  absl::Status PrepareToPlan(const ReadContext& context, const DocumentKey& document,
                             Head& head) const override {
    const int64_t version = head.version.header.version;
    ASSIGN_OR_RETURN(std::optional<store::Record> orphan,
                     context.reader.Get(Keyspace::kVersions, store::VersionKey(document, version)));
    if (orphan) head.state = std::make_shared<const Orphan>(orphan->stamp);
    return absl::OkStatus();
  }
  absl::Status Plan(const DocumentKey& document, const Head* head,
                    std::span<const StoredVersion> next, store::Capabilities /*capabilities*/,
                    WriteBatch& batch) const override {
    if (head != nullptr && head->state != nullptr) {
      batch.DeleteIf(Keyspace::kVersions, store::VersionKey(document, head->version.header.version),
                     static_cast<const Orphan&>(*head->state).stamp);
    }
    for (const Write& write : InnerPlan(document, head, next)) Add(write, batch);
    return absl::OkStatus();
  }
};

// `current: true` stands for "done".
class DoneMark final : public Wrapper {
 public:
  DoneMark() : Wrapper("shadow-collection") {}
  absl::StatusOr<StoredVersion> ReadVersion(const ReadContext& context, const DocumentKey& document,
                                            const Head& head, int64_t version,
                                            Part part) const override {
    if (version == head.version.header.version) return AnswerFromHead(head, part);
    ASSIGN_OR_RETURN(const std::optional<store::Record> record,
                     context.reader.Get(Keyspace::kVersions, store::VersionKey(document, version)));
    if (!record) return CorruptVersion(version, "is missing");
    ASSIGN_OR_RETURN(VersionRecord found,
                     DecodeExpected(record->value, record->position, part, version));
    if (!found.current) return CorruptVersion(version, "is not done");
    return std::move(found.version);
  }
  absl::Status Plan(const DocumentKey& document, const Head* head,
                    std::span<const StoredVersion> next, store::Capabilities /*capabilities*/,
                    WriteBatch& batch) const override {
    for (const Write& write : InnerPlan(document, head, next)) Add(write, batch);
    batch.MarkCommitPoint();
    if (head == nullptr) return absl::OkStatus();
    document::BsonBuilder done;
    AppendHeader(head->version.header, head->version.position, done);
    done.Bool("current", true);
    if (head->version.content) done.Document("content", head->version.content->bytes());
    batch.Put(Keyspace::kVersions, store::VersionKey(document, head->version.header.version),
              done.Take());
    return absl::OkStatus();
  }
};

class ReadUnequal final : public Wrapper {
 public:
  ReadUnequal() : Wrapper("shadow-collection") {}
  std::unique_ptr<VersionCursor> ScanVersions(const ReadContext& context,
                                              const DocumentKey& document, const Head& head,
                                              const VersionRange& range, Part part) const override {
    if (range.last == head.version.header.version) {
      return std::make_unique<VersionsRead>(ReadAll(context, document, head, range, part));
    }
    return Wrapper::ScanVersions(context, document, head, range, part);
  }

 private:
  static absl::StatusOr<std::vector<StoredVersion>> ReadAll(const ReadContext& context,
                                                            const DocumentKey& document,
                                                            const Head& head,
                                                            const VersionRange& range, Part part) {
    std::vector<StoredVersion> versions;
    if (range.newest_first) versions.push_back(AnswerFromHead(head, part));
    std::string end = store::PrefixEnd(store::HeadKey(document));
    const auto cursor =
        context.reader.Scan(Keyspace::kVersions, {.begin = store::VersionKey(document, range.first),
                                                  .end = std::move(end),
                                                  .reverse = range.newest_first});
    for (; cursor->Valid(); cursor->Next()) {
      ASSIGN_OR_RETURN(VersionRecord record,
                       DecodeVersion(cursor->value(), cursor->position(), part));
      if (record.version.header.version == head.version.header.version) continue;
      versions.push_back(std::move(record.version));
    }
    if (!range.newest_first) versions.push_back(AnswerFromHead(head, part));
    return versions;
  }
};

class ReverseDeltas final : public Wrapper {
 public:
  ReverseDeltas() : Wrapper("shadow-collection") {}
  absl::StatusOr<StoredVersion> ReadVersion(const ReadContext& context, const DocumentKey& document,
                                            const Head& head, int64_t version,
                                            Part part) const override {
    StoredVersion at = head.version;
    for (int64_t below = at.header.version - 1; below >= version; --below) {
      ASSIGN_OR_RETURN(const std::optional<store::Record> stored,
                       context.reader.Get(Keyspace::kVersions, store::VersionKey(document, below)));
      if (!stored) return CorruptVersion(below, "is missing");
      ASSIGN_OR_RETURN(VersionRecord record,
                       DecodeExpected(stored->value, stored->position, Part::kContent, below));
      if (!record.delta.empty()) {
        ASSIGN_OR_RETURN(record.version.content, document::ApplyDelta(*at.content, record.delta));
      }
      at = std::move(record.version);
    }
    if (part == Part::kHeader) at.content.reset();
    return at;
  }
  std::unique_ptr<VersionCursor> ScanVersions(const ReadContext& context,
                                              const DocumentKey& document, const Head& head,
                                              const VersionRange& range, Part part) const override {
    return std::make_unique<VersionsRead>(ReadAll(context, document, head, range, part));
  }
  absl::Status Plan(const DocumentKey& document, const Head* head,
                    std::span<const StoredVersion> next, store::Capabilities /*capabilities*/,
                    WriteBatch& batch) const override {
    if (head != nullptr) EnsureBackward(document, head->version, next[0], batch);
    for (size_t i = 0; i + 1 < next.size(); ++i) {
      EnsureBackward(document, next[i], next[i + 1], batch);
    }
    WriteHead(document, head, EncodeVersion(next.back()), batch);
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<std::vector<StoredVersion>> ReadAll(const ReadContext& context,
                                                     const DocumentKey& document, const Head& head,
                                                     const VersionRange& range, Part part) const {
    std::vector<StoredVersion> versions;
    for (int64_t i = range.first; i <= range.last; ++i) {
      const int64_t number = range.newest_first ? range.last - (i - range.first) : i;
      ASSIGN_OR_RETURN(StoredVersion version, ReadVersion(context, document, head, number, part));
      versions.push_back(std::move(version));
    }
    return versions;
  }

  static void EnsureBackward(const DocumentKey& document, const StoredVersion& version,
                             const StoredVersion& successor, WriteBatch& batch) {
    document::BsonBuilder record;
    AppendHeader(version.header, version.position, record);
    if (version.content && successor.content) {
      record.Document("delta", document::EncodeDelta(*successor.content, *version.content));
    } else if (version.content) {
      record.Document("content", version.content->bytes());
    }
    batch.Ensure(Keyspace::kVersions, store::VersionKey(document, version.header.version),
                 record.Take());
  }
};

class ClearFlagFirst final : public Wrapper {
 public:
  ClearFlagFirst() : Wrapper("current-flag") {}
  absl::Status Plan(const DocumentKey& document, const Head* head,
                    std::span<const StoredVersion> next, store::Capabilities /*capabilities*/,
                    WriteBatch& batch) const override {
    const std::vector<Write> writes = InnerPlan(document, head, next);
    for (const bool clears : {true, false}) {
      for (const Write& write : writes) {
        if ((write.guard == store::Guard::kStamp) == clears) Add(write, batch);
      }
    }
    return absl::OkStatus();
  }
};

class ConfirmNothing final : public Wrapper {
 public:
  ConfirmNothing() : Wrapper("shadow-collection") {}
  void Confirm(const DocumentKey& /*document*/, const Head* /*head*/,
               WriteBatch& /*batch*/) const override {}
};

class ConfirmOwnRecord final : public Wrapper {
 public:
  ConfirmOwnRecord() : Wrapper("full-copies") {}
  void Confirm(const DocumentKey& document, const Head* head, WriteBatch& batch) const override {
    if (head == nullptr) return ConfirmNoNextVersion(document, head, batch);
    batch.Check(Keyspace::kVersions, store::VersionKey(document, head->version.header.version),
                head->stamp);
  }
};

class ConfirmNoCopy final : public Wrapper {
 public:
  ConfirmNoCopy() : Wrapper("shadow-collection") {}
  void Confirm(const DocumentKey& document, const Head* head, WriteBatch& batch) const override {
    ConfirmHeadRecord(document, head, batch);
    if (head == nullptr) return;
    batch.CheckAbsent(Keyspace::kVersions,
                      store::VersionKey(document, head->version.header.version));
  }
};

template <typename Planted, typename TheSubject = StrategySubject, typename... Arguments>
std::unique_ptr<StrategySubject> Make(Arguments... arguments) {
  return std::make_unique<TheSubject>(std::make_unique<Planted>(arguments...), 1);
}

}  // namespace

std::unique_ptr<StrategySubject> MakeCurrentFirst() { return Make<CurrentFirst>(); }
std::unique_ptr<StrategySubject> MakeInsertForEnsure() {
  return Make<OtherGuard>(store::Guard::kAbsent);
}
std::unique_ptr<StrategySubject> MakeOrphanCleaner() { return Make<OrphanCleaner>(); }
std::unique_ptr<StrategySubject> MakeDoneMark() { return Make<DoneMark>(); }
std::unique_ptr<StrategySubject> MakeUnconditionalOverwrite() {
  return Make<OtherGuard>(store::Guard::kAny);
}
std::unique_ptr<StrategySubject> MakeReadUnequal() { return Make<ReadUnequal>(); }
std::unique_ptr<StrategySubject> MakeReverseDeltas() { return Make<ReverseDeltas>(); }
std::unique_ptr<StrategySubject> MakeConfirmNothing() { return Make<ConfirmNothing>(); }
std::unique_ptr<StrategySubject> MakeConfirmOwnRecord() { return Make<ConfirmOwnRecord>(); }
std::unique_ptr<StrategySubject> MakeConfirmNoCopy() { return Make<ConfirmNoCopy>(); }
std::unique_ptr<StrategySubject> MakeClearFlagFirst() {
  return Make<ClearFlagFirst, FlaggedSubject>();
}

}  // namespace strata::versioning::checks
