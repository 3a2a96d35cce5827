// DELTAS, the article's choice 4: the current version whole, the previous ones as what changed.
//
//   heads    (id)    = version, with
//                        delta: document        from the version before to this one; absent for
//                                               the first version, a deletion, the one behind a
//                                               deletion, and where it would outgrow the content
//                        chain_length: int64    deltas stored in a row right below this version
//                        chain_bytes: int64     … and their size; both absent: 0
//   versions (id, v) = keyframe | delta
//     keyframe       = version                  (of a deletion: without content)
//     delta          = version without content, with `delta` and `chain_length`, 0 too (absent:
//                      stored by format 2)
//
// When the head is superseded it is stored as a keyframe if it has no delta, if keyframe_interval-1
// deltas stand below it, or if the deltas since the last keyframe would outgrow its content; else
// as its delta. All that the choice needs stands in the head's record, so every writer that read
// this head writes the same bytes: that is what makes `ensure` right. Version n costs one keyframe
// and at most keyframe_interval-1 deltas, no more bytes of them than of content.
//
// Deltas lead forward, from the older version to the newer. Reverse deltas are wrong: the record of
// a version would depend on its successor, and a late writer that lost its race would store the
// delta to a version that never was.
//
// Order of writes, crash and recovery are SHADOW_COLLECTION's: ensure the coded copy of the head
// that was read, then replace the head (commit point). A crash between them leaves a copy of the
// version that is still current; readers read the head first and then only what is below it, and
// the next update finds its `ensure` done.
//
// A reconstructed content is checked against its version's content hash before it is answered with:
// damage in any record of its chain is refused, not served.
//
// The article: "Fetch 1: TBD/Hard; fetch many: TBD/Hard; update: Medium; recover if fail: N/A".
// Here the current version is one read, and so are many of them.

#include "schemas/document/delta.h"

#include <algorithm>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/versioning/inspection.h"
#include "schemas/versioning/strategy.h"
#include "schemas/versioning/version_records.h"

namespace strata::versioning {
namespace {

using document::Content;
using store::DocumentKey;
using store::Keyspace;

// Contents that a walk downward holds at once.
constexpr size_t kContentsMax = 32;

// Records that are read one by one at less cost than a cursor is made for them.
constexpr int64_t kPointReadsMax = 3;

// Bytes of records that are read ahead, before it is known how many of them are asked for.
constexpr size_t kChainBytesMax = size_t{1} << 20;

// A version as the head's record has it.
struct Coded {
  const StoredVersion* version = nullptr;
  std::string delta;  // empty: none
  int64_t chain_length = 0;
  int64_t chain_bytes = 0;

