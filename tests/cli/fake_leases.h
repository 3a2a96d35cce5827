// LeaseService of a few lines: it answers what a test told it to.
#pragma once

#include <string>
#include <vector>

#include "strata/v1/lease_service.grpc.pb.h"

namespace strata::cli {

// What is set and recorded is for use while no call is under way.
class FakeLeases : public v1::LeaseService::Service {
 public:
  // The requests received last.
  v1::AcquireRequest last_acquire;
  v1::RenewRequest last_renew;
  v1::ReleaseRequest last_release;
  v1::GetLeaseRequest last_get;
  v1::ListLeasesRequest last_list;

  // What ListLeases answers, one a page; the others answer the first.
  std::vector<v1::Lease> leases;
  grpc::Status end;  // of all calls

  using Context = grpc::ServerContext;
  grpc::Status Acquire(Context*, const v1::AcquireRequest* request,
                       v1::AcquireResponse* response) override {
    last_acquire = *request;
    *response->mutable_lease() = leases.at(0);
    return end;
  }
  grpc::Status Renew(Context*, const v1::RenewRequest* request,
                     v1::RenewResponse* response) override {
    last_renew = *request;
    *response->mutable_lease() = leases.at(0);
    return end;
  }
  grpc::Status Release(Context*, const v1::ReleaseRequest* request,
                       v1::ReleaseResponse* response) override {
    last_release = *request;
    *response->mutable_lease() = leases.at(0);
    return end;
  }
  grpc::Status GetLease(Context*, const v1::GetLeaseRequest* request,
                        v1::GetLeaseResponse* response) override {
    last_get = *request;
    *response->mutable_lease() = leases.at(0);
    return end;
  }
  grpc::Status ListLeases(Context*, const v1::ListLeasesRequest* request,
                          v1::ListLeasesResponse* response) override {
    last_list = *request;
    const size_t at = request->page_token().empty() ? 0 : std::stoul(request->page_token());
    if (at < leases.size()) *response->add_leases() = leases[at];
    if (at + 1 < leases.size()) response->set_next_page_token(std::to_string(at + 1));
    return end;
  }
};

}  // namespace strata::cli
