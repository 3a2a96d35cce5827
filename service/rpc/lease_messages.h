// What the messages of leases have in common.
#pragma once

#include <google/protobuf/duration.pb.h>
#include <strata/wire/v1/lease_service.pb.h>

#include <chrono>
#include <string_view>
#include <utility>

#include "schemas/lease/leases.h"
#include "service/rpc/convert.h"

namespace strata::rpc {

// INVALID_NAME for a name that the server keeps for its own leases.
absl::Status CheckLeaseName(std::string_view field, std::string_view name);

// INVALID_FIELD for what is no duration.
absl::StatusOr<std::chrono::microseconds> ToDuration(std::string_view field,
                                                     const google::protobuf::Duration& duration);

// As a write shows it: of a client's lease, or of a subscription's partition. INVALID_NAME,
// INVALID_FIELD, naming the field inside `lease`.
absl::StatusOr<lease::LeaseToken> ToLeaseToken(const wire::LeaseToken& lease);

void FillDuration(std::chrono::microseconds duration, google::protobuf::Duration& wire_duration);
void FillLeaseToken(const lease::LeaseToken& token, wire::LeaseToken& wire_token);
void FillLease(const lease::Lease& lease, wire::Lease& wire_lease);

// Answers with the lease as it stands.
template <typename Response>
lease::LeaseCallback AnswerLease(Reply<Response> reply) {
  return [reply = std::move(reply)](const absl::StatusOr<lease::Lease>& lease) {
    if (!lease.ok()) return reply.Fail(lease.status());
    FillLease(*lease, *reply.response().mutable_lease());
    reply.Ok();
  };
}

}  // namespace strata::rpc
