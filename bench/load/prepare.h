// What workloads need before they can run: collections and documents.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <string>

#include "bench/load/closed_loop.h"

namespace strata::bench {

// Of names such as "full-copies".
bool IsStrategy(const std::string& name);

// Throws std::runtime_error if it is refused. `authorization`: LoopSettings.
void CreateCollection(const std::shared_ptr<grpc::Channel>& channel, const std::string& name,
                      const std::string& strategy, const std::string& authorization = "");

// Runs a workload to its end, 64 calls in flight. Throws std::runtime_error if an answer is wrong.
Measurement Prepare(const std::shared_ptr<grpc::Channel>& channel, Workload& workload,
                    const std::string& authorization = "");

}  // namespace strata::bench
