// DELTAS: the current version whole, the previous ones as what changed. Choice 4 of the article
// "How to Track Versions with MongoDB" (askasya.com, 2014).
//
//   heads    (id)    = version, with
//                        delta: document        from the version before to this one; absent for
//                                               the first version, a deletion, the one after a
//                                               deletion, and where it says little less than the
//                                               content
//                        chain_length: int64    deltas stored in a row right below this version
//                        chain_bytes: int64     … and their size; both absent: 0
//   versions (id, v) = keyframe | delta
//     keyframe       = version                  (of a deletion: without content)
//     delta          = version without content, with `delta` and `chain_length`, 0 too (absent:
//                      an early build wrote it)
//
// When the head is superseded it is stored as a keyframe if it has no delta, if keyframe_interval-1
// deltas stand below it, or if the deltas since the last keyframe would outgrow its content; else
// as its delta. All that the choice needs stands in the head's record, so every writer that read
// this head writes the same bytes: that is what makes `ensure` right, and `put`. Version n costs
// one keyframe and at most keyframe_interval-1 deltas, no more bytes of them than of content.
//
// Deltas lead forward, from the older version to the newer. Reverse deltas are wrong: the record of
// a version would depend on its successor, and a late writer that lost its race would store the
// delta to a version that never was.
//
// Order of writes, crash and recovery are SHADOW_COLLECTION's: ensure the coded copy of the head
// that was read, then replace the head (commit point). A crash between them leaves a copy of the
// version that is still current; readers read the head first and then only what is below it, and
// the next update finds its `ensure` done. With atomic batches the copy is put instead, for
// SHADOW_COLLECTION's reasons.
//
// A reconstructed content is checked against its version's content hash before it is answered with:
// damage in any record of its chain is refused, not served.
//
// The article: "Fetch 1: TBD/Hard; fetch many: TBD/Hard; update: Medium; recover if fail: N/A".
// Here the current version is one read, and so are many of them.

#include <optional>
#include <utility>

#include "schemas/base/status_macros.h"
#include "schemas/document/bson_builder.h"
#include "schemas/document/delta.h"
#include "schemas/versioning/delta_chain.h"
#include "schemas/versioning/inspection.h"
#include "schemas/versioning/link_inspector.h"
#include "schemas/versioning/strategy.h"
#include "schemas/versioning/version_records.h"

namespace strata::versioning {
namespace {

using document::Content;
using store::DocumentKey;
using store::Keyspace;

constexpr StrategyOption kKeyframeInterval{.name = "keyframe_interval",
                                           .least = 1,
                                           .most = kKeyframeIntervalMax,
                                           .default_value = 16,
                                           .meaning = "one of this many versions is stored whole"};

// The delta from `base` to `next`; empty where there is to be none.
std::string DeltaBetween(const StoredVersion& base, const StoredVersion& next) {
  if (!base.content || !next.content) return "";
  std::string delta = document::EncodeDelta(*base.content, *next.content);
  // The head holds it beside the content, and no two so large follow each other below: of two
  // versions one would be whole anyhow. So one that is nearly as large costs more than it saves.
  if (delta.size() > next.content->size() * 2 / 3) return "";
  return delta;
}

bool IsKeyframe(const CodedVersion& coded, int64_t keyframe_interval) {
  return coded.delta.empty() || coded.chain_length + 1 >= keyframe_interval ||
         coded.chain_bytes + coded.delta_bytes() >
             static_cast<int64_t>(coded.version->content->size());
}

// `next` as it stands on top of `base`, which it supersedes.
CodedVersion Successor(const CodedVersion& base, const StoredVersion& next,
                       int64_t keyframe_interval) {
  CodedVersion coded{&next, DeltaBetween(*base.version, next), 0, 0};
  if (coded.delta.empty() || IsKeyframe(base, keyframe_interval)) return coded;
  coded.chain_length = base.chain_length + 1;
  coded.chain_bytes = base.chain_bytes + base.delta_bytes();
  return coded;
}

std::string EncodeHead(const CodedVersion& coded) {
  const std::optional<Content>& content = coded.version->content;
  document::BsonBuilder builder(kHeaderBytes + coded.delta.size() +
                                (content ? content->size() : 0));
  AppendHeader(coded.version->header, coded.version->position, builder);
  if (!coded.delta.empty()) builder.Document("delta", coded.delta);
  if (coded.chain_length != 0) {
    builder.Int64("chain_length", coded.chain_length).Int64("chain_bytes", coded.chain_bytes);
  }
  if (content) builder.Document("content", content->bytes());
  return builder.Take();
}

std::string EncodeSuperseded(const CodedVersion& coded, int64_t keyframe_interval) {
  if (IsKeyframe(coded, keyframe_interval)) return EncodeVersion(*coded.version);
  document::BsonBuilder builder(kHeaderBytes + coded.delta.size());
  AppendHeader(coded.version->header, coded.version->position, builder);
  builder.Int64("chain_length", coded.chain_length).Document("delta", coded.delta);
  return builder.Take();
}

absl::StatusOr<CodedVersion> DecodeCoded(const Head& head) {
  ASSIGN_OR_RETURN(const RecordBody body, DecodeBody(head.record));
  return CodedVersion{&head.version, std::string(body.delta.Of(head.record)),
                      body.chain_length.value_or(0), body.chain_bytes};
}

class DeltaHeaders final : public VersionsAndHead {
 public:
  DeltaHeaders(const ReadContext& context, const DocumentKey& document, const Head& head,
               const VersionRange& range)
      : VersionsAndHead(head, range, Part::kHeader), walk_(context, document, below()) {}