  int64_t delta_bytes() const { return static_cast<int64_t>(delta.size()); }
};

// The delta from `base` to `next`; empty where there is to be none.
std::string DeltaBetween(const StoredVersion& base, const StoredVersion& next) {
  if (!base.content || !next.content) return "";
  std::string delta = document::EncodeDelta(*base.content, *next.content);
  if (delta.size() > next.content->size()) return "";
  return delta;
}

bool IsKeyframe(const Coded& coded, int64_t keyframe_interval) {
  return coded.delta.empty() || coded.chain_length + 1 >= keyframe_interval ||
         coded.chain_bytes + coded.delta_bytes() >
             static_cast<int64_t>(coded.version->content->size());
}

// `next` as it stands on top of `base`, which it supersedes.
Coded Successor(const Coded& base, const StoredVersion& next, int64_t keyframe_interval) {
  Coded coded{&next, DeltaBetween(*base.version, next), 0, 0};
  if (coded.delta.empty() || IsKeyframe(base, keyframe_interval)) return coded;
  coded.chain_length = base.chain_length + 1;
  coded.chain_bytes = base.chain_bytes + base.delta_bytes();
  return coded;
}

std::string EncodeHead(const Coded& coded) {
  const std::optional<Content>& content = coded.version->content;
  BsonBuilder builder(kHeaderBytes + coded.delta.size() + (content ? content->size() : 0));
  AppendHeader(coded.version->header, coded.version->position, builder);
  if (!coded.delta.empty()) builder.Document("delta", coded.delta);
  if (coded.chain_length != 0) {
    builder.Int64("chain_length", coded.chain_length).Int64("chain_bytes", coded.chain_bytes);
  }
  if (content) builder.Document("content", content->bytes());
  return builder.Take();
}

std::string EncodeSuperseded(const Coded& coded, int64_t keyframe_interval) {
  if (IsKeyframe(coded, keyframe_interval)) return EncodeVersion(*coded.version);
  BsonBuilder builder(kHeaderBytes + coded.delta.size());
  AppendHeader(coded.version->header, coded.version->position, builder);
  builder.Int64("chain_length", coded.chain_length).Document("delta", coded.delta);
  return builder.Take();
}

absl::StatusOr<Coded> DecodeCoded(const Head& head) {
  ASSIGN_OR_RETURN(const RecordBody body, DecodeBody(head.record));
  return Coded{&head.version, std::string(body.delta.Of(head.record)),
               body.chain_length.value_or(0), body.chain_bytes};
}

absl::Status NeitherNor(int64_t version) {
  return CorruptVersion(version, "is neither a keyframe nor a delta");
}

absl::Status NotRebuilt(int64_t version) {
  return CorruptVersion(version, "cannot be rebuilt from its deltas");
}

// The content of `version`, which its delta makes from `base`.
absl::StatusOr<Content> Apply(const std::optional<Content>& base, std::string_view delta,
                              int64_t version) {
  if (!base) return CorruptVersion(version, "is a delta without a base");
  absl::StatusOr<Content> content = document::ApplyDelta(*base, delta);
  if (!content.ok()) return NotRebuilt(version);
  return content;
}

absl::Status CheckRebuilt(const Content& content, const VersionHeader& header) {
  if (ContentHashOf(header.salt, content) == header.content_hash) return absl::OkStatus();
  return NotRebuilt(header.version);
}

// One record of the versions keyspace: a keyframe, a deletion or a delta. Its header is decoded
// where it is asked for: most links are only there to rebuild others.
struct Link {
  store::Record record;
  RecordBody body;

  bool whole() const { return body.delta.size == 0; }
  std::string_view delta() const { return body.delta.Of(record.value); }
};

absl::StatusOr<Link> TakeLink(VersionWalk& walk) {
  ASSIGN_OR_RETURN(const RecordBody body, DecodeBody(walk.bytes()));
  if (body.delta.size != 0 && body.content.size != 0) return NeitherNor(walk.version());
  return Link{walk.TakeRecord(), body};
}

// Successive versions from a keyframe (or a deletion) upward, rebuilt on demand. There may be more
// keyframes among them.
class Chain {
 public:
  // Goes down with `walk`, which stands on the chain's top, to the next keyframe.
  static absl::StatusOr<Chain> GatherDownward(VersionWalk& walk) {
    Chain chain;
    for (;;) {
      ASSIGN_OR_RETURN(Link link, TakeLink(walk));
      chain.links_.push_back(std::move(link));
      if (chain.links_.back().whole()) break;
      if (!walk.Next()) {
        RETURN_IF_ERROR(walk.status());
        return CorruptVersion(walk.version() + 1, "is a delta without a base");
      }
    }
    std::reverse(chain.links_.begin(), chain.links_.end());
    chain.first_ = walk.version();
    return chain;
  }

