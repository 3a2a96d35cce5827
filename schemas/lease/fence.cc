#include "schemas/lease/fence.h"

#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"

namespace strata::lease {
namespace {

using store::Keyspace;

std::string TextOf(const Place& place) {
  std::string text = std::to_string(place.position);
  if (place.index) text += ", event " + std::to_string(*place.index);
  return text;
}

void AddActual(const Place& stored, Error& error) {
  error.With("actual", stored.position);
  if (stored.index) error.With("actual_index", int64_t{*stored.index});
}

absl::Status EventOutOfOrder(std::string_view name, const Place& after, const Place& stored) {
  Error error(ErrorReason::kEventOutOfOrder, "lease " + std::string(name) + " has come to " +
                                                 TextOf(stored) + ", not to " + TextOf(after));
  error.With("lease", name).With("after_position", after.position);
  if (after.index) error.With("after_index", int64_t{*after.index});
  AddActual(stored, error);
  return error;
}

// Whoever took the lease since then makes the guard fail; what it left is read then.
void CheckOwner(std::string owner_key, const LeaseToken& token, store::WriteBatch& batch) {
  batch.Check(Keyspace::kLeases, std::move(owner_key), token.token);
}

absl::Status JoinToken(const store::Reader& reader, const LeaseToken& token,
                       store::WriteBatch& batch) {
  std::string owner_key = OwnerKey(token.name);
  ASSIGN_OR_RETURN(const bool held, IsHeldBy(reader, owner_key, token.token));
  if (!held) {
    ASSIGN_OR_RETURN(const StoredLease lease, ReadOwner(reader, token.name));
    RETURN_IF_ERROR(CheckToken(token.name, lease, token.token));
  }
  CheckOwner(std::move(owner_key), token, batch);
  return absl::OkStatus();
}

absl::Status JoinPlace(const store::Store& store, const store::Reader& reader,
                       const LeaseToken& token, store::WriteBatch& batch) {
  ASSIGN_OR_RETURN(const StoredLease lease, ReadLease(reader, token.name));
  RETURN_IF_ERROR(CheckToken(token.name, lease, token.token));
  CheckOwner(OwnerKey(token.name), token, batch);
  RETURN_IF_ERROR(CheckPlaceExists(store, "lease.position", *token.place));
  const Place& place = lease.state->place;
  // Before it is judged: an event may stand in one round with the event before it.
  State moved = *lease.state;
  moved.place = *token.place;
  batch.Replace(Keyspace::kLeases, StateKey(token.name), moved.Encode(), lease.state_stamp);
  if (place >= *token.place) return AlreadyAcknowledged(token.name, *token.place, place);
  if (token.after && place < *token.after) {
    return EventOutOfOrder(token.name, *token.after, place);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AlreadyAcknowledged(std::string_view name, const Place& place, const Place& stored) {
  Error error(ErrorReason::kAlreadyAcknowledged, "lease " + std::string(name) + " has come to " +
                                                     TextOf(stored) + ", which is not before " +
                                                     TextOf(place));
  error.With("lease", name).With("position", place.position);
  if (place.index) error.With("event_index", int64_t{*place.index});
  AddActual(stored, error);
  return error;
}

absl::Status CheckToken(std::string_view name, const StoredLease& lease, store::Stamp token) {
  if (lease.IsHeldBy(token)) return absl::OkStatus();
  std::string problem = " has token " + std::to_string(lease.token) + ", not ";
  if (!lease.owner) problem = " was never acquired, so it has no token ";
  // The stamp of a release is nobody's token.
  if (lease.owner && lease.owner->holder.empty()) problem = " was released; no holder has token ";
  return Error(ErrorReason::kLeaseLost,
               "lease " + std::string(name) + problem + std::to_string(token))
      .With("lease", name)
      .With("token", token)
      .With("actual", lease.token);
}

absl::Status CheckPlaceExists(const store::Store& store, std::string_view field,
                              const Place& place) {
  if (!store.capabilities().commit_positions) {
    return Error(ErrorReason::kUnsupportedByEngine,
                 std::string(field) + " needs commit positions, which the engine does not have")
        .With("capability", "commit_positions");
  }
  const store::CommitPosition last = store.LastPosition();
  if (place.position <= last) return absl::OkStatus();
  return Error(ErrorReason::kPositionUnknown, "position " + std::to_string(place.position) +
                                                  " is after the last commit, " +
                                                  std::to_string(last))
      .With("field", field)
      .With("position", place.position)
      .With("last", last);
}

store::JoinedPlan MakeFence(const store::Store& store, std::shared_ptr<Counters> counters,
                            LeaseToken token) {
  return [&store, counters = std::move(counters), token = std::move(token)](
             const store::Reader& reader, store::WriteBatch& batch) {
    absl::Status joined =
        token.place ? JoinPlace(store, reader, token, batch) : JoinToken(reader, token, batch);
    if (ReasonOf(joined) == ErrorReason::kLeaseLost) ++counters->lost;
    return joined;
  };
}

}  // namespace strata::lease
