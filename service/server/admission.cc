#include "service/server/admission.h"

#include <algorithm>
#include <string>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"

namespace strata::server {
namespace {

// What one caller may hold of what all may, while all hold much.
size_t ShareOf(size_t limit) { return limit / 4; }

absl::Status TooMuchInFlight(size_t limit) {
  return Error(ErrorReason::kOverloaded, "requests and answers in memory would be more than " +
                                             std::to_string(limit) +
                                             " bytes; repeat it a little later")
      .With("limit", static_cast<int64_t>(limit));
}

absl::Status ShareUsedUp(const Caller& caller, size_t share) {
  return Error(ErrorReason::kOverloaded,
               "the calls of " + caller.name() + " hold more than their share of " +
                   std::to_string(share) +
                   " bytes of a server under load; read the answers, or make fewer calls at a time")
      .With("share", static_cast<int64_t>(share));
}

bool Reads(security::Permission permission) {
  using security::Permission;
  return permission == Permission::kOpen || permission == Permission::kPrincipal ||
         permission == Permission::kRead || permission == Permission::kAudit;
}

// What is asked of callers says little of some methods that write, as what they concern is found
// out only later.
bool Reads(const Method& method) { return Reads(method.permission) && !method.writes; }

absl::Status OnlyReads(const std::string& what, std::string_view permission,
                       std::string_view resource) {
  return Error(ErrorReason::kPermissionDenied,
               "this port only reads, and " + what +
                   "; call the gRPC port, or start the server with --http-access all")
      .With("permission", permission)
      .With("resource", resource);
}

}  // namespace

absl::Status Admission::Admit(const Method& method, const Recognized& recognized,
                              bool reads_only) const {
  if (!method.operational && draining_.load(std::memory_order_relaxed)) {
    return Draining();
  }
  if (method.permission == security::Permission::kOpen) return absl::OkStatus();
  if (!recognized.refusal.ok()) return recognized.refusal;
  RETURN_IF_ERROR(access_.Admit(method.permission, *recognized.identity));
  if (!reads_only || Reads(method)) return absl::OkStatus();
  const security::Permission asked =
      Reads(method.permission) ? security::Permission::kWrite : method.permission;
  return OnlyReads(method.name + " writes", security::PermissionName(asked),
                   security::Resource{security::ResourceKind::kServer, ""}.text());
}

bool Admission::MayFit(const Caller& caller, size_t bytes) const {
  const size_t of_all = bytes_in_flight_ + bytes;
  const size_t within_shares = bytes_within_shares_ + bytes;
  if (of_all <= bytes_in_flight_max_ / 2) return true;
  return within_shares <= bytes_in_flight_max_ &&
         caller.bytes_in_flight + bytes <= ShareOf(bytes_in_flight_max_);
}

absl::Status Admission::AdmitMessage(size_t bytes, size_t most) const {
  const size_t limit = std::min(most, message_bytes_max_);
  if (bytes <= limit) return absl::OkStatus();
  return Error(ErrorReason::kInvalidMessage, "the message has " + std::to_string(bytes) +
                                                 " bytes, at most " + std::to_string(limit) +
                                                 " are allowed")
      .With("size", static_cast<int64_t>(bytes))
      .With("limit", static_cast<int64_t>(limit));
}

absl::Status Admission::Authorize(const Method& method, const CallInfo& info,
                                  const google::protobuf::MessageLite& request) const {
  if (method.permission == security::Permission::kOpen) return absl::OkStatus();
  if (method.streams()) RETURN_IF_ERROR(access_.CheckStillValid(*info.identity));
  security::Demands demands;
  if (method.demands != nullptr) method.demands(request, method.permission, demands);
  // A request that concerns nothing must not pass for one that asks for nothing.
  if (demands.empty() && method.permission != security::Permission::kPrincipal) {
    demands.push_back({method.permission, {security::ResourceKind::kServer, ""}});
  }
  for (const security::Demand& demand : demands) {
    if (!info.reads_only || Reads(demand.permission)) continue;
    const std::string_view permission = security::PermissionName(demand.permission);
    return OnlyReads("the request needs " + std::string(permission), permission,
                     demand.resource.text());
  }
  return access_.Authorize(*info.identity, demands, info.peer);
}

absl::Status NotARequest(const Method& method) {
  return Error(
      ErrorReason::kInvalidMessage,
      "not a " + method.request + "; send what a protobuf library writes, and text in UTF-8");
}

// Counts first and asks then, so that of several at once not all find the last room.
absl::Status InFlight::Take(size_t bytes) {
  const size_t limit = admission_.bytes_in_flight_max_;
  const size_t share = ShareOf(limit);
  const size_t held = bytes_.fetch_add(bytes, std::memory_order_relaxed);
  const Totals totals = Move(0, bytes);
  const bool alone = totals.of_all == held + bytes;
  if (alone || totals.of_all <= limit / 2) return absl::OkStatus();
  const bool fits = operational_ || totals.within_shares <= limit;
  if (fits && totals.of_caller <= share) return absl::OkStatus();
  bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  Move(bytes, 0);
  return totals.of_caller > share ? ShareUsedUp(*caller_, share) : TooMuchInFlight(limit);
}

void InFlight::SetTo(size_t bytes) {
  const size_t before = bytes_.exchange(bytes, std::memory_order_relaxed);
  if (before == bytes) return;
  Move(before, bytes);
  if (bytes < before) admission_.room_line_.Offer(*caller_);
}

// Unsigned numbers wrap, so that adding a difference may also take away. In the order that all
// threads see alike: whoever waits for room looks at it once more after it has come into the line.
InFlight::Totals InFlight::Move(size_t from, size_t to) {
  const size_t share = ShareOf(admission_.bytes_in_flight_max_);
  const size_t change = to - from;
  const size_t before = OfCaller().fetch_add(change);
  const size_t of_caller = before + change;
  const size_t within_share = std::min(of_caller, share) - std::min(before, share);
  return {admission_.bytes_in_flight_.fetch_add(change) + change,
          admission_.bytes_within_shares_.fetch_add(within_share) + within_share, of_caller};
}

absl::Status QuotaUse::Begin(std::shared_ptr<Caller> caller, const Method& method,
                             size_t request_bytes) {
  if (method.operational || caller->quota() == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(caller->quota()->Enter());
  caller_ = std::move(caller);
  return Take(request_bytes);
}

absl::Status QuotaUse::Take(size_t bytes) const {
  if (caller_ == nullptr) return absl::OkStatus();
  return caller_->quota()->Take(bytes, std::chrono::steady_clock::now());
}

void QuotaUse::Charge(size_t bytes) const {
  if (caller_ != nullptr) caller_->quota()->Charge(bytes, std::chrono::steady_clock::now());
}

void QuotaUse::End() {
  if (caller_ == nullptr) return;
  caller_->quota()->Leave();
  caller_ = nullptr;
}

}  // namespace strata::server
