// The methods of strata.v1.LeaseService. The handler of each lies in the file of its name.
#include "service/rpc/lease_messages.h"
#include "service/rpc/rows.h"

namespace strata::rpc::lease_service {

AnswersLater<wire::AcquireRequest, wire::AcquireResponse> Acquire;
AnswersLater<wire::RenewRequest, wire::RenewResponse> Renew;
AnswersLater<wire::ReleaseRequest, wire::ReleaseResponse> Release;
Answers<wire::GetLeaseRequest, wire::GetLeaseResponse> GetLease;
Answers<wire::ListLeasesRequest, wire::ListLeasesResponse> ListLeases;

// ListLeases leaves out what may not be read.
std::vector<server::Method> Methods(Rows rows) {
  rows.AddWaiting(Acquire);
  rows.Add(Renew);
  rows.Add(Release);
  rows.Add(GetLease);
  rows.AddScan(ListLeases);
  return rows.Take();
}

}  // namespace strata::rpc::lease_service
