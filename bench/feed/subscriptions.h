// Consumption of a subscription to its end.
#pragma once

#include <cstdint>
#include <string>

#include "bench/feed/feed_server.h"

namespace strata::bench {

inline constexpr int kPartitions = 8;

// Of the documents, behind a position, in kPartitions partitions. Throws std::runtime_error if it
// is refused.
void CreateSubscription(const FeedServer& server, const std::string& name, int64_t position);

struct Consumed {
  double per_second = 0;         // from the first stream's opening until all is acknowledged
  double commits_per_event = 0;  // that acknowledged them
  double cpu_us = 0;             // of the server, an event
};

// Two consumers with windows of 100 take and acknowledge all that there is: `events`. Throws
// std::runtime_error if that does not end, or is more or less.
Consumed ConsumeAll(const FeedServer& server, const std::string& name, int64_t events);

}  // namespace strata::bench