 private:
  absl::StatusOr<std::optional<StoredVersion>> ProduceBelow() override {
    if (!walk_.Next()) return walk_.status();
    absl::StatusOr<VersionRecord> record =
        DecodeExpected(walk_.bytes(), walk_.position(), Part::kHeader, walk_.version());
    if (!record.ok()) return record.status();
    return std::move(record->version);
  }

  VersionWalk walk_;
};

// Contents, newest first: chain by chain.
class DeltasDownward final : public VersionsAndHead {
 public:
  DeltasDownward(const ReadContext& context, const DocumentKey& document, const Head& head,
                 const VersionRange& range)
      : VersionsAndHead(head, range, Part::kContent),
        context_(context),
        document_(document),
        left_(below()),
        wanted_(range.wanted > 0 ? range.wanted : left_.last - left_.first + 1) {}

 private:
  absl::StatusOr<std::optional<StoredVersion>> ProduceBelow() override {
    if (index_ == 0) RETURN_IF_ERROR(ReadNextChain());
    return chain_->At(--index_);
  }

  absl::Status ReadNextChain() {
    if (chain_) {
      wanted_ -= left_.last - chain_->first() + 1;
      left_.last = chain_->first() - 1;
      chain_.reset();
    }
    ASSIGN_OR_RETURN(chain_, ReadChain(context_, document_, left_, wanted_));
    index_ = chain_->size();
    return absl::OkStatus();
  }

  const ReadContext context_;
  const DocumentKey& document_;
  VersionRange left_;  // without the chains before this one
  int64_t wanted_;     // … of it
  std::optional<DeltaChain> chain_;
  size_t index_ = 0;  // of the last version given
};

// Contents, oldest first: each from the one before.
class DeltasUpward final : public VersionsAndHead {
 public:
  DeltasUpward(const ReadContext& context, const DocumentKey& document, const Head& head,
               const VersionRange& range)
      : VersionsAndHead(head, range, Part::kContent), context_(context), document_(document) {}

 private:
  absl::StatusOr<std::optional<StoredVersion>> ProduceBelow() override {
    if (!walk_) {
      walk_.emplace(context_, document_,
                    VersionRange{.first = below().first + 1, .last = below().last});
      ASSIGN_OR_RETURN(StoredVersion first, ReadRebuilt(context_, document_, below().first));
      content_ = first.content;
      return first;
    }
    if (!walk_->Next()) return walk_->status();
    const int64_t version = walk_->version();
    ASSIGN_OR_RETURN(VersionRecord record,
                     DecodeExpected(walk_->bytes(), walk_->position(), Part::kContent, version));
    StoredVersion& next = record.version;
    const bool whole = next.content.has_value() || next.deleted();
    if (whole != record.delta.empty() || (next.deleted() && next.content)) {
      return NeitherKeyframeNorDelta(version);
    }
    if (!whole) {
      ASSIGN_OR_RETURN(next.content, Rebuild(content_, record.delta, version));
      RETURN_IF_ERROR(CheckRebuilt(*next.content, next.header));
    }
    content_ = next.content;
    return std::move(next);
  }

  const ReadContext context_;
  const DocumentKey& document_;
  std::optional<VersionWalk> walk_;
  std::optional<Content> content_;  // of the version before
};

// Each version stands on the content of the one before, which goes from inspection to inspection:
// replaying the chain at each would cost its length squared.
class DeltaInspection final : public HeadedInspection {
 public:
  DeltaInspection(const ReadContext& context, const DocumentKey& document, const Head* head,
                  int64_t first, StrategyStatePtr state, int64_t keyframe_interval)
      : HeadedInspection(context, document, head, first),
        state_(std::move(state)),
        keyframe_interval_(keyframe_interval) {}

