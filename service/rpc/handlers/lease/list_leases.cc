#include <string>
#include <utility>
#include <vector>

#include "schemas/base/status_macros.h"
#include "service/rpc/lease_messages.h"
#include "service/rpc/page.h"
#include "service/rpc/page_token.h"

namespace strata::rpc::lease_service {
namespace {

constexpr std::string_view kMethod = "ListLeases";
constexpr size_t kReadAtOnce = 100;

// The leases of a query one after the other.
class Cursor {
 public:
  Cursor(const lease::Leases& leases, lease::LeaseQuery query)
      : leases_(leases), query_(std::move(query)) {}

  bool Next() {
    if (++at_ < read_.size()) return true;
    if (at_end_) return false;
    auto read = leases_.List(query_, kReadAtOnce);
    status_ = read.status();
    read_ = read.ok() ? *std::move(read) : std::vector<lease::Lease>();
    at_end_ = read_.size() < kReadAtOnce;
    if (!read_.empty()) query_.after_name = read_.back().name;
    at_ = 0;
    return !read_.empty();
  }

  // The one moved to.
  const lease::Lease& lease() const { return read_[at_]; }
  // Whether the walk ended because there are no more.
  bool done() const { return at_end_ && at_ >= read_.size(); }
  const absl::Status& status() const { return status_; }

 private:
  const lease::Leases& leases_;
  lease::LeaseQuery query_;
  std::vector<lease::Lease> read_;
  size_t at_ = 0;
  bool at_end_ = false;
  absl::Status status_;
};

absl::Status CheckPrefix(const std::string& prefix) {
  return prefix.empty() ? absl::OkStatus() : versioning::ValidateName("prefix", prefix);
}

}  // namespace

absl::Status ListLeases(const Context& context, const wire::ListLeasesRequest& request,
                        wire::ListLeasesResponse& response) {
  ASSIGN_OR_RETURN(const int page_size, ToPageSize(request.page_size()));
  RETURN_IF_ERROR(CheckPrefix(request.prefix()));
  std::string after_name;  // nothing that may not be read: the answer's token tells it
  if (!request.page_token().empty()) {
    ASSIGN_OR_RETURN(after_name, ReadPageToken(kMethod, PageScope(request), request.page_token()));
  }
  Cursor leases(context.services.leases, {request.prefix(), after_name, OnceClosed(context.call)});
  const auto may_read = [&] {
    return context.services.access.Permits(*context.call.info().identity,
                                           security::Permission::kRead,
                                           {security::ResourceKind::kLease, leases.lease().name});
  };
  const auto fill = [&](wire::Lease& filled) { FillLease(leases.lease(), filled); };
  RETURN_IF_ERROR(
      FillPage(leases, context.call, page_size, *response.mutable_leases(), fill, may_read));
  if (!leases.done()) {
    const int listed = response.leases_size();
    if (listed > 0) after_name = response.leases(listed - 1).name();
    response.set_next_page_token(MakePageToken(kMethod, PageScope(request), after_name));
  }
  return absl::OkStatus();
}

}  // namespace strata::rpc::lease_service
