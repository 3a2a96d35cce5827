// FeedService of a few lines: its streams are what a test told it to send.
#pragma once

#include <deque>
#include <vector>

#include "strata/v1/feed_service.grpc.pb.h"

namespace strata::cli {

// What is set and recorded is for use while no call is under way.
class FakeFeed : public v1::FeedService::Service {
 public:
  struct Stream {
    std::vector<v1::WatchResponse> messages;
    grpc::Status end;
  };
  std::deque<Stream> streams;              // one for each call, in their order
  std::vector<v1::WatchRequest> requests;  // received

  grpc::Status Watch(grpc::ServerContext*, const v1::WatchRequest* request,
                     grpc::ServerWriter<v1::WatchResponse>* writer) override {
    requests.push_back(*request);
    if (streams.empty()) return {grpc::StatusCode::INTERNAL, "no stream is left"};
    const Stream stream = streams.front();
    streams.pop_front();
    for (const v1::WatchResponse& message : stream.messages) writer->Write(message);
    return stream.end;
  }
};

}  // namespace strata::cli
