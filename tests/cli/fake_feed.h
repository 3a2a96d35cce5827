// FeedService of a few lines: its streams are what a test told it to send.
#pragma once

#include <deque>
#include <vector>

#include "strata/v1/feed_service.grpc.pb.h"

namespace strata::cli {

// What is set and recorded is for use while no call is under way.
class FakeFeed : public v1::FeedService::Service {
 public:
  template <typename Message>
  struct StreamOf {
    std::vector<Message> messages;
    grpc::Status end;
  };
  std::deque<StreamOf<v1::WatchResponse>> streams;  // one for each call, in their order
  std::vector<v1::WatchRequest> requests;           // received

  // As `streams`, of Consume. An empty message is not sent: something has to be said first. One
  // that ends well does so when its caller has said all.
  std::deque<StreamOf<v1::ConsumeResponse>> deliveries;
  std::vector<v1::ConsumeRequest> said;  // to all of them

  // What the calls about subscriptions answer, and the requests received last.
  std::vector<v1::Subscription> subscriptions;  // ListSubscriptions: one a page
  std::vector<v1::ParkedDocument> parked;       // as these
  v1::GetSubscriptionResponse subscription;
  grpc::Status end;  // of all of them
  v1::CreateSubscriptionRequest last_create;
  v1::GetSubscriptionRequest last_get;
  v1::ListSubscriptionsRequest last_list;
  v1::DeleteSubscriptionRequest last_delete;
  v1::ListParkedRequest last_parked;
  v1::ReplayParkedRequest last_replay;
  v1::DiscardParkedRequest last_discard;

  using Context = grpc::ServerContext;
  grpc::Status Watch(Context*, const v1::WatchRequest* request,
                     grpc::ServerWriter<v1::WatchResponse>* writer) override {
    requests.push_back(*request);
    if (streams.empty()) return {grpc::StatusCode::INTERNAL, "no stream is left"};
    const auto stream = streams.front();
    streams.pop_front();
    for (const v1::WatchResponse& message : stream.messages) writer->Write(message);
    return stream.end;
  }

  grpc::Status Consume(
      Context*,
      grpc::ServerReaderWriter<v1::ConsumeResponse, v1::ConsumeRequest>* caller) override {
    v1::ConsumeRequest request;
    if (caller->Read(&request)) said.push_back(request);
    if (deliveries.empty()) return {grpc::StatusCode::INTERNAL, "no stream is left"};
    const auto stream = deliveries.front();
    deliveries.pop_front();
    for (const v1::ConsumeResponse& message : stream.messages) {
      if (message.message_case() != v1::ConsumeResponse::MESSAGE_NOT_SET) {
        caller->Write(message);
      } else if (caller->Read(&request)) {
        said.push_back(request);
      }
    }
    while (stream.end.ok() && caller->Read(&request)) said.push_back(request);
    return stream.end;
  }

  grpc::Status CreateSubscription(Context*, const v1::CreateSubscriptionRequest* request,
                                  v1::CreateSubscriptionResponse* response) override {
    last_create = *request;
    *response->mutable_subscription() = subscriptions.at(0);
    return end;
  }
  grpc::Status GetSubscription(Context*, const v1::GetSubscriptionRequest* request,
                               v1::GetSubscriptionResponse* response) override {
    last_get = *request;
    *response = subscription;
    return end;
  }
  grpc::Status ListSubscriptions(Context*, const v1::ListSubscriptionsRequest* request,
                                 v1::ListSubscriptionsResponse* response) override {
    last_list = *request;
    AnswerPage(*request, subscriptions, *response->mutable_subscriptions(),
               *response->mutable_next_page_token());
    return end;
  }
  grpc::Status DeleteSubscription(Context*, const v1::DeleteSubscriptionRequest* request,
                                  v1::DeleteSubscriptionResponse*) override {
    last_delete = *request;
    return end;
  }
  grpc::Status ListParked(Context*, const v1::ListParkedRequest* request,
                          v1::ListParkedResponse* response) override {
    last_parked = *request;
    AnswerPage(*request, parked, *response->mutable_documents(),
               *response->mutable_next_page_token());
    return end;
  }
  grpc::Status ReplayParked(Context*, const v1::ReplayParkedRequest* request,
                            v1::ReplayParkedResponse* response) override {
    last_replay = *request;
    response->set_documents(static_cast<int32_t>(parked.size()));
    return end;
  }
  grpc::Status DiscardParked(Context*, const v1::DiscardParkedRequest* request,
                             v1::DiscardParkedResponse* response) override {
    last_discard = *request;
    response->set_documents(1);
    return end;
  }

 private:
  template <typename Request, typename Item>
  static void AnswerPage(const Request& request, const std::vector<Item>& all,
                         google::protobuf::RepeatedPtrField<Item>& items, std::string& next) {
    const size_t at = request.page_token().empty() ? 0 : std::stoul(request.page_token());
    if (at < all.size()) *items.Add() = all[at];
    if (at + 1 < all.size()) next = std::to_string(at + 1);
  }
};

}  // namespace strata::cli
