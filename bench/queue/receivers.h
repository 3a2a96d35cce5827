// Consumers of a queue: streams of Receive, all on one connection and in the caller's thread, that
// acknowledge in batches what comes.
#pragma once

#include <grpcpp/channel.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace strata::bench {

struct ReceiversSettings {
  std::string queue;
  int streams = 4;
  int credits = 256;
  int batch = 64;  // so many are acknowledged at once, or what there is while nothing comes
};

// What they had.
struct Received {
  int64_t messages = 0;                  // that were acknowledged
  std::chrono::nanoseconds duration{0};  // from opening the streams until the last of them was
};

// Until so many messages are acknowledged. Throws std::runtime_error if one is answered wrong or
// comes again, if there are more, if a stream ends, and if nothing comes for a while.
Received ReceiveAll(const std::shared_ptr<grpc::Channel>& channel,
                    const ReceiversSettings& settings, int64_t messages);

}  // namespace strata::bench