  // The versions of `range`, which begins with a keyframe, and `top` above them if that is given;
  // nothing if they take more than kChainBytesMax.
  static absl::StatusOr<std::optional<Chain>> GatherUpward(const ReadContext& context,
                                                           const DocumentKey& document,
                                                           const VersionRange& range,
                                                           std::optional<Link> top) {
    const int64_t count = range.last - range.first + 1;
    VersionWalk walk(
        context, document, range,
        count > kPointReadsMax ? VersionWalk::Source::kCursor : VersionWalk::Source::kPointReads);
    Chain chain;
    chain.first_ = range.first;
    chain.links_.reserve(static_cast<size_t>(count) + 1);
    size_t bytes = 0;
    while (walk.Next()) {
      bytes += walk.bytes().size();
      if (bytes > kChainBytesMax) return std::nullopt;
      ASSIGN_OR_RETURN(Link link, TakeLink(walk));
      chain.links_.push_back(std::move(link));
    }
    RETURN_IF_ERROR(walk.status());
    if (top) chain.links_.push_back(*std::move(top));
    if (!chain.links_.front().whole()) return CorruptVersion(range.first, "is no keyframe");
    return chain;
  }

  size_t size() const { return links_.size(); }
  int64_t first() const { return first_; }
  int64_t delta_bytes() const {
    int64_t bytes = 0;
    for (const Link& link : links_) bytes += static_cast<int64_t>(link.delta().size());
    return bytes;
  }

  // RECORD_CORRUPT if any of its records is no version record, those that At does not read
  // included.
  absl::Status CheckRecords() const {
    for (size_t i = 0; i < size(); ++i) RETURN_IF_ERROR(DecodeHeader(i).status());
    return absl::OkStatus();
  }

  // The version `index` places above the first. Only its own content is held against a hash: it is
  // what is read, and it comes out wrong if anything below it is.
  absl::StatusOr<StoredVersion> At(size_t index) {
    if (index < begin_ || index >= begin_ + contents_.size()) RETURN_IF_ERROR(Fill(index));
    const Link& link = links_[index];
    ASSIGN_OR_RETURN(VersionRecord record, DecodeExpected(link.record.value, link.record.position,
                                                          Part::kHeader, VersionOf(index)));
    StoredVersion version = std::move(record.version);
    version.content = contents_[index - begin_];
    if (version.content.has_value() == version.deleted()) return NeitherNor(VersionOf(index));
    if (!link.whole()) RETURN_IF_ERROR(CheckRebuilt(*version.content, version.header));
    return version;
  }

 private:
  int64_t VersionOf(size_t index) const { return first_ + static_cast<int64_t>(index); }

  absl::StatusOr<StoredVersion> DecodeHeader(size_t index) const {
    const store::Record& record = links_[index].record;
    ASSIGN_OR_RETURN(VersionRecord decoded, DecodeExpected(record.value, record.position,
                                                           Part::kHeader, VersionOf(index)));
    return std::move(decoded.version);
  }

  std::optional<Content> WholeContent(size_t index) const {
    const Link& link = links_[index];
    if (link.body.content.size == 0) return std::nullopt;
    return Content::FromTrusted(std::string(link.body.content.Of(link.record.value)));
  }

  // Rebuilds the block of contents that `index` is in, and the one in front of each block once, so
  // that a walk downward through a long chain rebuilds each content twice at most.
  absl::Status Fill(size_t index) {
    const size_t block = index / kContentsMax;
    if (below_blocks_.empty()) below_blocks_.push_back(std::nullopt);
    while (below_blocks_.size() <= block) {
      RETURN_IF_ERROR(FillBlock(below_blocks_.size() - 1, kContentsMax));
      below_blocks_.push_back(contents_.back());
    }
    return FillBlock(block, index % kContentsMax + 1);
  }

  // Rebuilds the first `count` contents of a block.
  absl::Status FillBlock(size_t block, size_t count) {
    begin_ = block * kContentsMax;
    contents_.clear();
    std::optional<Content> content = below_blocks_[block];
    for (size_t i = begin_; i < begin_ + count; ++i) {
      if (links_[i].whole()) {
        content = WholeContent(i);
      } else {
        ASSIGN_OR_RETURN(content, Apply(content, links_[i].delta(), VersionOf(i)));
      }
      contents_.push_back(content);
    }
    return absl::OkStatus();
  }

