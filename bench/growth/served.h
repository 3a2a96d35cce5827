// A server in a folder of its own, and the calls that all measurements make.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "bench/growth/figures.h"
#include "bench/load/closed_loop.h"
#include "bench/load/workloads.h"
#include "tests/fault/server_process.h"

namespace strata::bench {

class Served {
 public:
  explicit Served(const std::string& folder, const std::vector<std::string>& flags = {});

  pid_t pid() const { return server_.pid(); }
  const std::string& address() const { return server_.address(); }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  int64_t resident_bytes() const;
  IdleResult::Moment Look() const;

  // A population without documents, its collection made.
  Population MakePopulation(const std::string& collection, const std::string& strategy,
                            const Form& form = {});

  Measurement Run(Workload& workload, int in_flight, std::chrono::milliseconds duration);
  int Stop() { return server_.Stop(); }

 private:
  fault::ServerProcess server_;
  std::shared_ptr<grpc::Channel> channel_;
};

// Adds what failed in a measurement to what is wrong.
void Check(const Measurement& measurement, const std::string& where, Figures& figures);

}  // namespace strata::bench
