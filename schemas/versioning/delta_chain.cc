#include "schemas/versioning/delta_chain.h"

#include <algorithm>
#include <string>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/document/delta.h"

namespace strata::versioning {
namespace {

using document::Content;
using store::DocumentKey;

// Contents that a walk downward holds at once.
constexpr size_t kContentsMax = 32;

// Records that are read one by one at less cost than a cursor is made for them.
constexpr int64_t kPointReadsMax = 3;

// Bytes of records that are read ahead, before it is known how many of them are asked for.
constexpr size_t kChainBytesMax = size_t{1} << 20;

absl::Status NotRebuilt(int64_t version) {
  return CorruptVersion(version, "cannot be rebuilt from its deltas");
}

absl::StatusOr<DeltaLink> TakeLink(VersionWalk& walk) {
  ASSIGN_OR_RETURN(const RecordBody body, DecodeBody(walk.bytes()));
  if (body.delta.size != 0 && body.content.size != 0) {
    return NeitherKeyframeNorDelta(walk.version());
  }
  return DeltaLink{walk.TakeRecord(), body};
}

// The keyframe below (or at) `version`, as its record counts; nothing if it does not.
std::optional<int64_t> KeyframeOf(int64_t version, const DeltaLink& link) {
  if (link.whole()) return version;
  const int64_t deltas = link.body.chain_length.value_or(-1);  // between the keyframe and this one
  if (deltas < 0 || deltas >= kKeyframeIntervalMax || deltas > version - 2) return std::nullopt;
  return version - 1 - deltas;
}

// Read upward: a cursor goes that way at half the cost. Nothing if the records do not tell where to
// begin.
absl::StatusOr<std::optional<DeltaChain>> ReadAhead(const ReadContext& context,
                                                    const DocumentKey& document,
                                                    const VersionRange& range, int64_t wanted) {
  const int64_t ahead = std::clamp<int64_t>(wanted, 1, kContentsMax);
  const int64_t lowest = std::max(range.first, range.last - ahead + 1);
  VersionWalk walk(context, document, {.first = lowest, .last = lowest});
  if (!walk.Next()) return walk.status();
  ASSIGN_OR_RETURN(DeltaLink link, TakeLink(walk));
  const std::optional<int64_t> keyframe = KeyframeOf(lowest, link);
  if (!keyframe) return std::nullopt;
  if (lowest < range.last) {
    return DeltaChain::GatherUpward(context, document, {.first = *keyframe, .last = range.last},
                                    {});
  }
  return DeltaChain::GatherUpward(context, document, {.first = *keyframe, .last = lowest - 1},
                                  std::move(link));
}

}  // namespace

absl::Status NeitherKeyframeNorDelta(int64_t version) {
  return CorruptVersion(version, "is neither a keyframe nor a delta");
}

absl::StatusOr<Content> Rebuild(const std::optional<Content>& base, std::string_view delta,
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

absl::StatusOr<DeltaChain> DeltaChain::GatherDownward(VersionWalk& walk) {
  DeltaChain chain;
  for (;;) {
    ASSIGN_OR_RETURN(DeltaLink link, TakeLink(walk));
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

absl::StatusOr<std::optional<DeltaChain>> DeltaChain::GatherUpward(const ReadContext& context,
                                                                   const DocumentKey& document,
                                                                   const VersionRange& range,
                                                                   std::optional<DeltaLink> top) {
  const int64_t count = range.last - range.first + 1;
  VersionWalk walk(
      context, document, range,
      count > kPointReadsMax ? VersionWalk::Source::kCursor : VersionWalk::Source::kPointReads);
  DeltaChain chain;
  chain.first_ = range.first;
  chain.links_.reserve(static_cast<size_t>(count) + 1);
  size_t bytes = 0;
  while (walk.Next()) {
    bytes += walk.bytes().size();
    if (context.limits != nullptr && bytes > context.limits->rebuilt_bytes_max) return TakesLong();
    if (bytes > kChainBytesMax) return std::nullopt;
    ASSIGN_OR_RETURN(DeltaLink link, TakeLink(walk));
    chain.links_.push_back(std::move(link));
  }
  RETURN_IF_ERROR(walk.status());
  if (top) chain.links_.push_back(*std::move(top));
  if (!chain.links_.front().whole()) return CorruptVersion(range.first, "is no keyframe");
  return chain;
}

int64_t DeltaChain::delta_bytes() const {
  int64_t bytes = 0;
  for (const DeltaLink& link : links_) bytes += static_cast<int64_t>(link.delta().size());
  return bytes;
}

absl::Status DeltaChain::CheckRecords() const {
  for (size_t i = 0; i < size(); ++i) RETURN_IF_ERROR(DecodeHeader(i).status());
  return absl::OkStatus();
}

absl::StatusOr<StoredVersion> DeltaChain::At(size_t index) {
  if (index < begin_ || index >= begin_ + contents_.size()) RETURN_IF_ERROR(Fill(index));
  ASSIGN_OR_RETURN(StoredVersion version, DecodeHeader(index));
  version.content = contents_[index - begin_];
  if (version.content.has_value() == version.deleted()) {
    return NeitherKeyframeNorDelta(VersionOf(index));
  }
  if (!links_[index].whole()) RETURN_IF_ERROR(CheckRebuilt(*version.content, version.header));
  return version;
}

absl::StatusOr<StoredVersion> DeltaChain::DecodeHeader(size_t index) const {
  const store::Record& record = links_[index].record;
  ASSIGN_OR_RETURN(VersionRecord decoded,
                   DecodeExpected(record.value, record.position, Part::kHeader, VersionOf(index)));
  return std::move(decoded.version);
}

std::optional<Content> DeltaChain::WholeContent(size_t index) const {
  const DeltaLink& link = links_[index];
  if (link.body.content.size == 0) return std::nullopt;
  return Content::FromTrusted(link.record.value, link.body.content.Of(link.record.value));
}

// Rebuilds the block of contents that `index` is in, and the one in front of each block once, so
// that a walk downward through a long chain rebuilds each content twice at most.
absl::Status DeltaChain::Fill(size_t index) {
  const size_t block = index / kContentsMax;
  if (below_blocks_.empty()) below_blocks_.push_back(std::nullopt);
  while (below_blocks_.size() <= block) {
    RETURN_IF_ERROR(FillBlock(below_blocks_.size() - 1, kContentsMax));
    below_blocks_.push_back(contents_.back());
  }
  return FillBlock(block, index % kContentsMax + 1);
}

absl::Status DeltaChain::CheckLimits() const {
  if (limits_ == nullptr) return absl::OkStatus();
  if (rebuilt_bytes_ > limits_->rebuilt_bytes_max) return TakesLong();
  return Stopped(limits_->stopped) ? StoppedError() : absl::OkStatus();
}

// Rebuilds the first `count` contents of a block.
absl::Status DeltaChain::FillBlock(size_t block, size_t count) {
  begin_ = block * kContentsMax;
  contents_.clear();
  std::optional<Content> content = below_blocks_[block];
  for (size_t i = begin_; i < begin_ + count; ++i) {
    RETURN_IF_ERROR(CheckLimits());
    if (links_[i].whole()) {
      content = WholeContent(i);
    } else {
      ASSIGN_OR_RETURN(content, Rebuild(content, links_[i].delta(), VersionOf(i)));
    }
    rebuilt_bytes_ += content ? content->size() : 0;
    contents_.push_back(content);
  }
  return absl::OkStatus();
}

namespace {

absl::StatusOr<DeltaChain> ReadUnlimited(const ReadContext& context, const DocumentKey& document,
                                         const VersionRange& range, int64_t wanted) {
  absl::StatusOr<std::optional<DeltaChain>> chain = ReadAhead(context, document, range, wanted);
  if (chain.ok() && *chain) return **std::move(chain);
  // The way down finds what is wrong with them, if it is in the way.
  if (!chain.ok() && ReasonOf(chain.status()) != ErrorReason::kRecordCorrupt) {
    return chain.status();
  }
  VersionWalk walk(context, document, {.first = 1, .last = range.last, .newest_first = true});
  if (!walk.Next()) return walk.status();
  return DeltaChain::GatherDownward(walk);
}

}  // namespace

absl::StatusOr<DeltaChain> ReadChain(const ReadContext& context, const DocumentKey& document,
                                     const VersionRange& range, int64_t wanted) {
  ASSIGN_OR_RETURN(DeltaChain chain, ReadUnlimited(context, document, range, wanted));
  chain.Limit(context.limits);
  return chain;
}

absl::StatusOr<StoredVersion> ReadRebuilt(const ReadContext& context, const DocumentKey& document,
                                          int64_t version) {
  ASSIGN_OR_RETURN(DeltaChain chain,
                   ReadChain(context, document, {.first = version, .last = version}, 1));
  return chain.At(chain.size() - 1);
}

}  // namespace strata::versioning
