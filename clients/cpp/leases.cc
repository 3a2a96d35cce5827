// The calls of LeaseService.
#include "strata/client/leases.h"

#include <utility>

#include "clients/cpp/requests.h"
#include "strata/v1/lease_service.grpc.pb.h"

namespace strata::client {
namespace {

using LeaseStub = v1::LeaseService::Stub;

}  // namespace

absl::StatusOr<Lease> Leases::Acquire(const std::string& name, const std::string& holder,
                                      const AcquireOptions& options) const {
  v1::AcquireRequest request;
  absl::Status status = FillRequest(*core_, options, request);
  request.set_name(name);
  request.set_holder(holder);
  v1::AcquireResponse response;
  if (status.ok())
    status = core_->Call(&LeaseStub::Acquire, request, &response,
                         options.wait.value_or(absl::ZeroDuration()));
  if (!status.ok()) return status;
  return ReadMessage<Lease>(response.lease());
}

absl::StatusOr<Lease> Leases::Renew(const std::string& name, int64_t token,
                                    const RenewOptions& options) const {
  v1::RenewRequest request;
  absl::Status status = FillRequest(*core_, options, request);
  request.set_name(name);
  request.set_token(token);
  v1::RenewResponse response;
  if (status.ok()) status = core_->Call(&LeaseStub::Renew, request, &response);
  if (!status.ok()) return status;
  return ReadMessage<Lease>(response.lease());
}

absl::StatusOr<Lease> Leases::Release(const std::string& name, int64_t token) const {
  v1::ReleaseRequest request;
  request.set_name(name);
  request.set_token(token);
  v1::ReleaseResponse response;
  absl::Status status = core_->Call(&LeaseStub::Release, request, &response);
  if (!status.ok()) return status;
  return ReadMessage<Lease>(response.lease());
}

absl::StatusOr<Lease> Leases::Get(const std::string& name) const {
  v1::GetLeaseRequest request;
  request.set_name(name);
  v1::GetLeaseResponse response;
  absl::Status status = core_->Call(&LeaseStub::GetLease, request, &response);
  if (!status.ok()) return status;
  return ReadMessage<Lease>(response.lease());
}

Range<Lease> Leases::List(const ListLeasesOptions& options) const {
  v1::ListLeasesRequest request;
  absl::Status filled = FillRequest(*core_, options, request);
  return Pages<Lease>(
      core_, &LeaseStub::ListLeases, std::move(request), std::move(filled),
      [](const auto& response) -> auto& { return response.leases(); });
}

}  // namespace strata::client