  int64_t first_ = 0;
  std::vector<Link> links_;  // upward
  size_t begin_ = 0;         // the index of the first content below
  std::vector<std::optional<Content>> contents_;
  // The content right below each block; none below the first.
  std::vector<std::optional<Content>> below_blocks_;
};

VersionRange Downward(int64_t last) { return {.first = 1, .last = last, .newest_first = true}; }

// The keyframe below (or at) `version`, as its record counts; nothing if it does not.
std::optional<int64_t> KeyframeOf(int64_t version, const Link& link) {
  if (link.whole()) return version;
  const int64_t deltas = link.body.chain_length.value_or(-1);  // between the keyframe and this one
  if (deltas < 0 || deltas >= kKeyframeIntervalMax || deltas > version - 2) return std::nullopt;
  return version - 1 - deltas;
}

// The chain whose top is version `range.last` and which holds what of the range will be visited,
// read upward: a cursor goes that way at half the cost. Nothing if the records do not tell where to
// begin.
absl::StatusOr<std::optional<Chain>> ReadAhead(const ReadContext& context,
                                               const DocumentKey& document,
                                               const VersionRange& range, int64_t wanted) {
  const int64_t ahead = std::clamp<int64_t>(wanted, 1, kContentsMax);
  const int64_t lowest = std::max(range.first, range.last - ahead + 1);
  VersionWalk walk(context, document, {.first = lowest, .last = lowest});
  if (!walk.Next()) return walk.status();
  ASSIGN_OR_RETURN(Link link, TakeLink(walk));
  const std::optional<int64_t> keyframe = KeyframeOf(lowest, link);
  if (!keyframe) return std::nullopt;
  if (lowest < range.last) {
    return Chain::GatherUpward(context, document, {.first = *keyframe, .last = range.last}, {});
  }
  return Chain::GatherUpward(context, document, {.first = *keyframe, .last = lowest - 1},
                             std::move(link));
}

absl::StatusOr<Chain> ReadChain(const ReadContext& context, const DocumentKey& document,
                                const VersionRange& range, int64_t wanted) {
  absl::StatusOr<std::optional<Chain>> chain = ReadAhead(context, document, range, wanted);
  if (chain.ok() && *chain) return **std::move(chain);
  // The way down finds what is wrong with them, if it is in the way.
  if (!chain.ok() && ReasonOf(chain.status()) != ErrorReason::kRecordCorrupt) {
    return chain.status();
  }
  VersionWalk walk(context, document, Downward(range.last));
  if (!walk.Next()) return walk.status();
  return Chain::GatherDownward(walk);
}

// Version `version`, below the head, with its content.
absl::StatusOr<StoredVersion> ReadRebuilt(const ReadContext& context, const DocumentKey& document,
                                          int64_t version) {
  ASSIGN_OR_RETURN(Chain chain,
                   ReadChain(context, document, {.first = version, .last = version}, 1));
  return chain.At(chain.size() - 1);
}

class DeltaHeaders final : public VersionsAndHead {
 public:
  DeltaHeaders(const ReadContext& context, const DocumentKey& document, const Head& head,
               const VersionRange& range)
      : VersionsAndHead(head, range, Part::kHeader), walk_(context, document, below()) {}

