#include "schemas/versioning/as_of.h"

#include <string>

#include "schemas/base/error.h"
#include "schemas/base/field_checks.h"
#include "schemas/base/status_macros.h"
#include "schemas/versioning/audit.h"
#include "schemas/versioning/document_errors.h"

namespace strata::versioning {
namespace {

constexpr std::string_view kTimeField = "at_time";
constexpr std::string_view kPositionField = "at_position";

absl::Status CheckTime(UnixMicros time, const Clock& clock) {
  if (time <= clock.Now()) return absl::OkStatus();
  return FieldError(kTimeField, "lies in the future; leave it out to read the current state");
}

absl::Status CheckPosition(store::CommitPosition position, const store::Store& store) {
  if (!store.capabilities().commit_positions) return NoLedger("name a time instead of a position");
  if (position < 0) {
    return FieldError(kPositionField,
                      "is " + std::to_string(position) + ", but positions of commits count from 1");
  }
  const store::CommitPosition last = store.LastPosition();
  if (position > last) return PositionUnknown(kPositionField, position, last);
  // In front of everything there was never anything.
  const store::CommitPosition oldest = store.StartPosition();
  if (position != 0 && position < oldest) {
    return PositionTrimmed(kPositionField, position, oldest);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<AsOf>> AsOf::Make(const std::optional<UnixMicros>& time,
                                               const std::optional<store::CommitPosition>& position,
                                               const store::Store& store, const Clock& clock) {
  if (time && position) {
    return Error(ErrorReason::kInvalidField, "at_time is given too; name one of the two")
        .With("field", kPositionField);
  }
  if (time) {
    RETURN_IF_ERROR(CheckTime(*time, clock));
    return AtTime(*time);
  }
  if (!position) return std::nullopt;
  RETURN_IF_ERROR(CheckPosition(*position, store));
  return AtPosition(*position);
}

}  // namespace strata::versioning