  // What becomes of the head's record when it is superseded, nobody knows before: after the head
  // nothing is known.
  StrategyStatePtr state() const override {
    return below_head() ? std::make_shared<const LinkInspector>(links_) : nullptr;
  }

 private:
  absl::Status Begin(int64_t last) override {
    if (state_ != nullptr) {
      links_ = static_cast<const LinkInspector&>(*state_);
    } else if (first() <= last + 1) {
      return links_.Begin(context(), document(), first());
    }
    return absl::OkStatus();
  }

  void InspectBelow(const store::Record& record, InspectedVersions& inspected) override {
    links_.Inspect(record, inspected);
  }

  void SkipMissing() override { links_.Break(); }

  absl::StatusOr<std::string> InspectHead(const Head& head,
                                          std::vector<Finding>& findings) override {
    ASSIGN_OR_RETURN(const CodedVersion coded, DecodeCoded(head));
    if (!links_.InspectHead(coded, findings)) return "";
    return EncodeSuperseded(coded, keyframe_interval_);
  }

  const StrategyStatePtr state_;
  const int64_t keyframe_interval_;
  LinkInspector links_;
};

class Deltas final : public Strategy {
 public:
  explicit Deltas(int64_t keyframe_interval) : keyframe_interval_(keyframe_interval) {}

  absl::StatusOr<std::optional<Head>> ReadHead(const ReadContext& context,
                                               const DocumentKey& document) const override {
    return ReadHeadRecord(context, document, DecodeWholeHead);
  }

  absl::StatusOr<StoredVersion> ReadVersion(const ReadContext& context, const DocumentKey& document,
                                            const Head& head, int64_t version,
                                            Part part) const override {
    if (version == head.version.header.version) return AnswerFromHead(head, part);
    // Headers stand whole in every record.
    if (part == Part::kHeader) return ReadWholeVersion(context, document, head, version, part);
    return ReadRebuilt(context, document, version);
  }

  std::unique_ptr<VersionCursor> ScanVersions(const ReadContext& context,
                                              const DocumentKey& document, const Head& head,
                                              const VersionRange& range, Part part) const override {
    if (part == Part::kHeader) {
      return std::make_unique<DeltaHeaders>(context, document, head, range);
    }
    if (range.newest_first) {
      return std::make_unique<DeltasDownward>(context, document, head, range);
    }
    return std::make_unique<DeltasUpward>(context, document, head, range);
  }

  std::unique_ptr<HeadCursor> ScanHeads(const ReadContext& context, int64_t incarnation,
                                        std::string_view id_prefix, std::string_view after_id,
                                        Part part) const override {
    return ScanHeadRecords(context, incarnation, id_prefix, after_id, part, DecodeWholeHead);
  }

  absl::Status Plan(const DocumentKey& document, const Head* head,
                    std::span<const StoredVersion> next, store::Capabilities capabilities,
                    store::WriteBatch& batch) const override {
    CodedVersion newest{&next.front(), "", 0, 0};
    if (head != nullptr) {
      ASSIGN_OR_RETURN(const CodedVersion superseded, DecodeCoded(*head));
      SetAsideCoded(document, superseded, capabilities, batch);
      newest = Successor(superseded, next.front(), keyframe_interval_);
    }
    for (const StoredVersion& version : next.subspan(1)) {
      SetAsideCoded(document, newest, capabilities, batch);
      newest = Successor(newest, version, keyframe_interval_);
    }
    WriteHead(document, head, EncodeHead(newest), batch);
    return absl::OkStatus();
  }

  void Confirm(const DocumentKey& document, const Head* head,
               store::WriteBatch& batch) const override {
    ConfirmHeadRecord(document, head, batch);
  }

  std::unique_ptr<InspectionCursor> Inspect(const ReadContext& context, const DocumentKey& document,
                                            const Head* head, int64_t first,
                                            StrategyStatePtr state) const override {
    return std::make_unique<DeltaInspection>(context, document, head, first, std::move(state),
                                             keyframe_interval_);
  }

 private:
  void SetAsideCoded(const DocumentKey& document, const CodedVersion& coded,
                     store::Capabilities capabilities, store::WriteBatch& batch) const {
    SetAside(Keyspace::kVersions, store::VersionKey(document, coded.version->header.version),
             EncodeSuperseded(coded, keyframe_interval_), capabilities, batch);
  }

  const int64_t keyframe_interval_;
};

}  // namespace

StrategyEntry DescribeDeltas(int32_t id, std::string_view name) {
  return {id,
          name,
          {&kKeyframeInterval, 1},
          [](const StrategyOptions& options) -> std::unique_ptr<Strategy> {
            return std::make_unique<Deltas>(ValueOf(options, kKeyframeInterval));
          }};
}

}  // namespace strata::versioning
