// A server in a folder of its own, and the calls that all measurements make.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "bench/load/closed_loop.h"
#include "bench/load/workloads.h"
#include "bench/support/figure_lines.h"
#include "tests/fault/server_process.h"

namespace strata::bench {

// The calls that are measured, as their figures name them.
inline constexpr char kGet[] = "Get";
inline constexpr char kUpdate[] = "Update";
inline constexpr char kHistory[] = "History, newest ten";

class Served {
 public:
  explicit Served(const std::string& folder, const std::vector<std::string>& flags = {});

  pid_t pid() const { return server_.pid(); }
  const std::string& address() const { return server_.address(); }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  int64_t resident_bytes() const;

  // A population without documents, its collection made.
  Population MakePopulation(const std::string& collection, const std::string& strategy,
                            const Form& form = {});

  Measurement Run(Workload& workload, int in_flight, std::chrono::milliseconds duration);
  int Stop() { return server_.Stop(); }
  void Kill() { server_.Kill(); }

 private:
  fault::ServerProcess server_;
  std::shared_ptr<grpc::Channel> channel_;
};

// Writes what failed in a measurement as wrong.
void Check(const Measurement& measurement, const std::string& where, FigureLines& lines);

}  // namespace strata::bench
