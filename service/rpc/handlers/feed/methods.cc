// The methods of strata.v1.FeedService. The handler of each lies in the file of its name.
#include <strata/wire/v1/feed_service.pb.h>

#include "service/rpc/convert.h"
#include "service/rpc/rows.h"

namespace strata::rpc::feed_service {

OpensStream<wire::WatchRequest> OpenWatch;
Answers<wire::GetFeedRequest, wire::GetFeedResponse> GetFeed;

std::vector<server::Method> Methods(Rows rows) {
  rows.Read("Watch", Permission::kRead, OpenWatch);
  rows.Read("GetFeed", Permission::kRead, GetFeed);
  return rows.Take();
}

}  // namespace strata::rpc::feed_service
