// Inspecting the records of DELTAS: whether each link leads from the version before to its own.
// Internal to this folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "schemas/document/content.h"
#include "schemas/store/key_codec.h"
#include "schemas/store/record.h"
#include "schemas/versioning/delta_chain.h"
#include "schemas/versioning/finding.h"
#include "schemas/versioning/strategy.h"
#include "schemas/versioning/version.h"

namespace strata::versioning {

// Follows the versions upward, as the next delta stands on the content of the one before. A copy
// goes on from the same place.
//
// After a link that is missing or broken, the deltas up to the next keyframe cannot be told right
// from wrong: the break is one finding, at its own version, and they are none.
class LinkInspector final : public StrategyState {
 public:
  // Begins with version `first`: reads the chain below it.
  absl::Status Begin(const ReadContext& context, const store::DocumentKey& document, int64_t first);

  // The next version has no record.
  void Break() { content_known_ = run_known_ = false; }

  // The record of the next version.
  void Inspect(const store::Record& record, InspectedVersions& inspected);

  // The head's record, which tells the next plan what to store of it. True if that will be right.
  bool InspectHead(const CodedVersion& head, std::vector<Finding>& findings) const;

 private:
  void RebuildContent(std::string_view delta, StoredVersion& version,
                      std::vector<Finding>& findings) const;
  void InspectHeadDelta(const CodedVersion& head, std::vector<Finding>& findings) const;

  bool content_known_ = true;
  // Of the version before; none below the first and of a deletion.
  std::optional<document::Content> content_;
  bool run_known_ = true;
  int64_t run_length_ = 0;  // deltas in a row right below
  int64_t run_bytes_ = 0;
};

}  // namespace strata::versioning
