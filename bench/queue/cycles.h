// Rounds of Q2 on one queue, each checked against what the queue says of itself.
#pragma once

#include <string>
#include <vector>

#include "bench/queue/queue_server.h"
#include "bench/queue/queue_workloads.h"

namespace strata::bench {

class Cycles {
 public:
  // REQUIRES: so many messages wait in `queue`, and nobody else uses it.
  Cycles(QueueServer& server, std::string queue, int64_t waiting);

  // A round of 64 in flight. What is lost, or there twice, is written as wrong.
  void Run(std::chrono::milliseconds duration, FigureLines& lines);
  // So many messages go through, a hundred a call; not measured. Throws std::runtime_error if one
  // of them is answered wrong.
  void PassThrough(int64_t messages);

  const std::vector<Measurement>& rounds() const { return rounds_; }
  // Of `queue` in figures: what the rounds gave, and what the server says of its commits.
  void Write(const std::string& queue, FigureLines& lines) const;

 private:
  void Check(const CycleWorkload& workload);

  QueueServer& server_;
  const std::string queue_;
  const int64_t wanted_;  // messages that wait while a round runs
  int64_t there_;         // reserved ones included
  std::vector<Measurement> rounds_;
  std::vector<double> operations_per_commit_;
  int64_t races_lost_ = 0;
};

}  // namespace strata::bench
