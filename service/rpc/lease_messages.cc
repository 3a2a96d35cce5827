#include "service/rpc/lease_messages.h"

#include <string>

#include "schemas/base/error.h"
#include "schemas/base/names.h"
#include "schemas/base/status_macros.h"
#include "schemas/feed/subscriptions.h"
#include "service/rpc/resources.h"

namespace strata::rpc {
namespace {

// The range of google.protobuf.Duration: 10,000 years.
constexpr int64_t kDurationSecondsMax = 315'576'000'000;

absl::Status NeedsPosition(std::string_view field, std::string_view position) {
  return FieldError(field, "needs " + std::string(position) + ", the commit that it is in");
}

absl::StatusOr<lease::Place> ToPlace(std::string_view field, int64_t position, int64_t least,
                                     std::string_view index_field,
                                     const std::optional<int32_t>& index) {
  if (position < least) {
    return FieldError(field, "is " + std::to_string(position) + ", at least " +
                                 std::to_string(least) + " is required");
  }
  if (index && *index < 0) {
    return FieldError(index_field, "is negative; a commit's events are numbered from 0");
  }
  return lease::Place{position, index};
}

}  // namespace

absl::Status CheckLeaseName(std::string_view field, std::string_view name) {
  if (!name.starts_with(lease::kServersOwn)) return absl::OkStatus();
  return Error(ErrorReason::kInvalidName,
               std::string(field) + " begins with \"$\", as only the server's own leases do")
      .With("field", field);
}

absl::StatusOr<std::chrono::microseconds> ToDuration(std::string_view field,
                                                     const google::protobuf::Duration& duration) {
  const int64_t seconds = duration.seconds();
  const int32_t nanos = duration.nanos();
  const bool mixed = (seconds > 0 && nanos < 0) || (seconds < 0 && nanos > 0);
  if (seconds < -kDurationSecondsMax || seconds > kDurationSecondsMax || nanos < -999'999'999 ||
      nanos > 999'999'999 || mixed) {
    return FieldError(field,
                      "is no duration of up to 10000 years, or its nanos are not -999999999 to "
                      "999999999 with the sign of its seconds");
  }
  return std::chrono::microseconds(seconds * 1'000'000 + nanos / 1000);
}

absl::StatusOr<lease::LeaseToken> ToLeaseToken(const wire::LeaseToken& lease) {
  const auto index_of = [](bool has, int32_t index) {
    return has ? std::optional<int32_t>(index) : std::nullopt;
  };
  if (!feed::IncarnationOfPartitionLease(lease.name())) {
    RETURN_IF_ERROR(ValidateName("lease.name", lease.name()));
    RETURN_IF_ERROR(CheckLeaseName("lease.name", lease.name()));
  }
  if (lease.token() < 1) {
    return FieldError("lease.token", "is required: the token of the lease's Acquire, from 1");
  }
  lease::LeaseToken made;
  made.name = lease.name();
  made.token = lease.token();
  if (lease.has_index() && !lease.has_position()) {
    return NeedsPosition("lease.index", "lease.position");
  }
  if (lease.has_after_position() && !lease.has_position()) {
    return NeedsPosition("lease.after_position", "lease.position");
  }
  if (lease.has_after_index() && !lease.has_after_position()) {
    return NeedsPosition("lease.after_index", "lease.after_position");
  }
  if (lease.has_position()) {
    ASSIGN_OR_RETURN(made.place, ToPlace("lease.position", lease.position(), 1, "lease.index",
                                         index_of(lease.has_index(), lease.index())));
  }
  if (lease.has_after_position()) {
    ASSIGN_OR_RETURN(made.after,
                     ToPlace("lease.after_position", lease.after_position(), 0, "lease.after_index",
                             index_of(lease.has_after_index(), lease.after_index())));
  }
  return made;
}

namespace {

// Who may not write the subscription is not told its name.
absl::Status AuthorizePartition(int64_t incarnation, const Context& context) {
  security::Access& access = context.services.access;
  const server::CallInfo& info = context.call.info();
  ASSIGN_OR_RETURN(const std::optional<std::string> name,
                   context.services.subscriptions.NameOf(incarnation));
  // Its leases were given back with it, and never come again: the fence says so, to everybody.
  if (!name) return absl::OkStatus();
  if (access.Permits(*info.identity, security::Permission::kWrite,
                     {security::ResourceKind::kSubscription, *name})) {
    return absl::OkStatus();
  }
  const security::Demands every = {OnSubscription(security::Permission::kWrite, security::kEvery)};
  return access.Authorize(*info.identity, every, info.peer);
}

}  // namespace

absl::Status JoinFence(const wire::LeaseToken& lease, const Context& context,
                       std::vector<store::JoinedPlan>& joined) {
  ASSIGN_OR_RETURN(lease::LeaseToken token, ToLeaseToken(lease));
  if (const std::optional<int64_t> of = feed::IncarnationOfPartitionLease(token.name)) {
    RETURN_IF_ERROR(AuthorizePartition(*of, context));
  }
  joined.push_back(context.services.leases.Fence(std::move(token)));
  return absl::OkStatus();
}

void FillDuration(std::chrono::microseconds duration, google::protobuf::Duration& wire_duration) {
  wire_duration.set_seconds(duration.count() / 1'000'000);
  wire_duration.set_nanos(static_cast<int32_t>(duration.count() % 1'000'000) * 1000);
}

void FillLeaseToken(const lease::LeaseToken& token, wire::LeaseToken& wire_token) {
  wire_token.set_name(token.name);
  wire_token.set_token(token.token);
  if (token.place) {
    wire_token.set_position(token.place->position);
    if (token.place->index) wire_token.set_index(*token.place->index);
  }
  if (token.after) {
    wire_token.set_after_position(token.after->position);
    if (token.after->index) wire_token.set_after_index(*token.after->index);
  }
}

void FillLease(const lease::Lease& lease, wire::Lease& wire_lease) {
  wire_lease.set_name(lease.name);
  wire_lease.set_holder(lease.holder);
  wire_lease.set_token(lease.token);
  FillDuration(lease.ttl, *wire_lease.mutable_ttl());
  FillTimestamp(lease.expire_time, *wire_lease.mutable_expire_time());
  wire_lease.mutable_metadata()->insert(lease.metadata.begin(), lease.metadata.end());
  wire_lease.set_position(lease.place.position);
  if (lease.place.index) wire_lease.set_index(*lease.place.index);
}

}  // namespace strata::rpc