 private:
  absl::StatusOr<StoredVersion> ProduceBelow() override {
    if (!walk_.Next()) return walk_.status();
    ASSIGN_OR_RETURN(VersionRecord record, DecodeExpected(walk_.bytes(), walk_.position(),
                                                          Part::kHeader, walk_.version()));
    return std::move(record.version);
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
  absl::StatusOr<StoredVersion> ProduceBelow() override {
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
  std::optional<Chain> chain_;
  size_t index_ = 0;  // of the last version given
};

// Contents, oldest first: each from the one before.
class DeltasUpward final : public VersionsAndHead {
 public:
  DeltasUpward(const ReadContext& context, const DocumentKey& document, const Head& head,
               const VersionRange& range)
      : VersionsAndHead(head, range, Part::kContent), context_(context), document_(document) {}

 private:
  absl::StatusOr<StoredVersion> ProduceBelow() override {
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
      return NeitherNor(version);
    }
    if (!whole) {
      ASSIGN_OR_RETURN(next.content, Apply(content_, record.delta, version));
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

// Follows the versions upward, as the next delta stands on the content of the one before.
//
// Behind a link that is missing or broken, the deltas up to the next keyframe cannot be told right
// from wrong: the break is one fault, at its own version, and they are none.
class LinkInspector final : public InspectionState {
 public:
  // Begins with version `first`.
  absl::Status Begin(const ReadContext& context, const DocumentKey& document, int64_t first) {
    if (first == 1) return absl::OkStatus();
    VersionWalk walk(context, document, Downward(first - 1));
    absl::StatusOr<Chain> chain = CorruptVersion(first - 1, "is missing");
    if (walk.Next()) chain = Chain::GatherDownward(walk);
    if (!walk.status().ok()) chain = walk.status();
    if (chain.ok()) {
      if (absl::Status status = chain->CheckRecords(); !status.ok()) chain = std::move(status);
    }
    Break();
    if (!chain.ok()) {
      return ReasonOf(chain.status()) == ErrorReason::kRecordCorrupt ? absl::OkStatus()
                                                                     : chain.status();
    }
    run_known_ = true;
    run_length_ = static_cast<int64_t>(chain->size()) - 1;
    run_bytes_ = chain->delta_bytes();
    absl::StatusOr<StoredVersion> below = chain->At(chain->size() - 1);
    if (!below.ok()) return absl::OkStatus();
    content_known_ = true;
    content_ = std::move(below->content);
    return absl::OkStatus();
  }

  void Break() { content_known_ = run_known_ = false; }

  void Inspect(const store::Record& record, Inspected& inspected) {
    std::vector<Fault>& faults = inspected.faults;
    std::optional<VersionRecord> found = InspectRecord(record, inspected.first, faults);
    if (!found) return Break();
    const std::string_view delta = found->delta;
    inspected.version = std::move(found->version);
    StoredVersion& version = *inspected.version;
    if (delta.empty()) {
      InspectContent(version, faults);
      run_known_ = true;
      run_length_ = run_bytes_ = 0;
    } else if (version.content || version.deleted()) {
      faults.push_back({FindingKind::kRecordCorrupt, inspected.first,
                        "its record is neither a keyframe nor a delta"});
      return Break();
    } else {
      Rebuild(delta, version, faults);
      ++run_length_;
      run_bytes_ += static_cast<int64_t>(delta.size());
      if (!content_known_) return;
    }
    content_known_ = faults.empty();
    content_ = version.content;
  }

  // The head's record, which tells the next plan what to store of it. True if that will be right.
  bool InspectHead(const Coded& head, std::vector<Fault>& faults) const {
    const StoredVersion& version = *head.version;
    const int64_t number = version.header.version;
    InspectContent(version, faults);
    if (!head.delta.empty() && version.deleted()) {
      faults.push_back({FindingKind::kRecordCorrupt, number, "it is a deletion and has a delta"});
    } else if (!head.delta.empty() && content_known_ && faults.empty()) {
      if (!content_) {
        faults.push_back({FindingKind::kRecordCorrupt, number, "it is a delta without a base"});
      } else if (const auto made = document::ApplyDelta(*content_, head.delta);
                 !made.ok() || *made != *version.content) {
        faults.push_back({FindingKind::kContentMismatch, number,
                          "its delta does not lead to its content; the next update would store "
                          "it so"});
      }
    }
    const bool counted = !head.delta.empty();
    if (run_known_ && (head.chain_length != (counted ? run_length_ : 0) ||
                       head.chain_bytes != (counted ? run_bytes_ : 0))) {
      faults.push_back(
          {FindingKind::kRecordCorrupt, number, "its record miscounts the deltas below it"});
    }
    return faults.empty();
  }

 private:
  void Rebuild(std::string_view delta, StoredVersion& version, std::vector<Fault>& faults) const {
    if (!content_known_) return;
    const int64_t number = version.header.version;
    if (!content_) {
      faults.push_back({FindingKind::kRecordCorrupt, number, "it is a delta without a base"});
      return;
    }
    absl::StatusOr<Content> content = document::ApplyDelta(*content_, delta);
    if (!content.ok() ||
        ContentHashOf(version.header.salt, *content) != version.header.content_hash) {
      faults.push_back(
          {FindingKind::kContentMismatch, number, "it cannot be rebuilt from its deltas"});
      return;
    }
    version.content = *std::move(content);
  }

  bool content_known_ = true;
  std::optional<Content> content_;  // of the version before; none below the first and of a deletion
  bool run_known_ = true;
  int64_t run_length_ = 0;  // deltas in a row right below
  int64_t run_bytes_ = 0;
};

// Each version stands on the content of the one before, which goes from inspection to inspection:
// replaying the chain at each would cost its length squared.
class DeltaInspection final : public HeadedInspection {
 public:
  DeltaInspection(const ReadContext& context, const DocumentKey& document, const Head* head,
                  int64_t first, InspectionStatePtr state, int64_t keyframe_interval)
      : HeadedInspection(context, document, head, first),
        state_(std::move(state)),
        keyframe_interval_(keyframe_interval) {}

  // What becomes of the head's record when it is superseded, nobody knows before: after the head
  // nothing is known.
  InspectionStatePtr state() const override {
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

  void InspectBelow(const store::Record& record, Inspected& inspected) override {
    links_.Inspect(record, inspected);
  }

  void SkipMissing() override { links_.Break(); }

  absl::StatusOr<std::string> InspectHead(const Head& head, std::vector<Fault>& faults) override {
    ASSIGN_OR_RETURN(const Coded coded, DecodeCoded(head));
    if (!links_.InspectHead(coded, faults)) return "";
    return EncodeSuperseded(coded, keyframe_interval_);
  }

  const InspectionStatePtr state_;
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
                    std::span<const StoredVersion> next, store::WriteBatch& batch) const override {
    Coded newest{&next.front(), "", 0, 0};
    if (head != nullptr) {
      ASSIGN_OR_RETURN(const Coded superseded, DecodeCoded(*head));
      EnsureCoded(document, superseded, batch);
      newest = Successor(superseded, next.front(), keyframe_interval_);
    }
    for (const StoredVersion& version : next.subspan(1)) {
      EnsureCoded(document, newest, batch);
      newest = Successor(newest, version, keyframe_interval_);
    }
    WriteHead(document, head, EncodeHead(newest), batch);
    return absl::OkStatus();
  }

  std::unique_ptr<InspectionCursor> Inspect(const ReadContext& context, const DocumentKey& document,
                                            const Head* head, int64_t first,
                                            InspectionStatePtr state) const override {
    return std::make_unique<DeltaInspection>(context, document, head, first, std::move(state),
                                             keyframe_interval_);
  }

 private:
  void EnsureCoded(const DocumentKey& document, const Coded& coded,
                   store::WriteBatch& batch) const {
    batch.Ensure(Keyspace::kVersions, store::VersionKey(document, coded.version->header.version),
                 EncodeSuperseded(coded, keyframe_interval_));
  }

  const int64_t keyframe_interval_;
};

}  // namespace

std::unique_ptr<Strategy> MakeDeltas(const StrategyOptions& options) {
  return std::make_unique<Deltas>(options.keyframe_interval);
}

}  // namespace strata::versioning
