// BatchGet: the current versions of many documents of a collection, as a walk that its caller
// pulls.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/versioning/collection_walk.h"
#include "schemas/versioning/strategy.h"
#include "schemas/versioning/undecided.h"
#include "schemas/versioning/version.h"

namespace strata::versioning {

class BatchGetCursor final : public CollectionWalk {
 public:
  // Documents::BatchGet. All must outlive it.
  BatchGetCursor(store::Store& store, Collections& collections, std::string collection,
                 std::vector<std::string> ids);

  // Of the document moved to, until the next Next.
  const std::string& id() const { return ids_[next_]; }
  StoredVersion* version();  // null: missing or deleted; may be moved from

  // The place, among the ids, of the one stood on. At the end: how many there are.
  size_t resume_at() const { return next_; }

 private:
  absl::Status Begin() override;
  absl::StatusOr<bool> Advance() override;
  void LetGo() override {}
  absl::StatusOr<std::optional<Head>> ReadVisible(const std::string& id) const;

  const std::vector<std::string> ids_;
  // Without snapshots: which version of each document from `first_` on is given, 0 for none.
  std::vector<Visible> moment_;
  size_t first_ = 0;
  size_t next_ = 0;
  bool stands_ = false;  // on that one
  std::optional<Head> head_;
};

}  // namespace strata::versioning
