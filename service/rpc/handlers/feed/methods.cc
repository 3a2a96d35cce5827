// The methods of strata.v1.FeedService. The handler of each lies in the file of its name.
#include <strata/wire/v1/feed_service.pb.h>

#include "service/rpc/convert.h"
#include "service/rpc/rows.h"

namespace strata::rpc::feed_service {

OpensStream<wire::WatchRequest> OpenWatch;
Answers<wire::GetFeedRequest, wire::GetFeedResponse> GetFeed;
AnswersLater<wire::CreateSubscriptionRequest, wire::CreateSubscriptionResponse> CreateSubscription;
Answers<wire::GetSubscriptionRequest, wire::GetSubscriptionResponse> GetSubscription;
Answers<wire::ListSubscriptionsRequest, wire::ListSubscriptionsResponse> ListSubscriptions;
AnswersLater<wire::DeleteSubscriptionRequest, wire::DeleteSubscriptionResponse> DeleteSubscription;
OpensStream<wire::ConsumeRequest> OpenConsume;
Answers<wire::ListParkedRequest, wire::ListParkedResponse> ListParked;
AnswersLater<wire::ReplayParkedRequest, wire::ReplayParkedResponse> ReplayParked;
AnswersLater<wire::DiscardParkedRequest, wire::DiscardParkedResponse> DiscardParked;

// ListSubscriptions leaves out what may not be read. Consume asks for *write* on what it opens.
std::vector<server::Method> Methods(Rows rows) {
  rows.Add(OpenWatch);
  rows.AddScan(GetFeed);
  rows.Add(CreateSubscription);
  rows.AddScan(GetSubscription);
  rows.AddScan(ListSubscriptions);
  rows.Add(DeleteSubscription);
  rows.Add(OpenConsume);
  rows.AddScan(ListParked);
  rows.Add(ReplayParked);
  rows.Add(DiscardParked);
  return rows.Take();
}

}  // namespace strata::rpc::feed_service
