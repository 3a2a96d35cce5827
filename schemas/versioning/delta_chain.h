// The records of DELTAS below the head: from a keyframe upward, each version made from the one
// before. Internal to this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/document/content.h"
#include "schemas/store/key_codec.h"
#include "schemas/store/record.h"
#include "schemas/versioning/record_codec.h"
#include "schemas/versioning/strategy.h"
#include "schemas/versioning/version.h"
#include "schemas/versioning/version_records.h"

namespace strata::versioning {

// A keyframe and the deltas on top of it are no more than so many versions.
inline constexpr int32_t kKeyframeIntervalMax = 1000;

// A version as the head's record has it.
struct CodedVersion {
  const StoredVersion* version = nullptr;
  std::string delta;  // empty: none
  int64_t chain_length = 0;
  int64_t chain_bytes = 0;

  int64_t delta_bytes() const { return static_cast<int64_t>(delta.size()); }
};

absl::Status NeitherKeyframeNorDelta(int64_t version);

// The content of `version`, which its delta makes from `base`. RECORD_CORRUPT.
absl::StatusOr<document::Content> Rebuild(const std::optional<document::Content>& base,
                                          std::string_view delta, int64_t version);

// RECORD_CORRUPT for a content that does not hash to what the header says.
absl::Status CheckRebuilt(const document::Content& content, const VersionHeader& header);

// One record of the versions keyspace: a keyframe, a deletion or a delta. Its header is decoded
// where it is asked for: most links are only there to rebuild others.
struct DeltaLink {
  store::Record record;
  RecordBody body;

  bool whole() const { return body.delta.size == 0; }
  std::string_view delta() const { return body.delta.Of(record.value); }
};

// Successive versions from a keyframe (or a deletion) upward, rebuilt on demand. There may be more
// keyframes among them.
class DeltaChain {
 public:
  // Goes down with `walk`, which stands on the chain's top, to the next keyframe.
  static absl::StatusOr<DeltaChain> GatherDownward(VersionWalk& walk);

  // The versions of `range`, which begins with a keyframe, and `top` above them if that is given;
  // nothing if they take more than may be read ahead.
  static absl::StatusOr<std::optional<DeltaChain>> GatherUpward(const ReadContext& context,
                                                                const store::DocumentKey& document,
                                                                const VersionRange& range,
                                                                std::optional<DeltaLink> top);

  size_t size() const { return links_.size(); }
  int64_t first() const { return first_; }
  int64_t delta_bytes() const;

  // RECORD_CORRUPT if any of its records is no version record, those that At does not read
  // included.
  absl::Status CheckRecords() const;

  // The version `index` places above the first. Only its own content is held against a hash: it is
  // what is read, and it comes out wrong if anything below it is.
  absl::StatusOr<StoredVersion> At(size_t index);

  // Those that hold while contents are rebuilt. Must outlive the chain.
  void Limit(const ReadLimits* limits) { limits_ = limits; }

 private:
  int64_t VersionOf(size_t index) const { return first_ + static_cast<int64_t>(index); }
  absl::StatusOr<StoredVersion> DecodeHeader(size_t index) const;
  std::optional<document::Content> WholeContent(size_t index) const;
  absl::Status CheckLimits() const;
  absl::Status Fill(size_t index);
  absl::Status FillBlock(size_t block, size_t count);

  int64_t first_ = 0;
  std::vector<DeltaLink> links_;  // upward
  size_t begin_ = 0;              // the index of the first content below
  std::vector<std::optional<document::Content>> contents_;
  const ReadLimits* limits_ = nullptr;  // of the context that it was read through
  size_t rebuilt_bytes_ = 0;            // so far
  // The content right below each block; none below the first.
  std::vector<std::optional<document::Content>> below_blocks_;
};

// A chain whose top is version `range.last`, which is below the head. It holds what of the range
// will be asked for, about `wanted` versions, or as much of that as may be held at once.
absl::StatusOr<DeltaChain> ReadChain(const ReadContext& context, const store::DocumentKey& document,
                                     const VersionRange& range, int64_t wanted);

// Version `version`, below the head, with its content.
absl::StatusOr<StoredVersion> ReadRebuilt(const ReadContext& context,
                                          const store::DocumentKey& document, int64_t version);

}  // namespace strata::versioning
