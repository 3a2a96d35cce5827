// As of when documents are read: a moment, or a commit.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/store/store.h"
#include "schemas/versioning/version.h"

namespace strata::versioning {

class AsOf {
 public:
  // What the request's fields `at_time` and `at_position` say; nothing where both are unset: now.
  // INVALID_FIELD for both, for a time in the future and a position below 0; POSITION_UNKNOWN for a
  // position after the last, POSITION_TRIMMED for one whose state was forgotten;
  // UNSUPPORTED_BY_ENGINE for any where commits have none.
  //
  // What is read later shows every commit up to the position.
  static absl::StatusOr<std::optional<AsOf>> Make(
      const std::optional<UnixMicros>& time, const std::optional<store::CommitPosition>& position,
      const store::Store& store, const Clock& clock);

  // Unchecked.
  static AsOf AtTime(UnixMicros time) { return AsOf(time, 0); }
  static AsOf AtPosition(store::CommitPosition position) { return AsOf(std::nullopt, position); }

  // Whether the version was there by then. Of a document, those that were come before all others.
  bool Covers(const StoredVersion& version) const {
    return time_ ? version.header.commit_time <= *time_ : version.position <= position_;
  }

  const std::optional<UnixMicros>& time() const { return time_; }
  // REQUIRES: no time.
  store::CommitPosition position() const { return position_; }

 private:
  AsOf(std::optional<UnixMicros> time, store::CommitPosition position)
      : time_(time), position_(position) {}

  std::optional<UnixMicros> time_;
  store::CommitPosition position_ = 0;
};

}  // namespace strata::versioning
